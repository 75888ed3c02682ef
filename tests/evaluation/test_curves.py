"""What is measured for curves: exponents of growth, certificates over passes, trade-offs."""

import numpy as np
import pytest

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.datasets import make_alma_target
from sparsemargin.evaluation import certificate_over_passes, growth_exponent, trade_off_over_alpha


def test_exponents_are_those_of_power_laws():
    sizes = np.array([1.0, 2, 4, 8, 16])
    fitted = growth_exponent(sizes, 3 * sizes**1.5)
    assert fitted.slope == pytest.approx(1.5)
    assert fitted.factor == pytest.approx(3)
    assert fitted.standard_error < 1e-6
    scattered = growth_exponent(sizes, sizes * [1, 1.2, 1, 1.2, 1])
    assert 0.005 < scattered.standard_error < 0.2
    assert growth_exponent([0, *sizes], [1, *sizes]) == growth_exponent(sizes, sizes)
    assert [str(growth_exponent(sizes[:n], sizes[:n])) for n in (1, 2)] == ["unknown", "1.00"]
    assert growth_exponent([*sizes, np.inf, 3], [*sizes, 1, np.nan]).slope == pytest.approx(1)
    assert [str(growth_exponent([5] * n, range(1, n + 1))) for n in (2, 3)] == ["unknown"] * 2
    with pytest.raises(ValueError, match="vectors of one length"):
        growth_exponent([1, 2], [1])


def test_certificates_are_those_of_fits_so_long():
    X, y, *_ = make_alma_target(150, 1, random_state=0)
    model = ALMAClassifier(p=4, random_state=0)
    curve = certificate_over_passes(model, X, y, n_passes=3)
    model.set_params(hypothesis="last", keep_history=True)
    for n, margin, bound in zip(curve.passes, curve.margins, curve.upper_bounds, strict=True):
        model.set_params(max_iter=n).fit(X, y)
        assert (margin, bound) == (model.margin_, model.margin_upper_bound_)
    assert curve.classes is None
    # Those of many classes have a column each.
    curve = certificate_over_passes(model, X, np.resize(["a", "b", "c"], 150), n_passes=4)
    assert curve.classes.tolist() == ["a", "b", "c"]
    assert curve.margins.shape == curve.upper_bounds.shape == (len(curve.passes), 3)


def test_trade_offs_are_cross_validated():
    X, y, *_ = make_alma_target(150, 1, random_state=0)
    model = ALMAClassifier(random_state=0)
    points = trade_off_over_alpha(model, X, y, p=[2, "log"], alpha=[0.9, 0.5], cv=3)
    assert [(point.p, point.alpha) for point in points] == [
        (2, 0.9), (2, 0.5), ("log", 0.9), ("log", 0.5),
    ]  # fmt: skip
    assert all(len(point.mistakes) == len(point.accuracies) == 3 for point in points)
    (once,) = trade_off_over_alpha(model, X, y, p=[2, 2.0], alpha=[0.9, 0.9], cv=3)
    np.testing.assert_array_equal(once.mistakes, points[0].mistakes)
    with pytest.raises(ValueError, match="PNormPerceptron has no parameter alpha"):
        trade_off_over_alpha(PNormPerceptron(), X, y)
    with pytest.raises(ValueError, match="p and alpha must have entries"):
        trade_off_over_alpha(model, X, y, p=[])
