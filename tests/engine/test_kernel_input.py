"""What the kernel space refuses, and how models with a kernel travel."""

from copy import deepcopy
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from problems.contract import NOT_EQUIVALENT
from problems.stages import COPIES
from sparsemargin import (
    ALMAClassifier,
    CRAMMAClassifier,
    HigherOrderPerceptron,
    MarginPerceptron,
    PNormPerceptron,
    ROMMAClassifier,
    SecondOrderPerceptron,
    load_model,
    save_model,
)
from sparsemargin.evaluation import margins
from sparsemargin.io.model_files import read_summary

FIRST_ORDER = [
    PNormPerceptron, ALMAClassifier, MarginPerceptron,
    partial(CRAMMAClassifier, radius=100.0, eta0=0.01), ROMMAClassifier,
]  # fmt: skip
WITH_A_KERNEL = [*FIRST_ORDER, HigherOrderPerceptron, SecondOrderPerceptron]
HYPOTHESES = ["last", "average", "vote", "random"]

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
first_order = pytest.mark.parametrize("estimator", FIRST_ORDER)
with_a_kernel = pytest.mark.parametrize("estimator", WITH_A_KERNEL)


def make_rows(m=40, n_classes=2, seed=0):
    """Return dense rows, and labels that have nothing to do with them."""
    rng = np.random.RandomState(seed)
    y = rng.randint(n_classes, size=m)
    y[:n_classes] = np.arange(n_classes)
    return rng.uniform(-1, 1, (m, 5)), y


def assert_refused(model, X, y, *words):
    """The model refuses to learn from X and y, saying so in these words, and stays unfitted."""
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        model.fit(X, y)
    for word in words:
        assert word in str(refusal.value)
    assert not hasattr(model, "classes_")


# -- parameters -----------------------------------------------------------------------------------


@with_a_kernel
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("kernel", ["sigmoid", "RBF", None, 3]),
        ("degree", [0, -1, 2.5, "3", True, None]),
        ("gamma", [0, 0.0, -1.0, np.nan, np.inf, "large", None]),
        ("coef0", [-1.0, np.nan, np.inf, "1", None]),
    ],
)
def test_parameters_of_kernels_out_of_range(estimator, name, values):
    for value in values:
        assert_refused(estimator(**{"kernel": "poly", name: value}), *make_rows(), name)


@first_order
def test_bounds_of_the_pool_out_of_range(estimator):
    for value in 0, -1, 1.5, "all":
        assert_refused(estimator(kernel="rbf", max_support=value), *make_rows(), "max_support")
    for value in "stop", None, True:
        assert_refused(estimator(kernel="rbf", when_full=value), *make_rows(), "when_full")


@pytest.mark.parametrize("estimator", [*FIRST_ORDER[:3], HigherOrderPerceptron])
@pytest.mark.parametrize("kernel", ["poly", "rbf", "polyrbf", "precomputed", np.dot])
@pytest.mark.parametrize("p", [2.5, 6.0, "log"])
def test_kernels_are_for_p_2(estimator, kernel, p):
    X, y = make_rows()
    assert_refused(estimator(kernel=kernel, p=p), X @ X.T, y, f"p={p!r}", "kernel")


@with_a_kernel
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_gamma_of_a_stream_must_be_a_number(estimator, gamma):
    X, y = make_rows()
    model = estimator(kernel="rbf", gamma=gamma)
    if gamma == "scale":
        with pytest.raises(ValueError, match="gamma"):
            model.partial_fit(X, y, classes=[0, 1])
        assert not hasattr(model, "classes_")
        assert model.fit(X, y).partial_fit(X, y).gamma_ == pytest.approx(1 / (5 * X.var()))
    else:
        assert model.partial_fit(X, y, classes=[0, 1]).gamma_ == 1 / 5


def test_gamma_counts_the_zeros_of_sparse_rows():
    X, y = make_rows()
    X[X < 0] = 0
    for rows in X, sp.csr_matrix(X), sp.csc_array(X):
        model = PNormPerceptron(kernel="poly", gamma="scale").fit(rows, y)
        assert model.gamma_ == pytest.approx(1 / (5 * X.var()), rel=1e-12)


def test_gamma_of_rows_far_from_0():
    X, y = make_rows()
    model = PNormPerceptron(kernel="rbf").fit(X + 1e8, y)
    assert_allclose(model.gamma_, 1 / (5 * X.var()), rtol=1e-6)


