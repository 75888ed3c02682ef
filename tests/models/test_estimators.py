"""The scikit-learn contract: labels, formats and types in; models that travel; X left alone."""

import pickle
import sys
import tracemalloc
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from problems.contract import NOT_EQUIVALENT
from problems.stages import COPIES
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    MarginPerceptron,
    MaxMarginClassifier,
    PNormPerceptron,
    ROMMAClassifier,
)
from sparsemargin._engine.first_order import spaces

ESTIMATORS = [PNormPerceptron, ALMAClassifier]
ALL_ESTIMATORS = [
    *ESTIMATORS, MarginPerceptron, CRAMMAClassifier,
    ROMMAClassifier, partial(ROMMAClassifier, aggressive=True), MaxMarginClassifier,
]  # fmt: skip
HYPOTHESES = ["last", "average", "vote", "random"]


@parametrize_with_checks(
    [E(fit_intercept=intercept) for E in ALL_ESTIMATORS for intercept in (False, True)],
    expected_failed_checks=lambda estimator: (
        NOT_EQUIVALENT if "class_weight" in estimator.get_params() else {}
    ),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def make_problem(m=60, n=25, n_classes=2, seed=0):
    """Return a CSR matrix with some 5 entries a row and labels 0..n_classes-1, partly learnable."""
    rng = np.random.RandomState(seed)
    X = sp.random(m, n, density=0.2, format="csr", random_state=rng)
    X.data -= 0.5
    scores = X @ rng.standard_normal((n, n_classes)) + 0.1 * rng.standard_normal((m, n_classes))
    y = scores.argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def with_arrays(X, data, indices, indptr):
    """Return CSR around these very arrays: the constructor would copy or convert some."""
    fresh = sp.csr_matrix(X.shape)
    fresh.data, fresh.indices, fresh.indptr = data, indices, indptr
    return fresh


def assert_same_model(one, other, X):
    assert_array_equal(one.classes_, other.classes_)
    assert_array_equal(one.n_corrections_, other.n_corrections_)
    assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert_array_equal(one.theta_, other.theta_)
    if one.hypothesis in ("last", "average"):
        assert_array_equal(one.coef_, other.coef_)
        assert_array_equal(one.intercept_, other.intercept_)


# -- in company -----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pipeline_over_text(estimator):
    stories = ["cheap pills now", "meeting on monday", "pills cheap offer", "monday agenda notes"]
    model = make_pipeline(TfidfVectorizer(), estimator(random_state=0))
    model.fit(stories * 5, ["spam", "ham"] * 10)
    assert_array_equal(model.predict(["offer of pills", "notes on monday"]), ["spam", "ham"])


def test_grid_search_over_p_and_alpha():
    X, y = make_problem(120)
    grid = {"p": [2.0, 6.0, "log"], "alpha": [0.5, 1.0]}
    search = GridSearchCV(
        ALMAClassifier(random_state=0), grid, cv=3, error_score="raise", return_train_score=True
    )
    search.fit(X, y)
    assert search.best_params_ in search.cv_results_["params"]
    assert len(search.cv_results_["params"]) == 6
    # Settings that arrived would not all have come to the same models.
    assert len(set(search.cv_results_["mean_train_score"])) > 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_calibration(n_classes):
    X, y = make_problem(150, n_classes=n_classes)
    model = CalibratedClassifierCV(PNormPerceptron(random_state=0), cv=3).fit(X, y)
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (150, n_classes)
    assert_allclose(probabilities.sum(axis=1), 1)
    assert model.score(X, y) > 1.5 / n_classes


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_survive_clone_and_set_params(estimator):
    model = estimator(p=6, hypothesis="vote", max_iter=None, class_weight={0: 2.0, 1: 1.0})
    assert clone(model).get_params() == model.get_params()
    model.set_params(p="log", soft_margin=0.5)
    assert model.get_params()["p"] == "log"
    assert model.get_params()["soft_margin"] == 0.5


# -- models that travel ---------------------------------------------------------------------------


@pytest.mark.parametrize("travel", list(COPIES))
@pytest.mark.parametrize("p", [2.0, 6.0])
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_copy_predicts_and_learns_on_to_the_bit(travel, p, hypothesis, n_classes, tmp_path):
    X, y = make_problem(n_classes=n_classes)
    classes = np.arange(n_classes)
    # Of fewer rows than the intercept's scale is that of.
    params = {"p": p, "hypothesis": hypothesis, "random_state": 0, "intercept_scaling": 1.0}
    model = ALMAClassifier(**params).partial_fit(X[:30], y[:30], classes=classes)
    copied = COPIES[travel](model, tmp_path)
    assert_same_model(copied, model, X)
    copied.partial_fit(X[30:], y[30:])
    assert_same_model(copied, ALMAClassifier(**params).partial_fit(X, y, classes=classes), X)
    assert model._space.trials == 30


def test_what_was_pickled_under_the_old_names_is_read():
    X, y = make_problem()
    model = ALMAClassifier(random_state=0).fit(X, y)
    pickled = pickle.dumps(model, protocol=2)  # names as text, ended by a line
    old = pickled.replace(b"sparsemargin.models.classifiers", b"sparsemargin.estimators.alma")
    old = old.replace(b"first_order.linear_space", b"first_order.spaces")
    assert b"first_order.spaces\nLinearSpace\n" in old
    vars(spaces).pop("LinearSpace", None)
    sys.modules.pop("sparsemargin.estimators", None)
    with pytest.warns(FutureWarning, match=r"is now called sparsemargin\.models\.classifiers"):
        assert_same_model(pickle.loads(old), model, X)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_what_cannot_weight_its_steps_takes_no_weights(method):
    X, y = make_problem()
    for classifier in (CRAMMAClassifier, MaxMarginClassifier, ROMMAClassifier):
        call = getattr(classifier(), method)
        assert not has_fit_parameter(classifier(), "sample_weight")
        assert "sample_weight" not in call.__doc__
        with pytest.raises(TypeError, match="unexpected keyword argument 'sample_weight'"):
            call(X, y, sample_weight=np.ones(len(y)))
    assert has_fit_parameter(MarginPerceptron(), "sample_weight")


# -- coefficients ---------------------------------------------------------------------------------


@pytest.mark.parametrize("hypothesis", ["last", "average"])
@pytest.mark.parametrize(
    ("p", "given", "expected"),
    [(2.0, "f4", "f4"), (2.0, "f8", "f8"), (2.0, "i8", "f8"), (6.0, "f4", "f8"), (6.0, "f8", "f8")],
)
@pytest.mark.parametrize(("n_classes", "n_labels"), [(2, 1), (3, 3), (20, 20)])
def test_coefficients_are_one_row_a_label(hypothesis, p, given, expected, n_classes, n_labels):
    X, y = make_problem(n_classes=n_classes)
    X = X.astype(given) if given[0] == "f" else X.sign().astype(given)
    model = PNormPerceptron(p=p, hypothesis=hypothesis, fit_intercept=True).fit(X, y)
    assert model.coef_.shape == (n_labels, 25)
    assert model.intercept_.shape == (n_labels,)
    assert model.coef_.dtype == model.intercept_.dtype == np.dtype(expected)
    scores = model.decision_function(X)
    assert scores.shape == ((60,) if n_labels == 1 else (60, n_labels))
    assert scores.dtype == np.float64
    by_hand = X @ model.coef_.T.astype(float) + model.intercept_
    rounding = 1e-5 if expected == "f4" else 1e-12
    assert_allclose(scores.reshape(by_hand.shape), by_hand, rtol=rounding, atol=rounding)


def test_corrections_are_an_int_for_two_classes_and_an_array_for_more():
    X, y = make_problem()
    assert type(PNormPerceptron().fit(X, y).n_corrections_) is int
    X, y = make_problem(n_classes=4)
    assert PNormPerceptron().fit(X, y).n_corrections_.shape == (4,)


@pytest.mark.parametrize("hypothesis", ["vote", "random"])
@pytest.mark.parametrize("attribute", ["coef_", "intercept_"])
def test_hypotheses_without_a_weight_vector_say_so(hypothesis, attribute):
    X, y = make_problem()
    model = PNormPerceptron(hypothesis=hypothesis).fit(X, y)
    with pytest.raises(AttributeError, match=f"'{hypothesis}' has no single weight.*'average'"):
        getattr(model, attribute)
    assert not hasattr(model, attribute)


def test_sparsify_and_densify():
    X, y = make_problem()
    model = PNormPerceptron(random_state=0).fit(X, y)
    dense, scores = model.coef_, model.decision_function(X)
    assert model.sparsify() is model
    assert sp.issparse(model.coef_)
    assert_array_equal(model.coef_.toarray(), dense)
    assert_array_equal(model.decision_function(X), scores)
    assert sp.issparse(pickle.loads(pickle.dumps(model)).coef_)
    assert_array_equal(model.densify().coef_, dense)


def test_writing_to_coefficients_that_were_handed_out_does_not_change_predictions():
    X, y = make_problem()
    model = PNormPerceptron(random_state=0).fit(X, y)
    scores = model.decision_function(X)
    model.coef_[:] = 7
    assert_array_equal(model.decision_function(X), scores)


# -- labels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1.0, 1.0]),
        np.array([-1, 1]),
        np.array([7, 10, 300]),
        np.array([-5, 2**40, 2**60]),
        np.array([2**60, 2**60 + 1], dtype=np.int64),
        np.array([2**60, 2**60 + 1], dtype=np.uint64),
        np.array([-100, 100], dtype=np.int8),
        np.array([-30000, 0, 30000], dtype=np.int16),
        np.array([0, 255], dtype=np.uint8),
        np.array([f"topic {i:02}" for i in range(20)]),
    ],
    ids=lambda names: f"{names.dtype}-{len(names)}",
)
@pytest.mark.parametrize("given_as", [np.asarray, list])
def test_labels_of_any_type_are_only_names(names, given_as):
    X, codes = make_problem(n_classes=len(names))
    params = {"p": 4, "random_state": 0}
    plain = PNormPerceptron(**params).fit(X, codes)
    model = PNormPerceptron(**params).fit(X, given_as(names[codes]))
    assert_array_equal(model.classes_, names)
    assert_array_equal(model.coef_, plain.coef_)
    assert_array_equal(model.predict(X), names[plain.predict(X)])
    assert model.score(X, given_as(names[codes])) == plain.score(X, codes)
    streamed = PNormPerceptron(**params).partial_fit(X, names[codes], classes=names[::-1])
    assert_array_equal(streamed.classes_, names)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.uint64])
