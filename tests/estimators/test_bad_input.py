"""Bad input raises a ValueError that names the problem and its place, and changes no model."""

import copy
import datetime
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import OneHotEncoder

from depth import pairwise
from problems.csr import csr_of, shuffled_rows
from problems.models import assert_same
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    CellClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
    fit_csr,
)

N_ROWS, N_FEATURES = 30, 8
Y = np.arange(N_ROWS) % 2


@pytest.fixture
def X():
    X = sp.random(N_ROWS, N_FEATURES, density=0.5, format="csr", random_state=0)
    X.data -= 0.5
    return X


def assert_refused(call, *words):
    """Check that the call raises a ValueError whose message contains all words."""
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        call()
    for word in words:
        assert word in str(refusal.value)


def assert_unfitted(model):
    X = np.eye(N_ROWS, N_FEATURES)
    for use in (model.predict, model.decision_function, lambda X: model.coef_):
        with pytest.raises(NotFittedError):
            use(X)
    assert not hasattr(model, "classes_")


def assert_first_refused(model, X, y, *words, classes=(0, 1), **given):
    """Check that a first `fit` or `partial_fit` refuses X and y, and leaves the model unfitted."""
    for call in model.fit, partial(model.partial_fit, classes=classes):
        assert_refused(partial(call, X, y, **given), *words)
        assert_unfitted(model)


def assert_refused_by(model, calls, *words):
    """Check that each of the calls is refused and leaves the fitted model unchanged."""
    before = copy.deepcopy(model)
    for call in calls:
        assert_refused(call, *words)
        assert_same(model, before)
    if not model.get_params().get("kernel"):
        assert_array_equal(model.coef_, before.coef_)


def assert_bad_rows_are_refused(X, bad, *words, make=PNormPerceptron):
    y = np.arange(bad.shape[0]) % 2
    assert_first_refused(make(), bad, y, *words)
    model = make().fit(X, Y)
    calls = [
        partial(model.partial_fit, bad, y), partial(model.fit, bad, y),
        partial(model.predict, bad), partial(model.decision_function, bad),
    ]  # fmt: skip
    assert_refused_by(model, calls, *words)


OF_EACH_LOOP = [
    PNormPerceptron,
    partial(PNormPerceptron, kernel="poly"),
    partial(HigherOrderPerceptron, solver="implicit"),
    partial(HigherOrderPerceptron, solver="primal"),
    partial(SecondOrderPerceptron, solver="implicit"),
]