def test_gamma_of_constant_rows_is_that_of_scikit_learn():
    model = PNormPerceptron(kernel="rbf", gamma="scale").fit(np.ones((4, 2)), [0, 1, 0, 1])
    assert model.gamma_ == 1.0


# -- precomputed ----------------------------------------------------------------------------------


def gram(X):
    return np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=2))


def spoiled(matrix, *places, value):
    matrix = matrix.copy()
    for place in places:
        matrix[place] = value
    return matrix


@with_a_kernel
@pytest.mark.parametrize("to_matrix", [np.asarray, sp.csr_matrix])
def test_a_precomputed_matrix_that_is_no_kernel(estimator, to_matrix):
    X, y = make_rows()
    K = gram(X)
    for matrix, *words in [
        (K[:, :-1], "square", "(40, 39)"),
        (np.hstack([K, K[:, :1]]), "square", "(40, 41)"),
        (spoiled(K, (3, 5), value=0.25), "symmetric", "[3, 5]"),
        (spoiled(K, (5, 3), value=-0.25), "symmetric"),
        (spoiled(K, (3, 5), (5, 3), value=np.nan), "NaN"),
        (spoiled(K, (3, 5), (5, 3), value=np.inf), "infinity"),
        (spoiled(K, (7, 7), value=-1e-3), "7"),
        (spoiled(K, (7, 7), value=0.0), "row 7", "with others"),
    ]:
        assert_refused(estimator(kernel="precomputed"), to_matrix(matrix), y, *words)


@with_a_kernel
def test_a_precomputed_matrix_may_be_symmetric_up_to_rounding(estimator):
    X, y = make_rows()
    K = gram(X)
    # In more epochs over labels of chance, what differs by rounding goes its own way.
    params = {"kernel": "precomputed", "max_iter": 1, "random_state": 0}
    model = estimator(**params).fit(K * (1 + 1e-15 * np.tri(40)), y)
    assert_array_equal(model.predict(K[:5]), estimator(**params).fit(K, y).predict(K[:5]))


@with_a_kernel
def test_cross_validation_takes_rows_and_columns_of_a_precomputed_matrix(estimator):
    X, y = make_rows(90)
    X = np.round(16 * X) / 16  # so that products are exact, in whatever order they are added up
    model = estimator(random_state=0)
    of_rows = cross_val_score(clone(model).set_params(kernel=products), X, y, cv=3)
    model.set_params(kernel="precomputed")
    assert_array_equal(cross_val_score(model, X @ X.T, y, cv=3), of_rows)


