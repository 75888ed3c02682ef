"""Multilabel problems: each label is a separate problem, and all are trained in the same pass."""

import re
import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import accuracy_score

from depth import pairwise
from problems.csr import csr_of
from problems.first_order import examples
from problems.models import assert_same, fit
from problems.stages import COPIES
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
)
from sparsemargin._engine.first_order import linear_space
from sparsemargin._engine.kernel.loop import KernelSpace
from sparsemargin.evaluation import margins
from sparsemargin.kernels import Polynomial
from sparsemargin.models.inputs.labels import Choice

N_ROWS, N_FEATURES = 120, 30


def make_labels(n_labels, n_rows=N_ROWS, dtype="f8"):
    """Return rows, and an indicator of labels that partly depend on them. No label is constant."""
    random = np.random.RandomState(n_labels)
    X = sp.random(n_rows, N_FEATURES, density=0.3, format="csr", random_state=random)
    X.data -= 0.5
    scores = X @ random.standard_normal((N_FEATURES, n_labels))
    Y = (scores + 0.3 * random.standard_normal(scores.shape) > 0.4).astype(int)
    Y[0], Y[1] = 0, 1
    return X.astype(dtype), Y


def assert_is_one_versus_rest(model, X, Y, labels=None, **more):
    """Check that a fit of all labels equals separate fits of each label, bit for bit."""
    together = fit(clone(model), X, Y, **more)
    scores = together.decision_function(X)
    for label in range(Y.shape[1]) if labels is None else labels:
        alone = fit(clone(model), X, Y[:, label].toarray().ravel(), **more)
        assert alone.decision_function(X).tobytes() == scores[:, label].tobytes()
        assert alone.n_corrections_ == together.n_corrections_[label]


