"""The input of kernels: their parameters, precomputed matrices, functions, and rows."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score

from problems.kernels import make_rows, products, with_a_kernel
from problems.models import HYPOTHESES
from sparsemargin import ALMAClassifier, HigherOrderPerceptron, PNormPerceptron
from sparsemargin.kernels import RBF, Polynomial, PolynomialRBF

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def assert_refused(model, X, y, *words):
    """Assert that fit raises an error with these words, and that the model stays unfitted."""
    with pytest.raises(ValueError) as refusal:  # noqa: PT011
        model.fit(X, y)
    for word in words:
        assert word in str(refusal.value)
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("degree", [0, -1, 2.5, "3", True, None]),
        ("gamma", [0, 0.0, -1.0, np.nan, np.inf, "large", None]),
        ("coef0", [-1.0, np.nan, np.inf, "1", None]),
        ("max_support", [0, -1, 1.5, "all"]),
        ("when_full", ["stop", None, True]),
    ],
)
def test_kernel_parameters_out_of_range_are_rejected(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"The '{name}' parameter of Polynomial must be"):
            Polynomial(**{name: value})


@with_a_kernel
def test_other_values_than_kernels_are_refused(estimator):
    for value in "sigmoid", "RBF", None, 3:
        assert_refused(estimator(kernel=value), *make_rows(), "kernel")
    if "max_updates" in estimator().get_params():
        assert_refused(estimator(kernel=RBF(max_support=9)), *make_rows(), "max_updates")


def test_kernels_are_values():
    """They are compared, copied, shown, and searched by scikit-learn, as numbers are."""
    kernel = Polynomial(2, gamma=0.5, max_support=90)
    assert repr(kernel) == "Polynomial(degree=2, gamma=0.5, max_support=90)"
    for copied in clone(kernel, safe=False), pickle.loads(pickle.dumps(kernel)):
        assert copied == kernel
        assert hash(copied) == hash(kernel)
    assert kernel != Polynomial(2, gamma=0.5) != RBF(0.5)
    X, y = make_rows(60)
    grid = {"kernel": [Polynomial(2), RBF(), "polyrbf", products]}
    found = GridSearchCV(ALMAClassifier(random_state=0), grid, error_score="raise").fit(X, y)
    assert found.best_params_["kernel"] in grid["kernel"]
    named, given = (ALMAClassifier(kernel=each, random_state=0) for each in ("poly", Polynomial()))
    assert_array_equal(named.fit(X, y).dual_coef_, given.fit(X, y).dual_coef_)


def test_kernels_need_p_2():
    X, y = make_rows()
    for estimator in PNormPerceptron, HigherOrderPerceptron:
        for kernel, p in ("poly", 2.5), ("rbf", "log"), ("precomputed", 2.5), (products, 3.0):
            assert_refused(estimator(kernel=kernel, p=p), X @ X.T, y, f"p={p!r}", "kernel")


@with_a_kernel
def test_gamma_of_a_stream_must_be_a_number(estimator):
    X, y = make_rows()
    model = estimator(kernel=RBF("scale"))
    with pytest.raises(ValueError, match="gamma"):
        model.partial_fit(X, y, classes=[0, 1])
    assert not hasattr(model, "classes_")
    assert model.fit(X, y).partial_fit(X, y).gamma_ == pytest.approx(1 / (5 * X.var()))
    model = estimator(kernel=RBF("auto")).partial_fit(X, y, classes=[0, 1])
    assert model.gamma_ == 1 / 5


def test_gamma_agrees_with_scikit_learn_for_all_formats():
    X, y = make_rows()
    X[X < 0] = 0
    for rows in X, sp.csr_matrix(X), sp.csc_array(X), X + 1e8:
        model = PNormPerceptron(kernel=Polynomial(gamma="scale")).fit(rows, y)
        assert model.gamma_ == pytest.approx(1 / (5 * X.var()), rel=1e-6)
    assert PNormPerceptron(kernel="rbf").fit(np.ones((4, 2)), [0, 1, 0, 1]).gamma_ == 1.0


def gram(X):
    return np.exp(-np.square(X[:, np.newaxis] - X).sum(axis=2))


def spoiled(matrix, *places, value):
    matrix = matrix.copy()
    for place in places:
        matrix[place] = value
    return matrix


@with_a_kernel
@pytest.mark.parametrize("to_matrix", [np.asarray, sp.csr_matrix])
def test_invalid_precomputed_matrices_raise_an_error(estimator, to_matrix):
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
def test_cross_validation_splits_a_precomputed_kernel_matrix(estimator):
    X, y = make_rows(90)
    X = np.round(16 * X) / 16  # makes products exact in any order of summation
    model = estimator(random_state=0)
    of_rows = cross_val_score(clone(model).set_params(kernel=products), X, y, cv=3)
    model.set_params(kernel="precomputed")
    assert_array_equal(cross_val_score(model, X @ X.T, y, cv=3), of_rows)


@with_a_kernel
def test_precomputed_matrix_must_be_square_and_symmetric(estimator):
    X, y = make_rows()
    K = gram(X)
    # With more epochs over random labels, small rounding differences would grow.
    params = {"kernel": "precomputed", "max_iter": 1, "random_state": 0}
    model = estimator(**params).fit(K * (1 + 1e-15 * np.tri(40)), y)
    assert_array_equal(model.predict(K[:5]), estimator(**params).fit(K, y).predict(K[:5]))
    assert model.n_features_in_ == 40
    for columns in 39, 41, 1:
        with pytest.raises(ValueError, match="40"):
            model.predict(np.zeros((3, columns)))
    with pytest.raises(ValueError, match="NaN"):
        model.predict(np.full((3, 40), np.nan))


def spoiled_products(change, n_calls=0):
    """Return a function with the values of a kernel, which are changed after n_calls calls."""
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
    "objects": lambda K: K.astype(object),
    "sparse": sp.csr_matrix,
    "negative": lambda K: -K,
    "distances": lambda K: np.abs(K[:, :1] - K[:1]),
    "lopsided": lambda K: K + np.arange(K.shape[1]),
}


@with_a_kernel
def test_callables_with_invalid_values_raise_an_error(estimator):
    X, y = make_rows()
    for name, spoiler in SPOILERS.items():
        word = {"lopsided": "symmetric"}.get(name, "kernel")
        assert_refused(estimator(kernel=spoiled_products(spoiler)), X, y, word)
    # A product of sparse rows is sparse.
    assert_refused(estimator(kernel=products), sp.csr_matrix(X), y, "products", ".toarray()")


@with_a_kernel
def test_callables_that_fail_later_raise_an_error(estimator):
    X, y = make_rows(600)
    model = estimator(kernel=products).fit(X, y)
    before = model.decision_function(X)
    for spoiler in "flat", "NaN", "complex":
        model.kernel = spoiled_products(SPOILERS[spoiler], n_calls=1)
        with pytest.raises(ValueError, match="kernel"):
            model.fit(X, y)
        model.kernel = products
        assert_array_equal(model.decision_function(X), before)


@with_a_kernel
def test_callables_get_the_original_rows(estimator):
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


def test_callables_cannot_modify_the_support_set():
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


@pytest.mark.parametrize(
    "kernel", ["linear", Polynomial(2, gamma=0.5, coef0=1.0), RBF(0.5), PolynomialRBF(2, gamma=0.5)]
)
@pytest.mark.parametrize("hypothesis", HYPOTHESES)
def test_repeated_columns_are_summed_in_prediction(kernel, hypothesis):
    random = np.random.RandomState(0)
    X = sp.random(60, 3000, 0.01, format="csr", random_state=random)
    model = PNormPerceptron(kernel=kernel, hypothesis=hypothesis, random_state=0)
    model.fit(X, random.randint(2, size=60))
    parts = np.tile([0.25, 0.75], X.nnz) * np.repeat(X.data, 2)
    repeated = sp.csr_matrix((parts, np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape)
    outputs = model.decision_function(X)
    assert_allclose(model.decision_function(repeated), outputs, rtol=1e-9, atol=1e-9)
    assert not repeated.has_canonical_format


@pytest.mark.parametrize(("scale", "normalize"), [(1e-155, True), (1e-170, False), (1e-300, True)])
def test_rows_too_short_for_a_double_are_rejected(scale, normalize):
    X, y = make_rows()
    model = PNormPerceptron(kernel=Polynomial(1, gamma=1.0), normalize=normalize)
    assert_refused(model, scale * X, y, "Row 0 of X", "scale")
    model.set_params(kernel=Polynomial(gamma=scale))
    assert_refused(model, X, y, "Row 0 of X", "scale")
    model.set_params(kernel=Polynomial(gamma=1.0)).fit(np.vstack([X, 0 * X[:1]]), np.append(y, 0))
    assert np.isfinite(model.decision_function(scale * X)).all()


@with_a_kernel
def test_scikit_learn_kernels_accept_sparse_rows(estimator):
    X, y = make_rows()
    sparse = sp.csr_matrix(X)
    sparse.indices, sparse.indptr = sparse.indices.astype("i8"), sparse.indptr.astype("i8")
    model = estimator(kernel=laplacian_kernel, shuffle=False)
    of_array, of_csr = (clone(model).fit(rows, y) for rows in (X, sparse))
    assert_allclose(of_csr.decision_function(sparse), of_array.decision_function(X), rtol=1e-9)
