"""Sparse matrices whose arrays don't go together are refused before anything reads them."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from sparsemargin import ALMAClassifier, PNormPerceptron, fit_csr
from sparsemargin.evaluation import (
    compare_on_splits,
    hypothesis_errors,
    learning_curve_over_epochs,
    margins,
    selection_stability,
)

FORMATS = [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.bsr_matrix]


@pytest.fixture
def X():
    return sp.random(30, 8, density=0.5, format="csr", random_state=0)


@pytest.fixture
def y():
    return np.arange(30) % 2


def far_pointer(X):
    """Beyond what is stored: scipy reads and writes there."""
    X.indptr[-1] = 2**30


def falling_pointers(X):
    X.indptr[2] = 2**20


def late_pointers(X):
    X.indptr[0] = 2


def too_few_pointers(X):
    X.indptr = X.indptr[:-1]


def far_index(X):
    X.indices[3] = 2**30


def negative_index(X):
    X.indices[3] = -(2**30)


def fewer_values(X):
    X.data = X.data[:1]


def indices_of_floats(X):
    X.indices = X.indices.astype(float)


def no_pointers(X):
    X.indptr = None


def a_list_of_indices(X):
    X.indices = X.indices.tolist()


def two_dimensions(X):
    X.indptr = X.indptr[np.newaxis]


def negative_shape(X):
    X._shape = (30, -8)


def three_dimensions(X):
    X._shape = (30, 8, 1)


CORRUPTIONS = [
    far_pointer, falling_pointers, late_pointers, too_few_pointers, far_index, negative_index,
    fewer_values, indices_of_floats, no_pointers, a_list_of_indices, two_dimensions,
    negative_shape, three_dimensions,
]  # fmt: skip


@pytest.mark.parametrize("corrupt", CORRUPTIONS)
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("algo", [None, "pnorm", "so"])
def test_a_fit_refuses_them(X, y, corrupt, format, algo):
    bad = format(X)
    corrupt(bad)
    with pytest.raises(ValueError, match=r"^X is (corrupted|of shape)"):
        fit_csr(bad, y, algo)


@pytest.mark.parametrize(
    ("name", "entries"),
    [("row", [30, 0]), ("row", [-1, 0]), ("col", [2**30, 0]), ("col", [0]), ("row", [0.5, 1.5])],
)
def test_coordinates_out_of_range_are_refused(y, name, entries):
    bad = sp.coo_matrix(([1.0, 2.0], ([0, 1], [2, 3])), shape=(30, 8))
    axis = ("row", "col").index(name)
    bad.coords = tuple(
        np.array(entries) if i == axis else array for i, array in enumerate(bad.coords)
    )
    with pytest.raises(ValueError, match=r"^X is corrupted"):
        fit_csr(bad, y)


def longer_list(X):
    """Of values: scipy writes them all into an array for the columns."""
    X.data[0].extend([1.0] * 10**6)


def no_list(X):
    X.rows[3] = None


def fewer_lists(X):
    X.rows = X.rows[:2]


@pytest.mark.parametrize("corrupt", [longer_list, no_list, fewer_lists])
def test_lists_that_do_not_go_together_are_refused(X, y, corrupt):
    bad = sp.lil_matrix(X)
    corrupt(bad)
    with pytest.raises(ValueError, match=r"^X is corrupted: it"):
        fit_csr(bad, y, "pnorm")


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("data", lambda data: data[:1]),
        ("data", np.ravel),
        ("data", lambda data: None),
        ("offsets", lambda offsets: np.tile(offsets, 1000)),
        ("offsets", lambda offsets: offsets + 0.5),
    ],
)
def test_diagonals_that_do_not_go_together_are_refused(X, y, name, changed):
    bad = sp.dia_matrix(X)
    setattr(bad, name, changed(getattr(bad, name)))
    with pytest.raises(ValueError, match=r"^X is corrupted: "):
        fit_csr(bad, y, "pnorm")


@pytest.mark.parametrize("corrupt", [far_pointer, far_index, no_pointers, fewer_values])
def test_an_indicator_of_labels_is_looked_at_too(X, corrupt):
    Y = sp.csr_matrix((np.ones(X.nnz), X.indices, X.indptr), X.shape)
    model = ALMAClassifier().fit(X, Y)
    bad = Y.copy()
    corrupt(bad)
    for call in model.fit, model.partial_fit, model.score:
        with pytest.raises(ValueError, match=r"^y is corrupted"):
            call(X, bad)


def test_lists_of_labels_are_no_classes(X, y):
    model = PNormPerceptron(hypothesis="vote").fit(X, y)
    for ask in margins, hypothesis_errors:
        with pytest.raises(ValueError, match=r"^y\[1\] = \[0, 1\] is no class, but a list of 2"):
            ask(model, X, [[0], [0, 1], []] * 10)


def test_nothing_slices_them_for_splits_or_epochs(X, y):
    bad = X.copy()
    far_pointer(bad)
    model, splits = PNormPerceptron(), [(np.arange(20), np.arange(20, 30))]
    for call in (
        lambda: compare_on_splits({"it": model}, bad, y, splits),
        lambda: selection_stability(model, bad, y, splits),
        lambda: learning_curve_over_epochs(model, bad, y, X, y, epochs=[1]),
        lambda: margins(model.fit(X, y), bad, y),
    ):
        with pytest.raises(ValueError, match=r"^X is corrupted"):
            call()


# -- odd, but sound -------------------------------------------------------------------------------


def strided(array):
    wide = np.zeros(2 * len(array), array.dtype)
    wide[::2] = array
    return wide[::2]


def backwards(array):
    return array[::-1].copy()[::-1]


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    raw[1:] = array.view(np.uint8)
    return raw[1:].view(array.dtype)


def byte_swapped(array):
    return array.astype(array.dtype.newbyteorder())


@pytest.mark.parametrize("laid_out", [strided, backwards, misaligned, byte_swapped])
@pytest.mark.parametrize("name", ["data", "indices", "indptr"])
@pytest.mark.parametrize("estimator", [PNormPerceptron, ALMAClassifier])
def test_however_the_arrays_lie_the_model_is_the_same(X, y, laid_out, name, estimator):
    expected = estimator(random_state=0).fit(X, y)
    odd = X.copy()
    setattr(odd, name, laid_out(getattr(X, name)))
    model = estimator(random_state=0).fit(odd, y)
    assert_array_equal(model.coef_, expected.coef_)
    assert_array_equal(model.decision_function(odd), expected.decision_function(X))
    assert_array_equal(getattr(odd, name), getattr(X, name))


def test_a_row_of_zeros_may_be_told_to_be_too_far_in_magnitude():
    """Its intercept is, by its weight, from what the rows before have brought."""
    X = sp.csr_matrix([[1.0, 0.0], [-1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    model = PNormPerceptron(p=8, normalize=False, intercept_scaling=1.0, shuffle=False, max_iter=3)
    with pytest.raises(ValueError, match=r"^Row \d of X, zero but for the intercept, leads to"):
        model.fit(X, [0, 1, 1, 0], sample_weight=[1.0, 1.0, 1e-200, 1e-200])