@pytest.mark.parametrize(
    ("p", "hypothesis", "n_labels"),
    pairwise([2, 6], ["last", "average"], [1, 2, 17, 104]),
)
def test_multilabel_fit_is_bitwise_equal_to_one_versus_rest(p, hypothesis, n_labels):
    n_jobs, dtype = (2, "f4") if n_labels % 2 else (1, "f8")
    # With fewer rows, scores would be updated with dot products, whose rounding differs.
    X, Y = make_labels(n_labels, n_rows=3000, dtype=dtype)
    model = ALMAClassifier(p=p, hypothesis=hypothesis, max_iter=2, random_state=0, n_jobs=n_jobs)
    assert_is_one_versus_rest(model, X, sp.csr_matrix(Y), {0, n_labels // 2, n_labels - 1})


@pytest.mark.parametrize("model", [
    PNormPerceptron(p=6, random_state=0),
    PNormPerceptron(normalize=False, fit_intercept=True, soft_margin=0.5, random_state=0),
    ALMAClassifier(normalize="max", random_state=0),
    MarginPerceptron(p=3, max_iter=3, random_state=0),
    CRAMMAClassifier(max_iter=3, random_state=0),
    ROMMAClassifier(max_iter=3, random_state=0),
    MaxMarginClassifier(max_iter=3, tol=None, soft_margin=1.0, random_state=0),
    PNormPerceptron(p=2, hypothesis="vote", max_iter=2, random_state=0),
    PNormPerceptron(p=6, hypothesis="random", max_iter=2, random_state=0),
], ids=repr)  # fmt: skip
def test_every_algorithm_learns_many_labels(model):
    X, Y = make_labels(5)
    assert_is_one_versus_rest(model, X, sp.csc_array(Y))


def test_weights_apply_to_each_label_separately():
    X, Y = make_labels(4)
    model, weights = ALMAClassifier(random_state=0), np.arange(N_ROWS) % 3.0
    assert_is_one_versus_rest(model, X, sp.csr_matrix(Y), sample_weight=weights)
    model.set_params(class_weight="balanced")
    assert_is_one_versus_rest(model, X, sp.csr_matrix(Y))
    weighted = ALMAClassifier(class_weight={2: 3.0}, random_state=0).fit(X, Y)
    # The weight 3 is divided by the harmonic mean of the weights 1, 1, 3 and 1, which is 1.2.
    alone = ALMAClassifier(class_weight={1: 2.5}, random_state=0).fit(X, Y[:, 2])
    assert_allclose(weighted.decision_function(X)[:, 2], alone.decision_function(X), rtol=1e-12)
    # One label occurs in no row, and another in every row.
    Y[:, 1], Y[:, 2] = 0, 1
    for class_weight in None, "balanced":
        model = ALMAClassifier(class_weight=class_weight, random_state=0)
        assert_array_equal(model.fit(X, Y).predict(X)[:, 1:3], Y[:, 1:3])
        assert_is_one_versus_rest(model, X, sp.csr_matrix(Y), [0])


def test_certificates_are_given_per_label():
    X, Y = make_labels(3)
    settings = {"tol": 0.5, "soft_margin": 1.0, "random_state": 0}
    model = MaxMarginClassifier(**settings).fit(X, Y)
    assert (model.margin_ >= 0.5 * model.margin_upper_bound_).all()
    for label in range(3):
        alone = MaxMarginClassifier(**settings).fit(X, Y[:, label])
        if alone.n_corrections_ == model.n_corrections_[label]:
            assert model.margin_[label] == alone.margin_
    assert model.history_["margin"].shape[1] == 3
    one = MaxMarginClassifier(**settings).fit(X, sp.csr_matrix(Y[:, :1]))
    assert one.margin_.shape == one.n_corrections_.shape == (1,)
    assert one.history_["margin"].ndim == 2


def test_multilabel_fit_needs_no_dense_indicator():
    n_rows, n_labels = 20_000, 1000
    X = sp.random(n_rows, 10, density=0.3, format="csr", random_state=0)
    Y = sp.random(n_rows, n_labels, density=0.001, format="csr", random_state=0).ceil()
    model = ALMAClassifier(random_state=0, max_iter=1).fit(X[:10], Y[:10])
    # `most` is a share of a float64 array of shape (n_rows, n_labels). A bool array would be 1/8.
    for work, most in [(lambda: model.fit(X, Y), 0.1), (lambda: model.predict(X), 0.25)]:
        tracemalloc.start()
        work()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < most * 8 * n_rows * n_labels


NAMES = np.array(["barley", "coffee", "gold", "zinc"])


def lists_of(Y, names=NAMES):
    return [tuple(names[np.flatnonzero(row)].tolist()) for row in Y]


@pytest.mark.parametrize("kind", [bool, int, float, object])
def test_predictions_have_the_format_of_y(kind):
    X, Y = make_labels(4)
    forms = Y.astype(kind), sp.coo_array(Y.astype(float)), lists_of(Y)
    dense, sparse, lists = (ALMAClassifier(random_state=0).fit(X, form) for form in forms)
    predicted, weights = dense.predict(X), np.arange(N_ROWS)
    assert (predicted.dtype.kind, predicted.shape) == ("i", Y.shape)
    assert sparse.predict(X).format == "csr"
    assert_array_equal(sparse.predict(X).toarray(), predicted)
    assert lists.predict(X) == lists_of(predicted)
    assert lists.classes_.tolist() == NAMES.tolist()
    assert dense.classes_.tolist() == sparse.classes_.tolist() == [0, 1, 2, 3]
    assert_array_equal(lists.decision_function(X), dense.decision_function(X))
    # The score is the share of rows whose labels are all predicted correctly.
    expected = accuracy_score(Y, predicted, sample_weight=weights)
    assert 0 < expected < 1
    for model, form in zip((dense, sparse, lists), forms, strict=True):
        assert model.score(X, form, weights) == pytest.approx(expected)
    # A row with a label that the model does not know counts as an error.
    assert lists.score(X, [(*row, "tin") for row in lists_of(Y)]) == 0


@pytest.mark.parametrize(("lists", "classes"), [
    ([[3], [], [17, 3]], [3, 17]),
    (np.array([["a"], ["b", "a"], []], dtype=object), ["a", "b"]),
    ([np.array([2, 1]), np.array([5]), np.array([1, 1])], [1, 2, 5]),
    ([{7}, {7}, set()], [7]),
])  # fmt: skip
def test_label_lists_equal_an_indicator(lists, classes):
    X = make_labels(1)[0][:3]
    model = PNormPerceptron(max_iter=50, random_state=0).fit(X, lists)
    assert model.classes_.tolist() == classes
    assert model.predict(X) == [tuple(sorted({*row})) for row in lists]
    assert model.decision_function(X).shape == (3, len(classes))


def test_labels_chosen_by_threshold_and_by_rank(monkeypatch):
    X, Y = make_labels(6)
    model = ALMAClassifier(random_state=0).fit(X, Y)
    outputs = model.decision_function(X)
    monkeypatch.setattr(linear_space, "_OUTPUTS_PER_PART", 100)
    thresholds = np.linspace(-0.3, 0.3, 6)
    assert_array_equal(model.predict(X), outputs >= 0)
    assert_array_equal(model.predict_labels(X, threshold=0.1), outputs >= 0.1)
    assert_array_equal(model.predict_labels(X, threshold=thresholds), outputs >= thresholds)
    assert model.predict_labels(X, top_k=9).all()
    best = model.predict_labels(X, top_k=2)
    assert (best.sum(axis=1) == 2).all()
    assert_array_equal(model.predict_labels(X, top_k=2, threshold=0.0), best & (outputs >= 0))
    # Lists are ordered by output, and a CSR indicator has sorted columns.
    lists = ALMAClassifier(random_state=0).fit(X, lists_of(Y, np.array(list("abcdef"))))
    ranks = lists.classes_[np.argsort(-outputs, axis=1, kind="stable")]
    assert lists.predict_labels(X, top_k=3) == list(map(tuple, ranks[:, :3].tolist()))
    assert lists.predict_labels(X, top_k=9) == list(map(tuple, ranks.tolist()))
    sparse = ALMAClassifier(random_state=0).fit(X, sp.csr_matrix(Y)).predict_labels(X, top_k=2)
    assert_array_equal(np.diff(sparse.indices.reshape(-1, 2)) > 0, True)


@examples(60)
@given(st.data(), st.integers(1, 6), st.integers(1, 7))
def test_label_choice_equals_a_stable_sort(data, n_labels, top_k):
    values = st.sampled_from([-np.inf, -1.0, -0.0, 0.0, 0.5, 2.0])
    outputs = data.draw(st.lists(values, min_size=n_labels, max_size=n_labels))
    threshold = data.draw(st.none() | values)
    best = sorted(range(n_labels), key=lambda label: -outputs[label])[:top_k]
    least = -np.inf if threshold is None else threshold
    expected = [label in best and outputs[label] >= least for label in range(n_labels)]
    choice = Choice(n_labels, threshold, top_k)
    assert choice.of(np.array([outputs])).tolist() == [expected]
    ranked = [label for label in best if outputs[label] >= least]
    assert choice.labels(np.array([outputs])).labels.tolist() == ranked


def test_indicator_is_not_modified():
    X, Y = make_labels(4)
    # The indicator stores every entry, including zeros, with columns in reverse order.
    values, columns = Y[:, ::-1].astype("f4").ravel(), np.tile([3, 2, 1, 0], N_ROWS)
    indicator = csr_of(values, columns, 4 * np.arange(N_ROWS + 1), Y.shape, sp.csr_array)
    parts = indicator.data, indicator.indices, indicator.indptr
    before = [part.tobytes() for part in parts]
    for part in parts:
        part.flags.writeable = False
    predicted = ALMAClassifier(random_state=0).fit(X, indicator).predict(X)
    assert [part.tobytes() for part in parts] == before
    expected = ALMAClassifier(random_state=0).fit(X, Y).predict(X)
    assert_array_equal(predicted.toarray(), expected)


@pytest.mark.parametrize(("name", "values"), [
    ("top_k", [0, 1.5, True]),
    ("threshold", [[0, 1], np.nan, "0.5", {0: 0.5}, 1j, np.array([1j, 0, 0]), [[0], [1, 2]]]),
])  # fmt: skip
def test_invalid_threshold_and_top_k_are_rejected(name, values):
    model = ALMAClassifier().fit(*make_labels(3))
    for value in values:
        with pytest.raises(ValueError, match=f"^{name} .*"):
            model.predict_labels(make_labels(3)[0], **{name: value})


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_matrix, lists_of])
def test_partial_fit_learns_many_labels(as_given):
    X, Y = make_labels(4)
    model = ALMAClassifier(shuffle=False, max_iter=1, intercept_scaling=1.0)
    whole = clone(model).fit(X, as_given(Y))
    named = {"classes": NAMES} if as_given is lists_of else {}
    model.partial_fit(X[:50], as_given(Y[:50]), **named)
    assert model.decision_function(X).shape == (N_ROWS, 4)
    model.partial_fit(X[50:], as_given(Y[50:]))
    assert_array_equal(model.decision_function(X), whole.decision_function(X))
    assert type(model.predict(X)) is type(whole.predict(X))