def test_narrow_label_types_keep_their_type(dtype):
    X, codes = make_problem()
    assert PNormPerceptron().fit(X, codes.astype(dtype)).classes_.dtype == dtype


# -- formats --------------------------------------------------------------------------------------


FORMATS = {
    "csr_array": sp.csr_array,
    "csc": sp.csc_matrix,
    "csc_array": sp.csc_array,
    "coo": sp.coo_matrix,
    "lil": sp.lil_matrix,
    "dense": lambda X: X.toarray(),
    "fortran": lambda X: np.asfortranarray(X.toarray()),
    "lists": lambda X: X.toarray().tolist(),
    "big-endian dense": lambda X: X.toarray().astype(">f8"),
    "64-bit indices": lambda X: with_arrays(
        X, X.data, X.indices.astype("i8"), X.indptr.astype("i8")
    ),
    "big-endian data": lambda X: with_arrays(X, X.data.astype(">f8"), X.indices, X.indptr),
    "strided arrays": lambda X: with_arrays(
        X, np.repeat(X.data, 2)[::2], np.repeat(X.indices, 3)[::3], X.indptr
    ),
    "slice of rows": lambda X: sp.vstack([X[:7], X, X[:3]], format="csr")[7:-3],
    "slice of columns": lambda X: sp.hstack([X[:, :4], X], format="csr")[:, 4:],
    "longer arrays than indptr says": lambda X: with_arrays(
        X, np.append(X.data, np.nan), np.append(X.indices, 10**6).astype("i4"), X.indptr
    ),
}


