"""Rows of weight 0, their own or their class's, are as if they were not there, to the bit."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_classification

from sparsemargin import AROWClassifier, AutoClassifier, fit_svmlight
from sparsemargin.estimators.classifiers import CLASSIFIERS
from sparsemargin.models.parameters import declarations

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

WEIGHING = {
    name: kind for name, kind in {**CLASSIFIERS, "AutoClassifier": AutoClassifier}.items()
    if kind is AutoClassifier or kind.weighs_steps()
}  # fmt: skip
WEIGHING["AROWClassifier, prior"] = partial(AROWClassifier, prior="naive_bayes")
KERNELS = [name for name, kind in CLASSIFIERS.items()
           if name in WEIGHING and "kernel" in declarations(kind)]  # fmt: skip


def problem(n_rows=300, n_classes=3):
    X, y = make_classification(n_rows, 10, n_informative=6, n_classes=n_classes, random_state=0)
    there = np.random.default_rng(1).random(n_rows) < 0.6
    X[~there] *= 1e4
    X[:20] *= np.where(there[:20, np.newaxis], 1, 10)  # among the first rows, too
    return X, y, there


def assert_alike(model, other, X):
    # Large rows would hide differences.
    X = X[np.abs(X).max(axis=1) < 1e3]
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    if hasattr(other, "predict_proba"):
        np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))
    model, other = (getattr(each, "best_estimator_", each) for each in (model, other))
    assert model.n_iter_ == other.n_iter_
    np.testing.assert_array_equal(model.fitted.rows_by_class, other.fitted.rows_by_class)


@pytest.mark.parametrize("how", [
    {}, {"class_weight": "balanced"}, {"max_iter": 1}, {"several": True}, {"n_classes": 2},
    {"n_rows": 1500},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("name", WEIGHING)
def test_rows_of_sample_weight_0(name, how):
    how = dict(how)
    several, n_classes = how.pop("several", False), how.pop("n_classes", 3)
    X, y, there = problem(how.pop("n_rows", 300), n_classes)
    model, other = (WEIGHING[name](shuffle=False, **how) for _ in range(2))
    if several:
        if not getattr(model, "supports_multilabel", True):
            pytest.skip("rows have one class")
        y = (y[:, np.newaxis] <= np.arange(2)).astype(int)
    weights = np.where(there, np.random.default_rng(2).integers(1, 4, len(y)), 0.0)
    model.fit(X, y, weights)
    assert_alike(model, other.fit(X[there], y[there], weights[there]), X)


@pytest.mark.parametrize("name", WEIGHING)
def test_rows_of_sample_weight_0_in_batches(name):
    X, y, there = problem()
    model, other = (WEIGHING[name](shuffle=False) for _ in range(2))
    for part in np.arange(0, 200), np.arange(200, 300):
        model.partial_fit(X[part], y[part], [0, 1, 2], there[part].astype(float))
        counted = part[there[part]]
        other.partial_fit(X[counted], y[counted], [0, 1, 2], np.ones(len(counted)))
    assert_alike(model, other, X)


@pytest.mark.parametrize("name", KERNELS)
def test_rows_of_sample_weight_0_with_kernels(name):
    X, y, there = problem(120)
    model, other = (WEIGHING[name](kernel="rbf", max_iter=3, shuffle=False) for _ in range(2))
    model.fit(X, y, there.astype(float))
    other.fit(X[there], y[there], np.ones(there.sum()))
    # Products of rows are made block by block, which round differently.
    outputs = (each.decision_function(X) for each in (model, other))
    np.testing.assert_allclose(*outputs, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("name", WEIGHING)
def test_rows_of_a_class_of_weight_0(name):
    X, y, there = problem(n_classes=2)
    y = np.where(there, y, 2)
    model = WEIGHING[name](class_weight={0: 1, 1: 2, 2: 0}, shuffle=False, max_iter=2).fit(X, y)
    # Row by row, so that the third class is known, and has no rows.
    other = WEIGHING[name](class_weight={0: 1, 1: 2}, shuffle=False, max_iter=2)
    other.fit(X[there], y[there])
    X = X[there]
    assert set(model.predict(X)) <= {0, 1}
    agree = (model.predict(X) == other.predict(X)).mean()
    assert agree > 0.9  # of three labels, where the other learns one
    if name != "AutoClassifier":  # it may select differently for three vectors than for one
        assert model.intercept_scaling_ == other.intercept_scaling_
        assert model.t_ == other.t_


def test_rows_of_a_class_of_weight_0_in_files(tmp_path):
    X, y, there = problem(n_classes=2)
    y = np.where(there, y, 2)
    path = tmp_path / "rows.svm"

    def write(rows):
        lines = (f"{y[r]} " + " ".join(f"{j}:{x!r}" for j, x in enumerate(X[r].tolist(), 1))
                 for r in rows)  # fmt: skip
        path.write_text("\n".join(lines) + "\n")
        return path

    how = {"algo": "arow", "classes": [0, 1, 2], "shuffle": False}
    model = fit_svmlight(write(range(300)), class_weight={0: 1, 1: 2, 2: 0}, **how)
    other = fit_svmlight(write(np.flatnonzero(there)), class_weight={0: 1, 1: 2, 2: 0}, **how)
    assert model.intercept_scaling_ == other.intercept_scaling_
    np.testing.assert_array_equal(model.coef_, other.coef_)
