"""Bad input is refused with a ValueError that says what and where, and nothing has changed."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from depth import pairwise
from problems.csr import csr_of
from problems.first_order import examples
from sparsemargin import ALMAClassifier, PNormPerceptron

N_ROWS, N_FEATURES = 30, 8


@pytest.fixture
def X():
    X = sp.random(N_ROWS, N_FEATURES, density=0.5, format="csr", random_state=0)
    X.data -= 0.5
    return X


@pytest.fixture
def y():
    return np.arange(N_ROWS) % 2


def assert_refused(call, *words):
    """Call, which must raise a ValueError whose message holds all the words."""
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        call()
    message = str(refusal.value)
    for word in words:
        assert word in message


def assert_unfitted(model, X):
    for use in (model.predict, model.decision_function, lambda X: model.coef_, check_is_fitted):
        with pytest.raises(NotFittedError):
            use(model if use is check_is_fitted else X)


def assert_first_refused(model, X, y, *words, classes=(0, 1), **kwargs):
    """Neither a first fit nor a first partial_fit takes X and y, or learns anything of them."""
    for call in model.fit, partial(model.partial_fit, classes=classes):
        assert_refused(partial(call, X, y, **kwargs), *words)
        assert_unfitted(model, np.eye(N_ROWS, N_FEATURES))


def assert_refused_untouched(X, y, *words, good=None, on=("partial_fit",), given=None, **params):
    """Fit and partial_fit refuse X and y: unfitted stays unfitted, learned stays as it was.

    Where it is `good` that was learned from; `on` has the ways to learn on, `given` what else.
    """
    given = given or {}
    assert_first_refused(PNormPerceptron(**params), X, y, *words, **given)
    if good is not None:
        model = PNormPerceptron(**params).fit(good, np.arange(good.shape[0]) % 2)
        before, n_corrections = model.coef_.copy(), model.n_corrections_
        scores = model.decision_function(good)
        for learn in on:
            assert_refused(lambda learn=learn: getattr(model, learn)(X, y, **given), *words)
            assert_array_equal(model.coef_, before)
            assert_array_equal(model.decision_function(good), scores)
            assert model.n_corrections_ == n_corrections
            assert model.n_features_in_ == good.shape[1]
            # Beside the cache of coef_, the learned state itself.
            assert_array_equal(model._space.weights()[:, :N_FEATURES], before)


# -- X --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "row", "value_and_name"),
    pairwise(
        ["f4", "f8"],
        [0, 17, N_ROWS - 1],
        [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")],
    ),
)
def test_values_that_are_not_finite_are_refused_by_row_and_column(X, dtype, row, value_and_name):
    value, name = value_and_name
    bad = X.astype(dtype)
    at = bad.indptr[row + 1] - 1
    bad.data[at] = value
    where = "X", name, f"row {row}", f"column {bad.indices[at]}"
    assert_bad_rows_are_refused(X, bad, *where)
    assert_refused_untouched(bad.toarray(), np.arange(N_ROWS) % 2, "X contains", good=X)


def assert_bad_rows_are_refused(X, bad, *words):
    """Neither a model without a fit nor one of X learns from the bad rows, or predicts them."""
    y = np.arange(bad.shape[0]) % 2
    assert_refused_untouched(bad, y, *words, good=X, on=("partial_fit", "fit"))
    model = PNormPerceptron().fit(X, np.arange(N_ROWS) % 2)
    assert_refused(lambda: model.predict(bad), *words)
    assert_refused(lambda: model.decision_function(bad), *words)


def test_nan_among_unsorted_columns_is_refused(X):
    indices, indptr = np.array([3, 1, 0, 2], dtype="i4"), np.array([0, 2, 4], dtype="i4")
    bad = csr_of(np.array([1.0, np.nan, 2.0, 3.0]), indices, indptr, (2, N_FEATURES))
    assert_bad_rows_are_refused(X, bad, "NaN", "row 0", "column 1")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.ones(N_ROWS), ["2D"]),
        (np.ones((N_ROWS, 2, 2)), ["dim 3"]),
        (np.float64(3), ["2D"]),
        (np.ones((0, N_FEATURES)), ["0 sample"]),
        (np.ones((N_ROWS, 0)), ["0 feature"]),
        (sp.csr_matrix((0, N_FEATURES)), ["0 sample"]),
        (sp.csr_matrix((N_ROWS, 0)), ["0 feature"]),
        (np.full((N_ROWS, 2), "a"), ["float"]),
        (np.full((N_ROWS, 2), 1j), ["Complex"]),
        (sp.csr_matrix(np.full((N_ROWS, 2), 1j)), ["Complex"]),
        ([[1.0, 2.0], [3.0]] * (N_ROWS // 2), []),
    ],
)
def test_x_of_the_wrong_shape_or_type_is_refused(bad, words):
    assert_refused_untouched(bad, [0, 1] * (N_ROWS // 2), *words)


@pytest.mark.parametrize("n_features", [1, N_FEATURES - 1, N_FEATURES + 1, 10**6])
def test_another_number_of_features_is_refused(X, y, n_features):
    model = PNormPerceptron().fit(X, y)
    other = sp.csr_matrix(np.ones((1, 1)))
    other.resize(2, n_features)
    words = f"{n_features} features", str(N_FEATURES)
    for call in (
        lambda: model.predict(other),
        lambda: model.decision_function(other),
        lambda: model.partial_fit(other, [0, 1]),
        lambda: model.set_params(warm_start=True).fit(other, [0, 1]),
    ):
        assert_refused(call, *words)
    assert model.n_features_in_ == N_FEATURES


# -- corrupted CSR --------------------------------------------------------------------------------


def put(field, at, value):
    return lambda X: getattr(X, field).__setitem__(at, value)


def cut(length, *fields):
    return lambda X: [setattr(X, field, getattr(X, field)[:length]) for field in fields]


CORRUPTIONS = [
    (put("indices", 5, -1), ["-1", "row"]),
    (put("indices", -1, N_FEATURES), [f"index {N_FEATURES}", f"row {N_ROWS - 1}"]),
    (put("indices", 0, 2**31 - 1), [str(2**31 - 1), "row 0"]),
    (put("indptr", 9, 0), ["indptr", "row 8"]),
    (put("indptr", 0, -4), ["indptr", "row 0"]),
    (put("indptr", -1, N_ROWS * N_FEATURES // 2 + 1), ["indptr", f"row {N_ROWS - 1}"]),
    (cut(N_ROWS, "indptr"), ["indptr", str(N_ROWS + 1)]),
    (cut(0, "indptr"), ["indptr", str(N_ROWS + 1)]),
    (cut(-3, "data"), ["entries"]),
    (cut(-3, "indices"), ["entries"]),
    (cut(0, "data", "indices"), ["entries"]),
]


@pytest.mark.parametrize(
    ("corruption", "index_dtype", "kind"),
    pairwise(CORRUPTIONS, ["i4", "i8"], [sp.csr_matrix, sp.csr_array]),
)
def test_corrupted_csr_is_refused(X, corruption, index_dtype, kind):
    corrupt, words = corruption
    bad = csr_of(X.data, X.indices.astype(index_dtype), X.indptr.astype(index_dtype), X.shape, kind)
    corrupt(bad)
    assert_bad_rows_are_refused(X, bad, *words)


@pytest.mark.parametrize(
    ("indices", "indptr"),
    [("f8", "f8"), ("u4", "u4"), ("i2", "i2"), (">i4", ">i4"), ("i4", "i8"), ("i8", "i4")],
)
def test_indices_of_types_the_engine_lacks_fit_or_are_refused(X, y, indices, indptr):
    odd = csr_of(X.data, X.indices.astype(indices), X.indptr.astype(indptr), X.shape)
    expected = PNormPerceptron(random_state=0).fit(X, y)
    try:
        model = PNormPerceptron(random_state=0).fit(odd, y)
    except ValueError as refusal:
        assert "indices" in str(refusal)  # noqa: PT017
    else:
        assert_array_equal(model.coef_, expected.coef_)


VALUES = st.sampled_from([0.0, 1.0, -2.5, 0.3, 1e300, 1e-300])
LARGEST = {"i4": 2**31 - 1, "i8": 2**63 - 1}


@st.composite
def wild_arrays(draw, n_rows, n_features, integers):
    """Three arrays that have little to do with each other."""
    index = draw(st.sampled_from([st.integers(-2, n_features + 1), integers]))
    pointer = draw(st.sampled_from([st.integers(0, 12), st.integers(-2, 14), integers]))
    indptr = draw(st.lists(pointer, min_size=n_rows + 1, max_size=n_rows + 1))
    lists = st.lists(VALUES, max_size=14), st.lists(index, max_size=14)
    return *map(draw, lists), sorted(indptr) if draw(st.booleans()) else indptr


@st.composite
def sound_arrays(draw, n_rows, n_features):
    """A CSR matrix, its columns in any order."""
    lengths = draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    nnz = sum(lengths)
    data = draw(st.lists(VALUES, min_size=nnz, max_size=nnz))
    indices = draw(st.lists(st.integers(0, n_features - 1), min_size=nnz, max_size=nnz))
    return data, indices, np.cumsum([0, *lengths]).tolist()


@st.composite
def csr_triples(draw):
    """Three arrays as a CSR matrix: sound ones with up to two faults, or wild ones."""
    index_dtype = draw(st.sampled_from(["i4", "i8"]))
    n_rows, n_features = draw(st.integers(2, 6)), draw(st.integers(1, 6))
    integers = st.integers(-LARGEST[index_dtype], LARGEST[index_dtype])
    if draw(st.integers(0, 3)) == 0:
        arrays = draw(wild_arrays(n_rows, n_features, integers))
    else:
        arrays = draw(sound_arrays(n_rows, n_features))
        near = st.integers(-2, n_features + 2)
        faulty = st.sampled_from([np.nan, np.inf, -np.inf]), near | integers, near | integers
        for _ in range(draw(st.integers(0, 2))):
            which = draw(st.integers(0, 2))
            part = arrays[which]
            if draw(st.integers(0, 3)) == 0:
                del part[draw(st.integers(0, len(part))) :]
            elif part:
                part[draw(st.integers(0, len(part) - 1))] = draw(faulty[which])
    data, indices, indptr = arrays
    return csr_of(
        np.array(data, dtype="f8"),
        np.array(indices, dtype=index_dtype),
        np.array(indptr, dtype=index_dtype),
        (n_rows, n_features),
    )


def use_in_any_way(X, hypothesis, p):
    """Hand X to every way into the engine; a ValueError is the only refusal."""
    y = np.arange(X.shape[0]) % 2
    params = {"p": p, "hypothesis": hypothesis, "normalize": "max", "random_state": 0}
    learned = ALMAClassifier(p=p, hypothesis=hypothesis, random_state=0)
    learned.fit(np.eye(2, X.shape[1]), [0, 1])
    outcomes = []
    for call in (
        lambda: ALMAClassifier(**params).fit(X, y),
        lambda: PNormPerceptron(p=p, hypothesis=hypothesis, soft_margin=1.0).fit(X, y),
        lambda: learned.partial_fit(X, y),
        lambda: learned.predict(X),
    ):
        try:
            call()
        except ValueError:
            outcomes.append("refused")
        else:
            outcomes.append("taken")
    return outcomes


@examples(300)
@given(csr_triples(), st.sampled_from(["average", "vote"]), st.sampled_from([2.0, 5.0]))
def test_any_three_arrays_fit_or_are_refused(X, hypothesis, p):
    outcomes = use_in_any_way(X, hypothesis, p)
    n_rows, n_features = X.shape
    pointers, end = X.indptr, min(len(X.data), len(X.indices))
    sound = (
        len(pointers) == n_rows + 1
        and pointers[0] >= 0
        and pointers[-1] <= end
        and (pointers[1:] >= pointers[:-1]).all()
    )
    if sound:
        used = slice(pointers[0], pointers[-1])
        columns, values = X.indices[used], X.data[used]
        sound = ((columns >= 0) & (columns < n_features)).all() and np.isfinite(values).all()
    if not sound:
        assert outcomes == ["refused"] * 4


# -- sizes no machine holds -----------------------------------------------------------------------

WIDE = """
import numpy as np
from scipy.sparse import csr_matrix
from sparsemargin import PNormPerceptron