def test_warm_start_continues_with_many_labels():
    X, Y = make_labels(4)
    model = ALMAClassifier(hypothesis="last", warm_start=True, shuffle=False, max_iter=1)
    model.fit(X, Y).fit(X, Y)
    twice = ALMAClassifier(hypothesis="last", shuffle=False, max_iter=2).fit(X, Y)
    assert_array_equal(model.coef_, twice.coef_)
    for y, told in (Y[:, :3], "3 labels, where the model has 4"), (Y[:, 0], "but y has one"):
        with pytest.raises(ValueError, match=told):
            model.fit(X, y)
    model.set_params(warm_start=False).fit(X, Y[:, 0]).predict(X)
    assert model.decision_function(X).shape == (N_ROWS,)
    assert isinstance(model.n_corrections_, int)


@pytest.mark.parametrize(
    ("classes", "labels"),
    [([0, 1], [[0], [], [0, 1], [0, 1]]), ([0, 1, 2], [[0, 1], [0, 1], [1, 0], [0, 1]])],
)
def test_lists_of_0_and_1_are_labels_for_a_model_of_lists(classes, labels):
    X = np.eye(4)
    model = PNormPerceptron(hypothesis="last")
    whole = clone(model).partial_fit(X, labels, classes=classes)
    halves = clone(model).partial_fit(X[:2], labels[:2], classes=classes)
    halves.partial_fit(X[2:], labels[2:])
    assert_array_equal(halves.coef_, whole.coef_)
    assert halves.predict(X[2:]) == [(0, 1), (0, 1)]
    assert halves.score(X[2:], [[0, 1], [1, 0]]) == 1
    warm = clone(model).set_params(warm_start=True).fit(X, [[0], [], [0, 1], [0, 1]])
    assert warm.fit(X[2:], labels[2:]).predict(X[2:]) == [(0, 1), (0, 1)]