@pytest.mark.parametrize("form", list(FORMATS))
@pytest.mark.parametrize("p", [2.0, 6.0])
def test_any_format_gives_the_same_model(form, p):
    X, y = make_problem(n_classes=3)
    params = {"p": p, "random_state": 0}
    expected = ALMAClassifier(**params).fit(X, y)
    given = FORMATS[form](X)
    assert_same_model(ALMAClassifier(**params).fit(given, y), expected, X)
    streamed = ALMAClassifier(**params).partial_fit(given, y, classes=range(3))
    assert_same_model(streamed, ALMAClassifier(**params).partial_fit(X, y, classes=range(3)), X)
    assert_array_equal(expected.decision_function(given), expected.decision_function(X))


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "i4", "i8", "u2", "?"])
def test_value_types_are_converted_where_the_engine_lacks_them(dtype):
    X, y = make_problem()
    X = abs(X.sign()).astype(dtype)
    params = {"p": 3, "random_state": 0}
    expected = PNormPerceptron(**params).fit(X.astype("f8"), y)
    assert_same_model(PNormPerceptron(**params).fit(X, y), expected, X.astype("f8"))


def test_a_model_of_one_value_type_predicts_rows_of_another():
    X, y = make_problem()
    X = X.sign()
    for learned in "f4", "f8":
        model = PNormPerceptron(normalize=False, random_state=0).fit(X.astype(learned), y)
        # Where rows and weights are float32, so are short sums of their products.
        np.testing.assert_allclose(
            model.decision_function(X.astype("f4")), model.decision_function(X.astype("f8")),
            rtol=1e-6 if learned == "f4" else 0, atol=0,
        )  # fmt: skip