sizes = [(2, 2**50), (3, 2**62), (4, 2**62), (8, 2**62), (8, 2**61), (5, 2**63 - 1)]
for n_classes, n_features in sizes:
    columns = 10**6 * np.arange(n_classes)
    X = csr_matrix((np.ones(n_classes), columns, np.arange(n_classes + 1)), (n_classes, n_features))
    try:
        PNormPerceptron(hypothesis="last").fit(X, np.arange(n_classes))
    except (MemoryError, ValueError):
        continue
    raise AssertionError(f"{n_classes} vectors of {n_features} were made")
"""


def test_more_weights_than_can_be_addressed_are_refused():
    # In a process of its own: if the size wrapped around, the loop would write into the wild.
    command = [sys.executable, "-c", WIDE]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


# -- y --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.arange(N_ROWS - 1) % 2, [str(N_ROWS), str(N_ROWS - 1)]),
        (np.arange(N_ROWS + 1) % 2, [str(N_ROWS), str(N_ROWS + 1)]),
        (np.zeros((N_ROWS, 2, 2)), ["dim 3"]),
        (np.arange(2 * N_ROWS).reshape(-1, 2), ["y[1, 0] = 2", "neither 0 nor 1"]),
        (np.array(1), ["y", "1d"]),
        (None, ["y"]),
        (np.linspace(0, 1, N_ROWS), ["continuous"]),
        (np.where(np.arange(N_ROWS) == 3, np.nan, 1.0), ["y", "NaN"]),
        (np.where(np.arange(N_ROWS) == 3, np.inf, 1.0), ["y", "infinity"]),
        (["a", 1] * (N_ROWS // 2), ["y[0]", "str", "y[1]", "int"]),
        ([1.5, 1.5, "a"] * (N_ROWS // 3), ["y[2]", "str", "y[0]", "float"]),
        (np.array(["a", 1] * (N_ROWS // 2), dtype=object), ["y[0]", "str", "y[1]", "int"]),
        (np.array(["a", np.nan] * (N_ROWS // 2), dtype=object), ["y[0]", "str", "float"]),
        (np.array(["a", None] * (N_ROWS // 2), dtype=object), ["y[0]", "str", "NoneType"]),
        ([0, 1, None] * (N_ROWS // 3), ["label"]),
    ],
)
def test_bad_labels_are_refused(X, bad, words):
    assert_refused_untouched(X, bad, *words, good=X)


@pytest.mark.parametrize("label", [1, 0.0, "a", True])
def test_a_single_class_is_refused(X, label):
    assert_refused(lambda: PNormPerceptron().fit(X, [label] * N_ROWS), "one class", repr(label))


def test_classes_of_a_stream(X, y):
    model = PNormPerceptron()
    assert_refused(lambda: model.partial_fit(X, y), "classes", "first call")
    assert_refused(lambda: model.partial_fit(X, y, classes=[1, 1]), "one class")
    assert_refused(lambda: model.partial_fit(X, y, classes=[[0, 1]]), "1d")
    assert_refused(lambda: model.partial_fit(X, y, classes=[0, "a"]), "str")
    assert not hasattr(model, "classes_")
    model.partial_fit(X, y, classes=[0, 1])
    assert_refused(lambda: model.partial_fit(X, y, classes=[0, 1, 2]), "[0, 1, 2]", "[0, 1]")
    model.partial_fit(X, y, classes=[1, 0])


@pytest.mark.parametrize(
    ("unseen", "classes"),
    [(5, [0, 1]), (-1, [0, 1]), (0.5, [0, 1]), (1, ["0", "1"]), ("1", [0, 1])],
)
def test_an_unseen_label_is_refused_by_row(X, y, unseen, classes):
    names = np.array(classes)[y]
    bad = np.array([unseen if i == 7 else name for i, name in enumerate(names.tolist())])
    if isinstance(unseen, str) != isinstance(classes[0], str):
        bad = np.full(N_ROWS, unseen)
    row = 7 if (bad != unseen).any() else 0
    model = PNormPerceptron(fit_intercept=False).partial_fit(X, names, classes=classes)
    before = model.coef_.copy()
    words = ["continuous"] if unseen == 0.5 else [f"y[{row}]", str(unseen)]
    assert_refused(lambda: model.partial_fit(X, bad), *words)
    model.set_params(warm_start=True)
    assert_refused(lambda: model.fit(X, bad), *words)
    assert_array_equal(model._space.weights(), before)


# -- weights --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (np.full(N_ROWS, -1.0), ["egative"]),
        (np.where(np.arange(N_ROWS) == 3, -1e-9, 1), ["egative"]),
        (np.where(np.arange(N_ROWS) == 3, np.nan, 1), ["NaN"]),
        (np.where(np.arange(N_ROWS) == 3, np.inf, 1), ["sample_weight[3]", "infinite"]),
        (np.ones(N_ROWS - 1), ["sample_weight", str(N_ROWS - 1), str(N_ROWS)]),
        (np.ones((N_ROWS, 1)), ["sample_weight", "shape"]),
        (["heavy"] * N_ROWS, ["heavy"]),
    ],
)
def test_bad_sample_weights_are_refused(X, y, weights, words):
    assert_refused_untouched(X, y, *words, good=X, given={"sample_weight": weights})


def test_weights_of_zero_are_no_trials_but_a_fit_needs_one(X, y):
    assert_refused(lambda: PNormPerceptron().fit(X, y, sample_weight=np.zeros(N_ROWS)), "zero")
    model = PNormPerceptron().partial_fit(X, y, classes=[0, 1])
    before = model.coef_.copy()
    model.partial_fit(X[:1], y[:1], sample_weight=[0.0])
    assert_array_equal(model.coef_, before)


@pytest.mark.parametrize(
    ("class_weight", "words"),
    [
        ({0: 1.0, 5: 2.0}, ["class_weight"]),
        ({0: -1.0, 1: 1.0}, ["class_weight", "negative"]),
        ({0: np.nan, 1: 1.0}, ["class_weight", "finite"]),
        ({0: np.inf, 1: 1.0}, ["class_weight", "finite"]),
        ("even", ["class_weight"]),
        ([1.0, 2.0], ["class_weight"]),
    ],
)
def test_bad_class_weights_are_refused(X, y, class_weight, words):
    assert_refused_untouched(X, y, *words, class_weight=class_weight)


def test_balanced_classes_are_unknown_to_a_stream(X, y):
    model = PNormPerceptron(class_weight="balanced")
    assert_refused(lambda: model.partial_fit(X, y, classes=[0, 1]), "balanced", "partial_fit")
    assert not hasattr(model, "classes_")


# -- parameters -----------------------------------------------------------------------------------

COMMON = {
    "p": [1.99, 1, 0, -3, 1000, 64.1, np.inf, np.nan, "ln", "2", None, [2]],
    "hypothesis": ["averaged", None, 0, True],
    "normalize": ["rows", None, 1, 2.0],
    "normalize_hypotheses": ["yes", None, 2],
    "max_iter": [0, -1, 0.0, np.nan, np.inf, "5"],
    "max_corrections": [0, -1, 1.5, "all"],
    "shuffle": ["no", None, 2],
    "random_state": ["seed", -1, 1.5],
    "fit_intercept": ["yes", None, 2],
    "intercept_scaling": [0, 0.0, -1, np.nan, np.inf, "1", None],
    "soft_margin": [-1e-9, -1, np.nan, np.inf, "1", None],
    "warm_start": ["yes", None],
    "n_jobs": [1.5, "all", 0],
    "verbose": [-1, "yes", None],
}
ALMA_ONLY = {
    "alpha": [0, 0.0, -1, 1.5, np.nan, "0.9", None],
    "B": [0, -1, np.nan, np.inf, "1"],
    "C": [0, -1, np.nan, np.inf, "1", None],
    "normalize": ["mean", None, 1, 2.0],
}


@pytest.mark.parametrize(
    ("estimator", "name", "value"),
    [
        pytest.param(estimator, name, value, id=f"{estimator.__name__}-{name}-{value}")
        for estimator, table in ((PNormPerceptron, COMMON), (ALMAClassifier, ALMA_ONLY))
        for name, values in table.items()
        for value in values
    ],
)
def test_bad_parameters_are_refused_by_name(X, estimator, name, value):
    y = np.arange(N_ROWS) % 3
    assert_first_refused(estimator(**{name: value}), X, y, name, classes=[0, 1, 2])


@pytest.mark.parametrize("max_iter", [1e18, 1e30, 1e308])
def test_epochs_beyond_any_count_fit_or_are_refused(max_iter):
    try:
        model = PNormPerceptron(max_iter=max_iter).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    except ValueError as refusal:
        assert "max_iter" in str(refusal)  # noqa: PT017
    else:
        assert np.isfinite(model.coef_).all()
        assert_array_equal(model.predict([[1.0, 0.0], [0.0, 1.0]]), [0, 1])


def test_the_largest_norm_is_unknown_to_a_stream(X, y):
    model = ALMAClassifier(normalize="max")
    assert_refused(lambda: model.partial_fit(X, y, classes=[0, 1]), "normalize='max'", "running")
    assert not hasattr(model, "classes_")
    n_corrections = model.fit(X, y).n_corrections_
    assert model.partial_fit(X, y).n_corrections_ >= n_corrections


# -- order of events ------------------------------------------------------------------------------


def test_nothing_works_before_a_fit(X):
    assert_unfitted(ALMAClassifier(), X)
    for name in "intercept_", "n_corrections_", "theta_", "theta_norm_", "sparsify", "densify":
        with pytest.raises(NotFittedError):
            getattr(ALMAClassifier(), name)()


@pytest.mark.parametrize("n_features", [N_FEATURES - 3, N_FEATURES + 3])
def test_a_refused_fit_of_another_width_leaves_the_model_as_it_was(X, y, n_features):
    bad = np.ones((N_ROWS, n_features))
    bad[-1, 0] = np.nan
    assert_refused_untouched(sp.csr_matrix(bad), y, "NaN", good=X, on=("fit",))


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_after_a_refused_warm_fit_coefficients_and_predictions_are_of_one_model(X, y, hypothesis):
    params = {
        "hypothesis": hypothesis, "normalize": False, "shuffle": False, "warm_start": True,
        "fit_intercept": False,
    }  # fmt: skip
    model = PNormPerceptron(**params).fit(X, y)
    assert model.coef_.any()
    huge = X.copy()
    huge.data[huge.indptr[20] :] *= 1e300
    assert_refused(lambda: model.fit(huge, y), "Row")
    np.testing.assert_allclose(X @ model.coef_[0], model.decision_function(X), rtol=1e-9)