def test_lists_of_0_and_1_continue_an_indicator_model():
    X, Y = np.eye(3), [[0, 1], [1, 1], [0, 0]]
    for model in (PNormPerceptron().partial_fit(X, Y), PNormPerceptron().fit(X, sp.csr_matrix(Y))):
        model.partial_fit(X, Y)
        assert_array_equal(model.decision_function(X) >= 0, Y)
        assert model.score(X, Y) == 1
        with pytest.raises(ValueError, match="indicator of 3 labels, where the model has 2"):
            model.partial_fit(X, [[0, 1, 1]] * 3)


@pytest.mark.parametrize("as_given", [np.asarray, sp.csr_matrix, lists_of])
def test_copies_keep_the_labels(as_given, tmp_path):
    X, Y = make_labels(2)
    y = as_given(Y)
    model = ALMAClassifier(random_state=0).fit(X, y)
    copies = [COPIES[travel](model, tmp_path) for travel in ("pickle", "model file")]
    model.partial_fit(X, y)
    for copied in copies:
        assert type(copied.predict(X)) is type(model.predict(X))
        assert_same(model, copied.partial_fit(X, y))


@pytest.mark.parametrize(
    ("entry", "kind"),
    [(2, sp.csr_matrix), (-1, np.asarray), (np.nan, sp.csr_matrix), (0.5, np.asarray)]
    + [(entry, None) for entry in ("1", None, [1])],
)
def test_indicator_entries_other_than_0_and_1_are_rejected(entry, kind):
    X, Y = make_labels(3)
    Y = Y.astype(object if kind is None else float)
    Y[7, 2] = entry
    told = re.escape(repr(entry)) if kind is None else f"{entry}.*"
    with pytest.raises(ValueError, match=rf"y\[7, 2\] = {told} is neither 0"):
        ALMAClassifier().fit(X, Y if kind is None else kind(Y))


@pytest.mark.parametrize(("y", "words"), [
    (make_labels(3)[1][1:], "inconsistent numbers of samples"),
    (sp.csr_matrix((N_ROWS, 0)), "one label at least"),
    (np.full((N_ROWS, 2), "1"), r"y\[0, 0\] = '1' is neither 0 nor 1"),
    ([["a"], "b", []] * 40, r"y\[1\] = 'b' is no list of labels"),
    ([1, [2, 3], []] * 40, r"y\[0\] = 1 is no list of labels, as other rows are"),
    ([[[1]], [[2]], [[1]]] * 40, r"y\[0\]\[0\] = \[1\] is a list, neither a number nor text"),
    ([["a"], [1], []] * 40, r"y mixes types: y\[0\]\[0\] is of type str, y\[1\]\[0\] is of"),
    ([[], [None], []] * 40, r"y\[1\]\[0\] is None, which is no label"),
    ([["a"], ["b"]], "inconsistent numbers of samples"),
])  # fmt: skip
def test_invalid_multilabel_targets_are_rejected(y, words):
    with pytest.raises(ValueError, match=words):
        ALMAClassifier().fit(make_labels(3)[0], y)