@pytest.mark.parametrize(
    ("make", "stored", "dtype", "row", "value_and_name"),
    pairwise(
        OF_EACH_LOOP,
        [sp.csr_matrix.copy, shuffled_rows],
        ["f4", "f8"],
        [0, 17, N_ROWS - 1],
        [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")],
    ),
)
def test_non_finite_values_are_reported_with_their_position(
    X, make, stored, dtype, row, value_and_name
):
    value, name = value_and_name
    bad = stored(X.astype(dtype))
    at = bad.indptr[row + 1] - 1
    bad.data[at] = value
    words = "X", name, f"row {row}", f"column {bad.indices[at]}"
    assert_bad_rows_are_refused(X, bad, *words, make=make)
    assert_bad_rows_are_refused(X, bad.toarray(), "X contains", make=make)


@pytest.mark.parametrize("n_features", [1, N_FEATURES - 1, N_FEATURES + 1, 10**6])
def test_different_number_of_features_is_rejected(X, n_features):
    model = PNormPerceptron(warm_start=True).fit(X, Y)
    other = sp.csr_matrix(np.ones((1, 1)))
    other.resize(2, n_features)
    calls = [
        partial(model.predict, other), partial(model.decision_function, other),
        partial(model.partial_fit, other, [0, 1]), partial(model.fit, other, [0, 1]),
    ]  # fmt: skip
    assert_refused_by(model, calls, f"{n_features} features", str(N_FEATURES))


def put(field, at, value):
    return lambda X: getattr(X, field).__setitem__(at, value)


def cut(length, *fields):
    return lambda X: [setattr(X, field, getattr(X, field)[:length]) for field in fields]


CORRUPTIONS = [
    (put("indices", 5, -1), ["-1", "row"]),
    (put("indices", -1, N_FEATURES), [f"index {N_FEATURES}", f"row {N_ROWS - 1}"]),
    (put("indptr", 9, 0), ["indptr", "row 8"]),
    (put("indptr", 0, -4), ["indptr", "row 0"]),
    (put("indptr", -1, N_ROWS * N_FEATURES // 2 + 1), ["indptr", f"row {N_ROWS - 1}"]),
    (cut(N_ROWS, "indptr"), ["indptr", str(N_ROWS + 1)]),
    (cut(-3, "data"), ["entries"]),
    (cut(0, "data", "indices"), ["entries"]),
]


@pytest.mark.parametrize(
    ("corruption", "index_dtype", "kind"),
    pairwise(CORRUPTIONS, ["i4", "i8"], [sp.csr_matrix, sp.csr_array]),
)
def test_corrupted_csr_is_rejected(X, corruption, index_dtype, kind):
    corrupt, words = corruption
    bad = csr_of(X.data, X.indices.astype(index_dtype), X.indptr.astype(index_dtype), X.shape, kind)
    corrupt(bad)
    assert_bad_rows_are_refused(X, bad, *words)


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


def test_too_many_weights_to_address_are_rejected():
    # A separate process is used because a size that wraps around could corrupt memory.
    subprocess.run([sys.executable, "-c", WIDE], check=True)


def at_3(value):
    return np.where(np.arange(N_ROWS) == 3, value, 1.0)


@pytest.mark.parametrize(("argument", "bad", "words"), [
    ("X", np.ones(N_ROWS), ["2D"]),
    ("X", np.ones((N_ROWS, 2, 2)), ["dim 3"]),
    ("X", sp.csr_matrix((0, N_FEATURES)), ["0 sample"]),
    ("X", sp.csr_matrix((N_ROWS, 0)), ["0 feature"]),
    ("X", np.full((N_ROWS, 2), "a"), ["float"]),
    ("X", sp.csr_matrix(np.full((N_ROWS, 2), 1j)), ["Complex"]),
    ("X", [[1.0, 2.0], [3.0]] * (N_ROWS // 2), []),
    ("y", np.arange(N_ROWS + 1) % 2, [str(N_ROWS), str(N_ROWS + 1)]),
    ("y", np.arange(2 * N_ROWS).reshape(-1, 2), ["y[1, 0] = 2", "neither 0 nor 1"]),
    ("y", None, ["y"]),
    ("y", np.linspace(0, 1, N_ROWS), ["continuous"]),
    ("y", at_3(np.nan), ["y[3] is NaN", "Leave rows"]),
    ("y", [1.5, 1.5, "a"] * (N_ROWS // 3), ["y[2]", "str", "y[0]", "float"]),
    ("y", np.array(["a", 1] * (N_ROWS // 2), dtype=object), ["y[0]", "str", "y[1]", "int"]),
    ("y", np.array(["a", np.nan] * (N_ROWS // 2), dtype=object), ["y[1] is NaN", "Leave rows"]),
    ("y", ["a", "b", None] * (N_ROWS // 3), ["y[2] is None", "Leave rows"]),
    ("y", ["a", "b", 1.5] * (N_ROWS // 3), ["y[0]", "str", "y[2]", "float"]),
    ("y", [0, 1, None] * (N_ROWS // 3), ["label"]),
    ("sample_weight", at_3(-1e-9), ["egative"]),
    ("sample_weight", at_3(np.nan), ["NaN"]),
    ("sample_weight", at_3(np.inf), ["sample_weight[3]", "infinite"]),
    ("sample_weight", np.ones(N_ROWS - 1), ["sample_weight", str(N_ROWS - 1), str(N_ROWS)]),
    ("sample_weight", np.ones((N_ROWS, 1)), ["sample_weight", "shape"]),
    ("sample_weight", ["heavy"] * N_ROWS, ["heavy"]),
])  # fmt: skip
def test_invalid_X_y_and_sample_weight_are_rejected(X, argument, bad, words):
    given = {"X": X, "y": Y, argument: bad}
    assert_first_refused(PNormPerceptron(), given.pop("X"), given.pop("y"), *words, **given)
    model = PNormPerceptron().fit(X, Y)
    call = partial(model.partial_fit, **{"X": X, "y": Y, argument: bad})
    assert_refused_by(model, [call], *words)


def test_fit_and_partial_fit_check_the_classes(X):
    for label, told in (1, "1"), (0.0, "0"), ("a", "a"), (True, "True"):
        one = [label] * N_ROWS
        assert_refused(partial(PNormPerceptron().fit, X, one), f"one class only, {told};")
    model = PNormPerceptron()
    assert_refused(partial(model.partial_fit, X, Y), "classes", "first call")
    for classes, word in ([1, 1], "one class"), ([[0, 1]], "1d"), ([0, "a"], "str"):
        assert_refused(partial(model.partial_fit, X, Y, classes=classes), word)
    assert_unfitted(model)
    model.partial_fit(X, Y, classes=[0, 1])
    assert_refused(partial(model.partial_fit, X, Y, classes=[0, 1, 2]), "[0, 1, 2]", "[0, 1]")
    model.partial_fit(X, Y, classes=[1, 0])


@pytest.mark.parametrize(("classes", "unseen", "words"), [
    ([0, 1], 5, ["y[7]", "5"]),
    ([0, 1], 0.5, ["continuous"]),
    (["a", "b"], "c", ["y[7]", "c"]),
    (["0", "1"], Y, ["y[0]", "0"]),
    ([0, 1], Y.astype(str), ["y[0]", "0"]),
])  # fmt: skip
def test_unseen_label_is_reported_with_its_row(X, classes, unseen, words):
    names = np.array(classes)[Y]
    bad = np.where(np.arange(N_ROWS) == 7, unseen, names) if np.ndim(unseen) == 0 else unseen
    model = PNormPerceptron(warm_start=True).partial_fit(X, names, classes=classes)
    calls = partial(model.partial_fit, X, bad), partial(model.fit, X, bad)
    assert_refused_by(model, calls, *words)


def test_rows_of_weight_0_are_skipped_but_not_all_may_be_0(X):
    assert_refused(lambda: PNormPerceptron().fit(X, Y, sample_weight=np.zeros(N_ROWS)), "zero")
    model = PNormPerceptron().partial_fit(X, Y, classes=[0, 1])
    before = model.coef_.copy()
    model.partial_fit(X[:1], Y[:1], sample_weight=[0.0])
    assert_array_equal(model.coef_, before)


COMMON = {
    "hypothesis": ["averaged", None, 0, True],
    "max_iter": [0, -1, 0.0, np.nan, np.inf, "5"],
    "max_corrections": [0, -1, 1.5, "all"],
    "shuffle": ["no", None, 2],
    "random_state": ["seed", -1, 1.5],
    "fit_intercept": ["yes", None, 2],
    "warm_start": ["yes", None],
    "n_jobs": [1.5, "all", 0],
    "verbose": [-1, "yes", None],
    "class_weight": [{0: 1.0, 5: 2.0}, {0: -1.0, 1: 1.0}, {0: np.nan}, {0: np.inf}, "even", [1.0]],
    "intercept_scaling": [0, -1, np.nan, np.inf, "1", None],
}
OWN = {
    PNormPerceptron: {
        "p": [1.99, 0, -3, 1000, 64.1, np.inf, np.nan, "ln", "2", None, [2]],
        "normalize": ["rows", None, 1, 2.0],
        "normalize_hypotheses": ["yes", None, 2],
        "soft_margin": [-1e-9, -1, np.nan, np.inf, "1", None],
    },
    ALMAClassifier: {
        "alpha": [0, 0.0, -1, 1.5, np.nan, "0.9", None],
        "C": [0, -1, np.nan, np.inf, "1", None],
        "normalize": ["mean", None, 1, 2.0],
    },
    HigherOrderPerceptron: {
        "p": [1.99, 0, -3, np.inf, np.nan, "2", None],
        "c": [1, 1.0, -0.1, 2.0, np.nan, "0.4", None],
        "sparse_updates": ["yes", None, 2],
        "max_updates": [0, -1, 1.5, "all"],
        "solver": ["cholesky", "", None, 1],
    },
    SecondOrderPerceptron: {
        "a": [0, 0.0, -1.0, np.inf, np.nan, "1", None],
        "alpha": [0, 0.0, -1, 1.5, np.nan, "0.9"],
    },
}


@pytest.mark.parametrize(("estimator", "name", "values"), [
    (estimator, name, values)
    for estimator, own in OWN.items()
    for name, values in (own | COMMON).items()
])  # fmt: skip
def test_invalid_parameters_are_named(X, estimator, name, values):
    y = np.arange(N_ROWS) % 3
    for value in values:
        assert_first_refused(estimator(**{name: value}), X, y, name, classes=[0, 1, 2])


def test_message_about_p_depends_on_the_violated_limit(X):
    for p, told in (1, r"\[2, 64\] or a str"), (65, r"\[2, 64\] \(p > 2 ln n_features gains"):
        with pytest.raises(ValueError, match=told):
            PNormPerceptron(p=p).fit(X, Y)


def test_too_large_max_iter_is_rejected():
    assert_refused(partial(PNormPerceptron(max_iter=1e30).fit, np.eye(2), [0, 1]), "max_iter")


def test_partial_fit_rejects_options_that_need_all_rows(X):
    for name, value, word in ("class_weight", "balanced", ""), ("normalize", "max", "running"):
        model = ALMAClassifier(**{name: value})
        assert_refused(partial(model.partial_fit, X, Y, classes=[0, 1]), name, value, word)
        assert_unfitted(model)
    n_corrections = model.fit(X, Y).n_corrections_
    assert model.partial_fit(X, Y).n_corrections_ >= n_corrections


def test_methods_raise_before_fit():
    model = ALMAClassifier()
    assert_unfitted(model)
    for name in "intercept_", "n_corrections_", "theta_", "theta_norm_", "sparsify", "densify":
        with pytest.raises(NotFittedError):
            getattr(model, name)()


@pytest.mark.parametrize("hypothesis", ["last", "average"])
def test_rejected_warm_start_leaves_the_model_consistent(X, hypothesis):
    model = PNormPerceptron(
        hypothesis=hypothesis, normalize=False, shuffle=False, warm_start=True, fit_intercept=False
    ).fit(X, Y)
    assert model.coef_.any()
    huge = X.copy()
    huge.data[huge.indptr[20] :] *= 1e300
    assert_refused(lambda: model.fit(huge, Y), "Row")
    assert_allclose(X @ model.coef_[0], model.decision_function(X), rtol=1e-9)


@pytest.mark.parametrize("name", ["p", "max_iter", "max_corrections"])
def test_integers_beyond_float_range_are_rejected(name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of PNormPerceptron must be"):
        PNormPerceptron(**{name: 10**400}).fit(np.eye(2), [0, 1])


@pytest.mark.parametrize("weights", ["balanced", ["a", "b"], {"a": 1}])
def test_non_numeric_weights_are_reported(weights):
    with pytest.raises(ValueError, match=r"sample_weight is no array of numbers.*class_weight"):
        PNormPerceptron().fit(np.eye(2), [0, 1], sample_weight=weights)


def test_masked_values_and_weights_are_rejected_with_a_remedy():
    X = np.random.RandomState(0).randn(60, 5)
    y = (X[:, 0] > 0).tolist()
    masked = np.ma.masked_array(X, mask=X > 1.5)
    model = AROWClassifier(random_state=0).fit(X, y)
    for call in partial(fit_csr, masked, y), partial(model.predict, masked):
        with pytest.raises(ValueError, match=r"X\[0, 0\] is masked: .* then X\[keep\] and"):
            call()
    keep = ~np.ma.getmaskarray(masked).any(axis=1)
    assert fit_csr(masked[keep], np.asarray(y)[keep]).n_features_in_ == 5
    weights = np.ma.masked_array(np.ones(60), mask=X[:, 1] > 1)
    with pytest.raises(ValueError, match=r"sample_weight has masked .*sample_weight\.filled\(0\)"):
        fit_csr(X, y, sample_weight=weights)
    fitted = AROWClassifier(random_state=0).fit(X, y, weights.filled(0))
    expected = AROWClassifier(random_state=0).fit(X, y, ~weights.mask)
    assert_array_equal(fitted.coef_, expected.coef_)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
def test_iterators_are_refused_with_a_remedy_that_works(X, name):
    given = {"X": X.toarray().tolist(), "y": Y.tolist(), "sample_weight": [1.0] * N_ROWS}
    values = given[name]
    for iterator in iter(values), (each for each in values):
        told = f"{name} is a {type(iterator).__name__}, which can be read only once. Pass list("
        assert_refused(partial(AROWClassifier().fit, **{**given, name: iterator}), told)
    AROWClassifier().fit(**{**given, name: list(iter(values))})


@pytest.mark.parametrize(
    "value", ["red", b"red", pd.Timestamp("2020-01-01"), pd.Period("2020-01"), pd.Interval(0, 1)]
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_without_numbers_are_named(X, value, library):
    if library == "polars" and not isinstance(value, str | pd.Timestamp):
        pytest.skip("polars has no such values")
    new_table = pytest.importorskip(library).DataFrame
    table = new_table({"one": [0.5, 1.5] * 15, "two": [value] * N_ROWS})
    told = "The column 'two' of X has values that are no numbers, such as"
    assert_refused(partial(fit_csr, table, Y), told, "or leave it out")
    model = fit_csr(table[["one"]], Y)
    table = new_table({"one": [value] * N_ROWS})
    assert_refused(partial(model.predict, table), "The column 'one' of X has values")
    if isinstance(value, pd.Timestamp):
        assert_refused(partial(model.predict, table.to_numpy()), "X holds dates or times")


@pytest.mark.parametrize(
    "value", [datetime.date(2020, 1, 1), datetime.time(12), datetime.timedelta(1), "red"]
)
def test_columns_of_pyarrow_without_numbers_are_named(value):
    """NumPy converts dates and durations of pyarrow to numbers, without an error."""
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"one": [0.5, 1.5] * 15, "two": [value] * N_ROWS})
    told = "The column 'two' of X has values that are no numbers, such as"
    for each in table, table.to_batches()[0]:
        assert_refused(partial(fit_csr, each, Y), told, "or leave it out")
    told = "The column 'two' has values that are no numbers"
    assert_refused(partial(CellClassifier().fit, table, Y), told, "leave it out")


def test_missing_categories_of_whole_numbers_are_refused():
    """pandas converts them to -9.2e18, beside columns of integers."""
    table = pd.DataFrame({"one": np.arange(N_ROWS), "two": pd.Categorical([None, 1, 2] * 10)})
    told = "The column 'two' of X has a missing category in row 0."
    assert_refused(partial(fit_csr, table, Y), told, "OneHotEncoder", "leave it out")
    assert_refused(partial(CellClassifier().fit, table, Y), "'two' has a missing category in row 0")
    encoded = make_column_transformer((OneHotEncoder(), ["two"]), remainder="passthrough")
    fit_csr(encoded.fit_transform(table), Y)
    fit_csr(table[["one"]], Y)
    table["two"] = pd.Categorical([None, "a", "b"] * 10)
    told = "The column 'two' of X has values that are no numbers, such as 'a'"
    assert_refused(partial(fit_csr, table, Y), told)


@pytest.mark.parametrize("column", [
    pd.Categorical(pd.to_datetime(["2020-01-01", "2021-01-01"] * 15)),
    pd.to_timedelta(["1h", None] * 15), pd.to_datetime([None] * N_ROWS),
], ids=lambda column: str(column.dtype)[:20])  # fmt: skip
def test_times_are_refused_in_all_forms(column):
    table = pd.DataFrame({"one": np.arange(N_ROWS), "two": column})
    assert_refused(partial(fit_csr, table, Y), "The column 'two' of X has ")
    assert_refused(partial(CellClassifier().fit, table, Y), "The column 'two' has ")


@pytest.mark.parametrize("unit", ["s", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("value", [None, pd.Timestamp("2020-01-01")])
def test_times_of_pyarrow_are_refused(unit, zone, value):
    pyarrow = pytest.importorskip("pyarrow")
    times = pyarrow.array([value] * N_ROWS, pyarrow.timestamp(unit, tz=zone))
    table = pyarrow.table({"one": [0.5, 1.5] * 15, "two": times})
    assert_refused(partial(fit_csr, table, Y), "The column 'two' of X has ")


def test_times_in_arrays_and_lists_are_refused():
    times = np.full((N_ROWS, 2), np.datetime64("2020-01-01"))
    for each in times, [list(row) for row in times], times - times:
        assert_refused(partial(fit_csr, each, Y), "X holds dates or times")
    assert_refused(partial(CellClassifier(normalize=None).fit, times, Y), "X holds dates or times")


def test_classes_that_can_be_read_only_once_are_named(X):
    model = AROWClassifier()
    assert_refused(partial(model.partial_fit, X, Y, classes=iter([0, 1])), "classes is a list_iter")
    # This iterator of NumPy can be read as an array.
    fit_csr(X, Y.flat)