def test_svmlight_files_with_64_bit_indices(tmp_path):
    X, y = make_problem()
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"))
    read, labels = load_svmlight_file(str(tmp_path / "rows.svm"), n_features=25)
    wide = with_arrays(read, read.data, read.indices.astype("i8"), read.indptr.astype("i8"))
    model = PNormPerceptron(p=4, random_state=0).fit(wide, labels)
    assert_same_model(model, PNormPerceptron(p=4, random_state=0).fit(read, labels), read)


def memory_mapped(X, directory):
    parts = []
    for name in ("data", "indices", "indptr"):
        part = getattr(X, name)
        np.save(directory / name, part)
        parts.append(np.load(directory / f"{name}.npy", mmap_mode="r"))
    return with_arrays(X, *parts)


def read_only(X, directory):
    X = X.copy()
    for part in (X.data, X.indices, X.indptr):
        part.flags.writeable = False
    return X


@pytest.mark.parametrize("locked", [read_only, memory_mapped])
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_read_only_and_memory_mapped_rows_are_used_where_they_lie(locked, hypothesis, tmp_path):
    X, y = make_problem()
    y = y.copy()
    y.flags.writeable = False
    given = locked(X, tmp_path)
    params = {"p": 4, "hypothesis": hypothesis, "random_state": 0}
    model = PNormPerceptron(**params).fit(given, y)
    assert_same_model(model, PNormPerceptron(**params).fit(X, y), X)
    model.partial_fit(given, y).predict(given)
    dense = X.toarray()
    dense.flags.writeable = False
    assert_same_model(
        PNormPerceptron(**params).fit(dense, y), PNormPerceptron(**params).fit(X, y), X
    )


# -- rows that are not canonical, and rows of nothing ---------------------------------------------


def shuffled_rows(X, seed=0):
    """Return X with the entries of every row in a random order."""
    rng = np.random.RandomState(seed)
    data, indices = X.data.copy(), X.indices.copy()
    for start, stop in pairwise(X.indptr):
        order = start + rng.permutation(stop - start)
        data[start:stop], indices[start:stop] = data[order], indices[order]
    return with_arrays(X, data, indices, X.indptr.copy())


def scrambled(X):
    """Return X with every row out of order and every entry split in two parts that add exactly."""
    doubled = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr
    return shuffled_rows(with_arrays(X, *doubled))