def test_unknown_labels_in_lists_are_reported():
    X = np.eye(3)
    model = ALMAClassifier().partial_fit(X, [["a"], [], ["b"]], classes=["a", "b"])
    unsortable = [["a"], [["b"]], []]
    new = ALMAClassifier().partial_fit
    for told, call in {
        r"y\[2\] has the label 'c'": lambda: model.partial_fit(X, [[], [], ["a", "c"]]),
        r"y\[1\]\[0\] = \['b'\] is a list": lambda: model.partial_fit(X, unsortable),
        r"y\[1\]\[0\] = .* neither a number": lambda: model.score(X, unsortable),
        "classes must be passed on the first call": lambda: new(X, [["a"], [], ["b"]]),
        "not the columns of y": lambda: new(X, np.eye(3, dtype=int), classes=[0, 1]),
    }.items():
        with pytest.raises(ValueError, match=told):
            call()


def test_single_label_methods_reject_multilabel_targets():
    X, Y = make_labels(3)
    for model in HigherOrderPerceptron(), ALMAClassifier(kernel="rbf"):
        with pytest.raises(ValueError, match="OneVsRestClassifier"):
            model.fit(X, Y)
    model = PNormPerceptron(hypothesis="vote").fit(X, Y)
    with pytest.raises(ValueError, match="several labels"):
        margins(model, X, Y)
    model = PNormPerceptron().fit(X, Y[:, 0])
    assert_array_equal(model.predict_labels(X, threshold=0.0), model.decision_function(X) >= 0)
    for wrong in {}, {"top_k": 1, "threshold": 0.0}:
        with pytest.raises(ValueError, match="Pass top_k alone, or call predict"):
            model.predict_labels(X, **wrong)
    with pytest.raises(ValueError, match="top_k must be an integer of at least 1"):
        model.predict_labels(X, top_k=0)


@pytest.mark.parametrize("make", [
    PNormPerceptron, HigherOrderPerceptron, partial(ALMAClassifier, multi_class="joint"),
    partial(ALMAClassifier, kernel="rbf"), partial(PNormPerceptron, fit_intercept=False),
])  # fmt: skip
@pytest.mark.parametrize("classes", [["c", "a", "b"], ["b", "a"]])
def test_predict_labels_returns_the_best_classes(make, classes):
    X = sp.random(90, 20, density=0.3, format="csr", random_state=0)
    X.data -= 0.5
    X[::7] = 0  # all outputs of these rows are equal
    model = make(random_state=0).fit(X, np.random.RandomState(0).choice(classes, 90))
    best = model.predict_labels(X, top_k=9)
    assert_array_equal(np.sort(best, axis=1), np.tile(sorted(classes), (90, 1)))
    assert_array_equal(best[:, 0], model.predict(X))
    assert_array_equal(best[:, :2], model.predict_labels(X, top_k=2))
    if len(classes) == 3:
        outputs = model.decision_function(X)
        places = np.searchsorted(model.classes_, best)
        assert (np.diff(np.take_along_axis(outputs, places, axis=1)) <= 0).all()


@pytest.mark.parametrize("p", [2.0, 2.0001, 3.0])
def test_weights_of_exactly_zero_predict_zero(p):
    # Equal rows with both labels make some averages exactly 0. Rounding must not change them, and
    # they must not affect the outputs of other labels.
    X, Y = np.ones((19, 27)), (np.random.RandomState(0).rand(19, 600) < 0.5).astype(int)
    model = PNormPerceptron(p=p, max_iter=1, random_state=0, fit_intercept=False).fit(X, Y)
    zero = ~model.coef_.any(axis=1)
    assert zero.any()
    assert not model.decision_function(X[:1])[0, zero].any()
    assert_is_one_versus_rest(model, X, sp.csr_matrix(Y), range(0, 600, 50))


def test_invalid_row_is_reported_in_any_part(monkeypatch):
    monkeypatch.setattr(KernelSpace, "outputs_per_part", 12)
    Z = np.random.RandomState(0).randn(20, 4)
    model = PNormPerceptron(kernel=Polynomial(8, gamma=1.0)).fit(Z, np.arange(20) % 3)
    Z[13] = 1e60
    with pytest.raises(ValueError, match=r"Row 13 of X is too long"):
        model.predict(Z)
