"""The contract of scikit-learn: labels, formats and dtypes, copies of models, unchanged input."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import classification_report
from sklearn.utils.estimator_checks import parametrize_with_checks

from depth import pairwise, some
from problems.csr import csr_of, scrambled, shuffled_rows
from problems.models import HYPOTHESES, assert_same, hypothesis_of, make_problem
from problems.stages import COPIES
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    AutoClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    Rejector,
    ROMMAClassifier,
    SecondOrderPerceptron,
)
from sparsemargin.estimators.validation import as_csr
from sparsemargin.kernels import RBF, Polynomial

FIRST_ORDER = [
    PNormPerceptron, ALMAClassifier, MarginPerceptron, CRAMMAClassifier, ROMMAClassifier,
    MaxMarginClassifier,
]  # fmt: skip
MATRIX = [HigherOrderPerceptron, SecondOrderPerceptron]
DEFAULTS = [kind() for kind in FIRST_ORDER + MATRIX]
EACH_KIND = [*DEFAULTS, AROWClassifier(), AutoClassifier(), ALMAClassifier(multi_class="joint")]
OTHERS = [
    ALMAClassifier(kernel=RBF(1.0)),
    *(kind(fit_intercept=False) for kind in FIRST_ORDER + MATRIX),
    *(ROMMAClassifier(aggressive=True, fit_intercept=on) for on in (False, True)),
    *(
        kind(kernel=Polynomial(gamma=1.0))
        for kind in FIRST_ORDER
        if kind is not MaxMarginClassifier
    ),
    *(kind(kernel=RBF(1.0), max_updates=50) for kind in MATRIX),
    *(kind(solver="primal", fit_intercept=on) for kind in MATRIX for on in (False, True)),
    # The time of an update grows with the number of updates, and one check makes thousands.
    *(kind(solver="implicit", max_updates=50) for kind in MATRIX),
    HigherOrderPerceptron(p=4.0),
]
ONLINE = "An online algorithm makes one correction where a row of weight 2 stands for two rows."
NOT_EQUIVALENT = {
    "check_sample_weight_equivalence_on_dense_data": ONLINE,
    "check_sample_weight_equivalence_on_sparse_data": ONLINE,
}


@parametrize_with_checks(
    some(EACH_KIND[::2], EACH_KIND + OTHERS),
    expected_failed_checks=lambda estimator: (
        NOT_EQUIVALENT if "class_weight" in estimator.get_params() else {}
    ),
)
def test_scikit_learn_estimator_checks(estimator, check):
    check(estimator)


def make_rows(n_classes=2, m=60):
    return make_problem(m, n_classes=n_classes)


@pytest.mark.parametrize(
    ("travel", "p", "hypothesis", "n_classes"),
    pairwise(list(COPIES), [2.0, 6.0], HYPOTHESES, [2, 3]),
)
def test_copy_predicts_and_trains_bitwise_equally(travel, p, hypothesis, n_classes, tmp_path):
    X, y = make_rows(n_classes)
    classes = np.arange(n_classes)
    # The first batch is too small to measure the scale of the intercept, so it is given.
    params = {"p": p, "hypothesis": hypothesis, "random_state": 0, "intercept_scaling": 1.0}
    model = ALMAClassifier(**params).partial_fit(X[:30], y[:30], classes=classes)
    copied = COPIES[travel](model, tmp_path)
    assert_same(copied, model)
    copied.partial_fit(X[30:], y[30:])
    assert model.space.trials == 30
    model.partial_fit(X[30:], y[30:])
    assert_same(copied, model)
    whole = ALMAClassifier(**params).partial_fit(X, y, classes=classes)
    for each in model, whole:
        # `excess` counts repeated rows of earlier calls, and `whole` has no earlier call.
        if each.fitted.progress is not None:
            each.fitted.progress.fingerprints.excess = 0.0
    assert_same(model, whole)


@pytest.mark.parametrize("classifier", [CRAMMAClassifier, MaxMarginClassifier, ROMMAClassifier])
def test_classifiers_without_weighted_steps_take_no_weights(classifier):
    for call in classifier().fit, classifier().partial_fit:
        assert "sample_weight" not in call.__doc__
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            call(*make_rows(), sample_weight=np.ones(60))


WITH_WEIGHTS = [
    (partial(PNormPerceptron, p=2.0), "f4", "f4"),
    (partial(PNormPerceptron, p=2.0), "i8", "f8"),
    (partial(PNormPerceptron, p=6.0), "f4", "f8"),
    (partial(PNormPerceptron, p=6.0), "f8", "f8"),
    (partial(HigherOrderPerceptron, solver="primal"), "f4", "f8"),
    (partial(SecondOrderPerceptron, solver="implicit"), "i8", "f8"),
]


@pytest.mark.parametrize(
    ("kind", "hypothesis", "n_classes"),
    pairwise(WITH_WEIGHTS, ["last", "average"], [2, 3, 20]),
)
def test_coef_and_intercept_have_one_row_per_label(kind, hypothesis, n_classes):
    make, given, expected = kind
    n_labels = 1 if n_classes == 2 else n_classes
    X, y = make_rows(n_classes)
    X = X.astype(given) if given[0] == "f" else X.sign().astype(given)
    model = make(hypothesis=hypothesis, fit_intercept=True).fit(X, y)
    assert model.coef_.shape == (n_labels, 25)
    assert model.intercept_.shape == (n_labels,)
    assert model.coef_.dtype == model.intercept_.dtype == np.dtype(expected)
    scores = model.decision_function(X)
    assert scores.shape == ((60,) if n_labels == 1 else (60, n_labels))
    assert scores.dtype == np.float64
    by_hand = X @ model.coef_.T.astype(float) + model.intercept_
    rounding = 1e-5 if expected == "f4" else 1e-12
    assert_allclose(scores.reshape(by_hand.shape), by_hand, rtol=rounding, atol=rounding)
    if n_labels == 1:
        assert type(model.n_corrections_) is int
    else:
        assert model.n_corrections_.shape == (n_labels,)


@pytest.mark.parametrize("hypothesis", ["vote", "random"])
def test_coef_of_votes_raises_an_explanatory_error(hypothesis):
    model = PNormPerceptron(hypothesis=hypothesis).fit(*make_rows())
    for attribute in "coef_", "intercept_":
        with pytest.raises(AttributeError, match=f"'{hypothesis}' has no single .*'average'"):
            getattr(model, attribute)


def test_changing_returned_coefficients_keeps_the_model_intact():
    X, y = make_rows()
    model = PNormPerceptron(random_state=0).fit(X, y)
    dense, scores = model.coef_, model.decision_function(X)
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    assert_array_equal(model.coef_.toarray(), dense)
    assert_array_equal(model.decision_function(X), scores)
    assert sp.issparse(pickle.loads(pickle.dumps(model)).coef_)
    assert_array_equal(model.densify().coef_, dense)
    model.coef_[:] = 7
    assert_array_equal(model.decision_function(X), scores)


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array([-5, 2**40, 2**60]),
        np.array([2**60, 2**60 + 1], dtype=np.uint64),
        np.array([-30000, 0, 30000], dtype=np.int16),
        np.array([f"topic {i:02}" for i in range(20)]),
    ],
    ids=lambda names: f"{names.dtype}-{len(names)}",
)
def test_type_of_labels_does_not_change_the_model(names):
    X, codes = make_rows(len(names))
    params = {"p": 4, "random_state": 0}
    plain = PNormPerceptron(**params).fit(X, codes)
    for given_as in np.asarray, list:
        model = PNormPerceptron(**params).fit(X, given_as(names[codes]))
        assert_array_equal(model.classes_, names)
        assert_array_equal(model.coef_, plain.coef_)
        assert_array_equal(model.predict(X), names[plain.predict(X)])
        assert model.score(X, given_as(names[codes])) == plain.score(X, codes)
        # Text classes have a str dtype, in memory as in model files, which can't hold objects.
        kept = model.classes_.dtype
        assert (
            given_as is list or kept == (names.astype(str) if names.dtype == "O" else names).dtype
        )
    streamed = PNormPerceptron(**params).partial_fit(X, names[codes], classes=names[::-1])
    assert_array_equal(streamed.classes_, names)


def test_object_labels_are_predicted_as_strings():
    X, codes = make_rows(2)
    y = np.array(["no", "yes"], dtype=object)[codes]
    for given in y, pd.Series(y), pd.Series(y, dtype="category"):
        model = ALMAClassifier(random_state=0).fit(X, given)
        told = model.predict(X)
        assert model.classes_.tolist() == ["no", "yes"]
        assert {"no", "yes"} < set(classification_report(given, told, output_dict=True))
        assert (pd.Series(told) == pd.Series(y)).mean() == model.score(X, given)
        rejector = Rejector(ALMAClassifier(), max_error=0.5, unknown="unassigned").fit(X, given)
        assert set(rejector.predict(X)) <= {"no", "yes", "unassigned"}


def with_arrays(X, *arrays):
    return csr_of(*arrays, X.shape)


def memory_mapped(X, directory):
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(directory / name, getattr(X, name))
        parts.append(np.load(directory / f"{name}.npy", mmap_mode="r"))
    return with_arrays(X, *parts)


def parts_of(X):
    return (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)


def with_zeros(X):
    """Return X with every entry stored, including zeros."""
    m, n = X.shape
    columns, starts = np.tile(np.arange(n, dtype="i4"), m), n * np.arange(m + 1, dtype="i4")
    return with_arrays(X, X.toarray().ravel(), columns, starts)


def indexed(indices, indptr):
    return lambda X: with_arrays(X, X.data, X.indices.astype(indices), X.indptr.astype(indptr))


def big_endian(form):
    def converted(X):
        X = X.asformat(form).copy()
        X.data = X.data.astype(">f8")
        return X

    return converted


FORMATS = {
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "dense": lambda X: X.toarray(),
    "fortran": lambda X: np.asfortranarray(X.toarray()),
    "lists": lambda X: X.toarray().tolist(),
    "big-endian dense": lambda X: X.toarray().astype(">f8"),
    **{f"big-endian {form}": big_endian(form) for form in ("csr", "csc", "bsr", "coo", "dia")},
    "long indices": indexed("i8", "i8"),
    "longer indices than pointers": indexed("i8", "i4"),
    "longer pointers than indices": indexed("i4", "i8"),
    "unsigned indices": indexed("u4", "u4"),
    "short indices": indexed("i2", "i2"),
    "longer arrays than indptr says": lambda X: with_arrays(
        X, np.append(X.data, np.nan), np.append(X.indices, 10**6).astype("i4"), X.indptr
    ),
    "memory-mapped": memory_mapped,
    "stored zeros": with_zeros,
    "columns in any order": shuffled_rows,
    "columns in any order and twice": scrambled,
    "the same from row 30 on": lambda X: sp.vstack([X[:30], scrambled(X[30:])], format="csr"),
}
OF_EACH_LOOP = [
    partial(ALMAClassifier, p=2.0),
    partial(ALMAClassifier, p=6.0, normalize=False),
    partial(HigherOrderPerceptron, solver="implicit"),
    partial(HigherOrderPerceptron, kernel=RBF(0.1)),
    partial(SecondOrderPerceptron, solver="primal"),
]


@pytest.mark.parametrize(
    ("form", "make", "hypothesis"), pairwise(list(FORMATS), OF_EACH_LOOP, HYPOTHESES)
)
def test_model_does_not_depend_on_the_matrix_format(form, make, hypothesis, tmp_path):
    X, y = make_rows(3)
    given = FORMATS[form](X, tmp_path) if form == "memory-mapped" else FORMATS[form](X)
    y.flags.writeable = False
    hypothesis = hypothesis_of(make, hypothesis)

    def learned(method, rows, **classes):
        # Unsorted columns are found during a fit, and must not change the numbers that are drawn.
        model = make(hypothesis=hypothesis, random_state=np.random.RandomState(0))
        return getattr(model, method)(rows, y, **classes).set_params(random_state=0)

    def assert_near(model, expected, rows=X):
        """Compare up to rounding, as sums are computed in another order."""
        assert_array_equal(model.n_corrections_, expected.n_corrections_)
        outputs = expected.decision_function(X)
        assert_allclose(model.decision_function(rows), outputs, rtol=1e-11, atol=1e-11)

    model, expected = learned("fit", given), learned("fit", X)
    assert_near(model, expected)
    assert_near(expected, expected, given)
    assert_array_equal(expected.predict(given), expected.predict(X))
    assert_near(model.partial_fit(given, y), expected.partial_fit(X, y))
    streamed = learned("partial_fit", given, classes=range(3))
    assert_near(streamed, learned("partial_fit", X, classes=range(3)))


@pytest.mark.parametrize("density", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("dtype", "order"), [("f4", "C"), ("f8", "F")])
def test_dense_rows_are_converted_as_by_scipy(density, dtype, order):
    random = np.random.RandomState(0)
    X = random.standard_normal((5, 7)) * (random.uniform(size=(5, 7)) < density)
    X = np.array(X, dtype, order=order)
    converted, expected = as_csr(X), sp.csr_matrix(X)
    for part, of_scipy in zip(parts_of(converted), parts_of(expected), strict=True):
        assert_array_equal(part, of_scipy, strict=True)
    # The values of an array without zeros are not copied.
    assert np.shares_memory(converted.data, X) == (density == 1 and order == "C")


@pytest.mark.parametrize("dtype", ["f4", "i1", "i8", "u2", "?"])
def test_unsupported_value_types_are_converted(dtype):
    X, y = make_rows()
    X = abs(X.sign()).astype(dtype)
    model = PNormPerceptron(p=3, random_state=0)
    assert_same(clone(model).fit(X, y), model.fit(X.astype("f8"), y))


@pytest.mark.parametrize(("learned", "rounding"), [("f4", 1e-6), ("f8", 0)])
def test_model_predicts_rows_of_another_value_type(learned, rounding):
    X, y = make_rows()
    X = X.sign()
    model = PNormPerceptron(normalize=False, random_state=0).fit(X.astype(learned), y)
    # If rows and weights are float32, short sums of their products are float32, too.
    narrow, wide = (model.decision_function(X.astype(dtype)) for dtype in ("f4", "f8"))
    assert_allclose(narrow, wide, rtol=rounding, atol=rounding)


@pytest.mark.parametrize("form", [sp.csr_matrix, scrambled, shuffled_rows, sp.csr_matrix.toarray])
@pytest.mark.parametrize("make", OF_EACH_LOOP)
def test_input_arrays_are_not_modified(form, make):
    X, y = make_rows(3)
    X, weights = form(X), np.linspace(0, 1, len(y))
    arrays = parts_of(X)
    before = [part.tobytes() for part in (*arrays, y, weights)]
    model = make(hypothesis=hypothesis_of(make, "vote"), intercept_scaling=1.0)
    model.fit(X, y, sample_weight=weights).partial_fit(X, y, sample_weight=weights)
    model.predict(X)
    model.decision_function(X)
    assert all(part is array for part, array in zip(parts_of(X), arrays, strict=True))
    assert [part.tobytes() for part in (*arrays, y, weights)] == before


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_sparse_rows_are_not_densified(hypothesis):
    n_features, rng = 500_000, np.random.RandomState(0)
    values, columns = rng.standard_normal(300), rng.randint(n_features, size=300)
    X = sp.csr_matrix((values, columns, np.arange(0, 301, 3)), shape=(100, n_features))
    y = np.arange(100) % 2
    model = ALMAClassifier(p=4, hypothesis=hypothesis, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y).partial_fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # Memory is enough for a few dense vectors, but not for one dense vector per row.
    assert peak < 10 * 8 * n_features