@with_a_kernel
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_a_precomputed_matrix_to_predict_has_a_column_for_each_row_learned_from(
    estimator, hypothesis
):
    X, y = make_rows()
    model = estimator(kernel="precomputed", hypothesis=hypothesis).fit(gram(X), y)
    assert model.n_features_in_ == 40
    for columns in 39, 41, 1:
        with pytest.raises(ValueError, match="40"):
            model.predict(np.zeros((3, columns)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((3, 40), np.nan))


# -- callables ------------------------------------------------------------------------------------


def products(X, Z):
    return X @ Z.T


def raising(X, Z):
    raise RuntimeError("out of kernels")


def spoiled_products(change, n_calls=0):
    """Return a function whose values are a kernel's, and changed after so many calls."""
    calls = []

    def kernel(X, Z):
        calls.append(None)
        values = products(X, Z)
        return values if len(calls) <= n_calls else change(values)

    return kernel


SPOILERS = {
    "flat": lambda K: K.ravel(),
    "transposed": lambda K: np.hstack([K, K]).T,
    "one number": lambda K: 1.0,
    "None": lambda K: None,
    "NaN": lambda K: K + np.nan,
    "infinity": lambda K: K * np.inf,
    "complex": lambda K: K + 1j,
    "words": lambda K: K.astype(str),
    "objects": lambda K: K.astype(object),
    "sparse": sp.csr_matrix,
    "dates": lambda K: K.astype("datetime64[s]"),
    "negative": lambda K: -K,
    "distances": lambda K: np.abs(K[:, :1] - K[:1]),
}


@with_a_kernel
@pytest.mark.parametrize("spoiler", SPOILERS)
def test_callables_that_are_no_kernel(estimator, spoiler):
    X, y = make_rows()
    assert_refused(estimator(kernel=spoiled_products(SPOILERS[spoiler])), X, y, "kernel")


@with_a_kernel
def test_callables_that_are_not_symmetric(estimator):
    X, y = make_rows()
    lopsided = spoiled_products(lambda K: K + np.arange(K.shape[1]))
    assert_refused(estimator(kernel=lopsided), X, y, "symmetric")


@with_a_kernel
def test_what_a_callable_raises_is_raised(estimator):
    X, y = make_rows()
    model = estimator(kernel=raising)
    with pytest.raises(RuntimeError, match="out of kernels"):
        model.fit(X, y)
    assert not hasattr(model, "classes_")


@with_a_kernel
@pytest.mark.parametrize("spoiler", ["flat", "NaN", "complex"])
def test_callables_that_go_wrong_later(estimator, spoiler):
    X, y = make_rows(600)
    model = estimator(kernel=products).fit(X, y)
    before = model.decision_function(X)
    model.kernel = spoiled_products(SPOILERS[spoiler], n_calls=1)
    with pytest.raises(ValueError, match="kernel"):
        model.fit(X, y)
    model.kernel = products
    assert_array_equal(model.decision_function(X), before)


@with_a_kernel
def test_callables_get_rows_as_they_were_given(estimator):
    X, y = make_rows()
    seen = []

    def kernel(A, B):
        formats = [rows.format if sp.issparse(rows) else type(rows) for rows in (A, B)]
        seen.append((*formats, A.shape[1], B.shape[1]))
        values = A @ B.T
        return values.toarray() if sp.issparse(values) else values

    estimator(kernel=kernel).fit(X, y).predict(X)
    assert set(seen) == {(np.ndarray, np.ndarray, 5, 5)}
    seen.clear()
    estimator(kernel=kernel).fit(sp.csr_matrix(X), y).predict(sp.csr_matrix(X))
    assert set(seen) == {("csr", "csr", 5, 5)}


def test_what_a_callable_does_to_its_rows_does_not_reach_the_pool():
    X, y = make_rows(300)

    def careless(A, B):
        values = A @ B.T
        A *= 0.5
        B += 1.0
        return values

    with np.errstate(all="raise"):
        model = PNormPerceptron(kernel=careless, random_state=0).fit(X, y)
    expected = PNormPerceptron(kernel=products, random_state=0).fit(X, y).decision_function(X)
    for _ in range(2):
        assert_allclose(model.decision_function(X), expected, rtol=1e-12, atol=1e-12)


# -- rows -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "polyrbf"])
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_repeated_columns_of_rows_to_predict_are_summed(kernel, hypothesis):
    random = np.random.RandomState(0)
    X = sp.random(60, 3000, 0.01, format="csr", random_state=random)
    model = PNormPerceptron(
        kernel=kernel, gamma=0.5, coef0=1.0, degree=2, hypothesis=hypothesis, random_state=0
    ).fit(X, random.randint(2, size=60))
    parts = np.tile([0.25, 0.75], X.nnz) * np.repeat(X.data, 2)
    repeated = sp.csr_matrix((parts, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    outputs = model.decision_function(X)
    assert_allclose(model.decision_function(repeated), outputs, rtol=1e-9, atol=1e-9)
    assert not repeated.has_canonical_format


@pytest.mark.parametrize("scale", [1e-155, 1e-170, 1e-300])
@pytest.mark.parametrize("normalize", [True, False])
def test_rows_too_short_for_a_double_are_refused(scale, normalize):
    X, y = make_rows()
    model = PNormPerceptron(kernel="poly", degree=1, gamma=1.0, normalize=normalize)
    assert_refused(model, scale * X, y, "Row 0 of X", "scale")
    assert_refused(model.set_params(degree=3, gamma=scale), X, y, "Row 0 of X", "scale")
    model.set_params(gamma=1.0).fit(np.vstack([X, 0 * X[:1]]), np.append(y, 0))
    assert np.isfinite(model.decision_function(scale * X)).all()


@with_a_kernel
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_kernels_of_scikit_learn_take_sparse_rows(estimator, index_type):
    X, y = make_rows()
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = (a.astype(index_type) for a in (sparse.indices, sparse.indptr))
    model = estimator(kernel=laplacian_kernel, shuffle=False)
    of_array, of_csr = (clone(model).fit(rows, y) for rows in (X, sparse))
    assert_allclose(of_csr.decision_function(sparse), of_array.decision_function(X), rtol=1e-9)


@with_a_kernel
def test_a_callable_that_returns_sparse_products_is_told_what_to_return(estimator):
    X, y = make_rows()
    assert_refused(estimator(kernel=products), sp.csr_matrix(X), y, "products", ".toarray()")


# -- the bound of the pool ------------------------------------------------------------------------


@first_order
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_full_pool_is_an_error_that_leaves_the_model_as_it_was(estimator, n_classes):
    X, y = make_rows(300, n_classes)
    model = estimator(kernel="rbf", gamma=1.0, max_iter=1, shuffle=False, max_support=20)
    assert_refused(model, X, y, "max_support", "20")
    model.fit(X[:15], y[:15])
    before, support = model.decision_function(X), model.support_.copy()
    with pytest.raises(ValueError, match="max_support"):
        model.fit(X, y)
    assert_array_equal(model.decision_function(X), before)
    assert_array_equal(model.support_, support)


@first_order
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("hypothesis", ["last", "vote"])
def test_a_full_pool_may_pass_over_trials(estimator, n_classes, hypothesis):
    X, y = make_rows(600, n_classes)
    params = {"kernel": "rbf", "gamma": 1.0, "max_iter": 1, "shuffle": False}
    free = estimator(hypothesis="last", **params).fit(X, y)
    assert len(free.support_) > 40
    assert not np.any(free.n_passed_over_)
    bounded = estimator(hypothesis=hypothesis, max_support=20, when_full="skip", **params)
    with pytest.warns(UserWarning, match="max_support"):
        bounded.fit(X, y)
    assert_array_equal(bounded.support_, free.support_[:20])
    # In a single epoch, learning ends with the row that fills the pool.
    stop = bounded.support_[-1] + 1
    until = estimator(hypothesis="last", **params).fit(X[:stop], y[:stop])
    assert_array_equal(bounded.n_corrections_, until.n_corrections_)
    if hypothesis == "last":
        expected = until.decision_function(X)
        within = {"rtol": 0, "atol": 1e-12 * np.abs(expected).max()}
        assert_allclose(bounded.decision_function(X), expected, **within)
    assert np.shape(bounded.n_passed_over_) == np.shape(bounded.n_corrections_)
    assert np.all(bounded.n_passed_over_ > 0)


def test_trials_passed_over_are_those_that_would_have_corrected():
    X, y = make_rows(600)
    model = PNormPerceptron(
        kernel="rbf", gamma=1.0, max_iter=1, shuffle=False, hypothesis="last", max_support=20,
        when_full="skip",
    )  # fmt: skip
    with pytest.warns(UserWarning, match="max_support"):
        model.fit(X, y)
    rest = slice(model.support_[-1] + 1, None)
    outputs = np.where(y[rest] == 1, 1, -1) * model.decision_function(X[rest])
    assert model.n_passed_over_ == np.count_nonzero(outputs <= 0)


# ROMMA soon has no mistakes left on so few.
@pytest.mark.parametrize("estimator", FIRST_ORDER[:4])
def test_rows_of_a_full_pool_go_on_being_corrected(estimator):
    X, y = make_rows(100)
    params = {"kernel": "rbf", "gamma": 1.0, "shuffle": False, "hypothesis": "last"}
    params |= {"max_support": 20, "when_full": "skip"}
    models = []
    for max_iter in 1, 10:
        with pytest.warns(UserWarning, match="max_support"):
            models.append(estimator(max_iter=max_iter, **params).fit(X, y))
    once, often = models
    assert_array_equal(often.support_, once.support_)
    assert often.n_corrections_ > once.n_corrections_


@first_order
def test_a_pool_that_has_room_changes_nothing(estimator):
    X, y = make_rows(100)
    params = {"kernel": "rbf", "gamma": 1.0, "shuffle": False}
    free = estimator(**params).fit(X, y)
    roomy = estimator(max_support=100, **params).fit(X, y)
    assert_array_equal(roomy.decision_function(X), free.decision_function(X))


# -- what a model tells, and how it travels -------------------------------------------------------


@first_order
@pytest.mark.parametrize("kernel", ["rbf", "poly", products])
def test_a_kernel_has_no_weights(estimator, kernel):
    X, y = make_rows()
    model = estimator(kernel=kernel, gamma=1.0).fit(X, y)
    for name in "coef_", "theta_":
        with pytest.raises(AttributeError, match="kernel"):
            getattr(model, name)


@first_order
def test_the_linear_space_has_no_support(estimator):
    X, y = make_rows()
    model = estimator().fit(X, y)
    for name in "support_", "dual_coef_", "n_support_", "pool_bytes_":
        with pytest.raises(AttributeError):
            getattr(model, name)


@first_order
@pytest.mark.parametrize("hypothesis", ["vote", "random"])
def test_votes_have_no_coefficients(estimator, hypothesis):
    X, y = make_rows()
    model = estimator(kernel="rbf", hypothesis=hypothesis).fit(X, y)
    assert len(model.support_) > 0
    for name in "dual_coef_", "intercept_":
        with pytest.raises(AttributeError, match="hypothesis"):
            getattr(model, name)


SPACES = [
    {}, {"solver": "primal"}, {"solver": "dual"}, {"kernel": "poly", "gamma": 1.0, "coef0": 0.0}
]  # fmt: skip


@with_a_kernel
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_before_the_first_mistake_every_output_is_zero(estimator, hypothesis, n_classes, tmp_path):
    X, y = np.eye(3), np.arange(3) % n_classes
    for space in SPACES:
        model = estimator(hypothesis=hypothesis, fit_intercept=False)
        if not set(space) <= set(model.get_params()):
            continue
        model.set_params(**space)
        # A row of zeros is a trial that can't correct.
        model.partial_fit(np.zeros((1, 3)), [0], classes=range(n_classes))
        save_model(model, tmp_path / "a.model")
        assert read_summary(tmp_path / "a.model")["n_trials"] == 1
        for same in model, deepcopy(model), load_model(tmp_path / "a.model"):
            assert not same.decision_function(X).any()
            assert_array_equal(same.predict(X), [0 if n_classes > 2 else 1] * 3)
            if hypothesis != "random":
                assert not margins(same, X, y).any()


def test_margins_by_a_precomputed_kernel_are_refused_to_matrix_perceptrons():
    model = SecondOrderPerceptron(kernel="precomputed").fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="Pass the kernel as a function"):
        margins(model, np.eye(2), [0, 1])


@first_order
def test_the_pool_tells_its_size(estimator):
    X, y = make_rows(300)
    few, many = (estimator(kernel="rbf", gamma=1.0).fit(X[:m], y[:m]) for m in (30, 300))
    assert isinstance(many.pool_bytes_, int)
    assert 0 < few.pool_bytes_ < many.pool_bytes_
    # The rows themselves, at the least.
    assert many.pool_bytes_ >= 8 * 5 * len(many.support_)


@with_a_kernel
@pytest.mark.parametrize("kernel", ["poly", products])
def test_parameters_survive_clone_and_set_params(estimator, kernel):
    model = estimator(kernel=kernel, degree=5, gamma=0.5, coef0=2.0)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(degree=2).get_params()["degree"] == 2
    assert estimator().get_params()["kernel"] == "linear"


@with_a_kernel
@pytest.mark.parametrize("travel", ["pickle", "deepcopy", "memory-mapped file"])
@pytest.mark.parametrize("kernel", ["poly", "rbf", products])
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_copies_predict_alike_and_go_on_learning_alike(
    estimator, kernel, hypothesis, travel, tmp_path
):
    X, y = make_rows(n_classes=3)
    model = estimator(kernel=kernel, gamma=1.0, hypothesis=hypothesis, random_state=0).fit(X, y)
    copied = COPIES[travel](model, tmp_path)
    assert_array_equal(copied.decision_function(X), model.decision_function(X))
    model.partial_fit(-X, y)
    copied.partial_fit(-X, y)
    assert_array_equal(copied.n_corrections_, model.n_corrections_)
    assert_array_equal(copied.decision_function(X), model.decision_function(X))


@with_a_kernel
def test_a_model_holds_its_own_rows(estimator):
    X, y = make_rows()
    model = estimator(kernel="rbf", gamma=1.0).fit(X, y)
    Z = X.copy()
    before = model.decision_function(Z)
    X[:] = 0
    assert_array_equal(model.decision_function(Z), before)


@parametrize_with_checks(
    [
        estimator(**params)
        for estimator in FIRST_ORDER
        for params in ({"kernel": "rbf", "gamma": 1.0}, {"kernel": "poly", "gamma": 1.0})
    ],
    expected_failed_checks=lambda estimator: (
        NOT_EQUIVALENT if "class_weight" in estimator.get_params() else {}
    ),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