def assert_close_model(one, other, X):
    """The same model, but for the rounding of sums taken in another order."""
    assert_array_equal(one.n_corrections_, other.n_corrections_)
    assert_allclose(one.theta_, other.theta_, rtol=1e-11, atol=1e-13)
    assert_allclose(one.decision_function(X), other.decision_function(X), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("index_dtype", ["i4", "i8"])
@pytest.mark.parametrize("first_bad", [0, 30, 59])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(
    ("spoil", "assert_same"), [(scrambled, assert_same_model), (shuffled_rows, assert_close_model)]
)
def test_unsorted_and_repeated_columns_give_the_model_of_their_canonical_form(
    index_dtype, first_bad, estimator, spoil, assert_same
):
    X, y = make_problem()
    given = sp.vstack([X[:first_bad], spoil(X[first_bad:])], format="csr")
    assert not given.has_sorted_indices
    indices, indptr = given.indices.astype(index_dtype), given.indptr.astype(index_dtype)
    given = with_arrays(X, given.data, indices, indptr)
    params = {"p": 4, "random_state": 0}
    model = estimator(**params).fit(given, y)
    assert_same(model, estimator(**params).fit(X, y), X)
    streamed = estimator(**params).partial_fit(given, y, classes=[0, 1])
    assert_same(streamed, estimator(**params).partial_fit(X, y, classes=[0, 1]), X)


@pytest.mark.parametrize("spoil", [scrambled, shuffled_rows])
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_outputs_do_not_depend_on_how_a_row_is_stored(spoil, hypothesis):
    X, y = make_problem(n_classes=3)
    model = ALMAClassifier(p=4, hypothesis=hypothesis, random_state=0).fit(X, y)
    expected = model.decision_function(X)
    assert_allclose(model.decision_function(spoil(X)), expected, rtol=1e-11, atol=1e-13)
    assert_array_equal(model.predict(spoil(X)), model.predict(X))


def test_unsorted_columns_draw_from_a_random_state_instance_as_sorted_ones_do():
    X, y = make_problem()
    models = [
        PNormPerceptron(random_state=np.random.RandomState(0)).fit(given, y)
        for given in (X, scrambled(X))
    ]
    assert_same_model(*models, X)


@pytest.mark.parametrize("p", [2.0, 6.0])
@pytest.mark.parametrize("normalize", [True, False])
def test_stored_zeros_change_nothing(p, normalize):
    X, y = make_problem()
    zeros = sp.coo_matrix((np.zeros(60), (np.arange(60), np.arange(60) % 25)), shape=X.shape)
    whole = X.tocoo()
    padded = sp.csr_matrix(
        (
            np.r_[whole.data, zeros.data],
            (np.r_[whole.row, zeros.row], np.r_[whole.col, zeros.col]),
        ),
        shape=X.shape,
    )
    assert padded.nnz > X.nnz
    params = {"p": p, "normalize": normalize, "hypothesis": "random", "random_state": 0}
    model = PNormPerceptron(**params).fit(padded, y)
    expected = PNormPerceptron(**params).fit(X, y)
    assert_same_model(model, expected, X)
    assert_array_equal(model.decision_function(padded), model.decision_function(X))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("stored", [False, True])
def test_zero_rows_are_trials_that_never_correct(estimator, stored):
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    X = sp.csr_matrix(rows)
    if stored:
        X = with_arrays(X, rows.ravel(), np.tile([0, 1], 4).astype("i4"), np.arange(0, 9, 2, "i4"))
    model = estimator(alpha=0.5) if estimator is ALMAClassifier else estimator()
    model.set_params(hypothesis="last", max_iter=1, shuffle=False, fit_intercept=False)
    model.fit(X, [1, 0, 1, 0])
    assert model.n_corrections_ == 1
    assert model.theta_norm_[0] > 0
    # Four trials share the one vector, so the average is the last one: it would be a quarter of
    # it if the vector lasted for its own trial only, and a count of 3 in 4 leads to the other.
    averaged = clone(model).set_params(hypothesis="average").fit(X, [1, 0, 1, 0])
    assert_allclose(averaged.coef_, model.coef_)
    late = clone(averaged).fit(X[::-1], [0, 1, 0, 1])
    assert_allclose(late.coef_, model.coef_ / 4)
    assert_array_equal(late.predict(X[1:]), [1, 1, 1])


# -- X is left alone ------------------------------------------------------------------------------


def parts_of(X):
    return (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)


@pytest.mark.parametrize("form", [lambda X: X, scrambled, shuffled_rows, lambda X: X.toarray()])
@pytest.mark.parametrize("hypothesis", ["average", "vote"])
def test_no_byte_of_the_input_changes(form, hypothesis):
    X, y = make_problem(n_classes=3)
    X = form(X)
    weights = np.linspace(0, 1, len(y))
    before = [part.tobytes() for part in (*parts_of(X), y, weights)]
    arrays = parts_of(X)
    model = ALMAClassifier(hypothesis=hypothesis, soft_margin=1.0, fit_intercept=True)
    model.fit(X, y, sample_weight=weights).partial_fit(X, y, sample_weight=weights)
    model.predict(X)
    model.decision_function(X)
    assert all(part is array for part, array in zip(parts_of(X), arrays, strict=True))
    assert [part.tobytes() for part in (*parts_of(X), y, weights)] == before


@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_sparse_rows_are_never_made_dense(hypothesis):
    n_rows, n_features = 100, 500_000
    rng = np.random.RandomState(0)
    columns = rng.randint(n_features, size=(n_rows, 3))
    X = sp.csr_matrix(
        (rng.standard_normal(3 * n_rows), columns.ravel(), np.arange(0, 3 * n_rows + 1, 3)),
        shape=(n_rows, n_features),
    )
    y = np.arange(n_rows) % 2
    model = ALMAClassifier(p=4, hypothesis=hypothesis, random_state=0)
    tracemalloc.start()
    try:
        model.fit(X, y).partial_fit(X, y).predict(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # A handful of vectors as long as a row is wide, not one a row.
    assert peak < 10 * 8 * n_features
