"""Sparse matrices with inconsistent arrays are rejected before they are used."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

import sparsemargin
from sparsemargin import ALMAClassifier, PNormPerceptron, evaluation, fit_csr
from sparsemargin.evaluation import margins

Y = np.arange(30) % 2


@pytest.fixture
def X():
    return sp.random(30, 8, density=0.5, format="csr", random_state=0)


def put(name, place, value):
    """Change one entry of an array; scipy would read and write out of bounds."""
    return lambda X: getattr(X, name).__setitem__(place, value)


def turned(name, change):
    return lambda X: setattr(X, name, change(getattr(X, name)))


# For CSR, estimators/test_bad_input.py tests all inconsistent pointers and indices.
CORRUPTIONS = {
    "far pointer": put("indptr", -1, 2**30),
    "falling pointers": put("indptr", 2, 2**20),
    "late pointers": put("indptr", 0, 2),
    "no pointers": turned("indptr", lambda indptr: None),
    "two axes": turned("indptr", lambda indptr: indptr[np.newaxis]),
    "far index": put("indices", 3, 2**30),
    "negative index": put("indices", 3, -(2**30)),
    "indices of floats": turned("indices", lambda indices: indices.astype(float)),
    "a list of indices": turned("indices", lambda indices: indices.tolist()),
    "fewer values": turned("data", lambda data: data[:1]),
    "negative shape": turned("_shape", lambda shape: (30, -8)),
    "three dimensions": turned("_shape", lambda shape: (30, 8, 1)),
}


@pytest.mark.parametrize("format", [sp.csr_array, sp.csc_matrix, sp.bsr_matrix])
@pytest.mark.parametrize("name", CORRUPTIONS)
def test_fit_rejects_corrupted_arrays(X, name, format):
    bad = format(X)
    CORRUPTIONS[name](bad)
    with pytest.raises(ValueError, match=r"^X is (corrupted|of shape)"):
        fit_csr(bad, Y, "pnorm")


def coordinates(row=(0, 1), col=(2, 3)):
    bad = sp.coo_matrix(([1.0, 2.0], ([0, 1], [2, 3])), shape=(30, 8))
    bad.coords = np.array(row), np.array(col)
    return lambda X: bad


def as_(kind, change):
    def make(X):
        bad = kind(X)
        change(bad)
        return bad

    return make


OTHERS = {
    "row too high": coordinates(row=[30, 0]),
    "row negative": coordinates(row=[-1, 0]),
    "row between": coordinates(row=[0.5, 1.5]),
    "column too high": coordinates(col=[2**30, 0]),
    "fewer columns": coordinates(col=[0]),
    # Scipy would write all of them into an array with the size of the number of columns.
    "longer list": as_(sp.lil_matrix, lambda X: X.data[0].extend([1.0] * 10**6)),
    "no list": as_(sp.lil_matrix, put("rows", 3, None)),
    "fewer lists": as_(sp.lil_matrix, turned("rows", lambda rows: rows[:2])),
    "fewer diagonals": as_(sp.dia_matrix, turned("data", lambda data: data[:1])),
    "diagonals in one": as_(sp.dia_matrix, turned("data", np.ravel)),
    "no diagonals": as_(sp.dia_matrix, turned("data", lambda data: None)),
    "many offsets": as_(sp.dia_matrix, turned("offsets", lambda offsets: np.tile(offsets, 1000))),
    "offsets between": as_(sp.dia_matrix, turned("offsets", lambda offsets: offsets + 0.5)),
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_corrupted_arrays_of_other_formats_are_rejected(X, make):
    # "setting an array element" is numpy's message if columns and rows cannot form one array.
    with pytest.raises(ValueError, match=r"^X is corrupted: (?!setting)"):
        fit_csr(make(X), Y, "pnorm")


def test_corrupted_label_indicator_is_rejected(X):
    indicator = sp.csr_matrix((np.ones(X.nnz), X.indices, X.indptr), X.shape)
    model = ALMAClassifier().fit(X, indicator)
    for name in "far pointer", "far index", "no pointers", "fewer values":
        bad = indicator.copy()
        CORRUPTIONS[name](bad)
        for call in model.fit, model.partial_fit, model.score:
            with pytest.raises(ValueError, match=r"^y is corrupted"):
                call(X, bad)


def takers_of_rows(model):
    """Yield every public function, and every method of the model, that has a parameter X."""
    for owner in sparsemargin, evaluation, model:
        for name in dir(owner):
            taker = getattr(owner, name, None) if name[0] != "_" else None
            if inspect.isroutine(taker) and "X" in inspect.signature(taker).parameters:
                yield taker


WRAPPED = [(kind, size) for kind in (sp.csr_matrix, sp.csc_array, sp.bsr_matrix) for size in "248"]


@pytest.mark.parametrize(("kind", "size"), WRAPPED)
def test_unsigned_decreasing_pointers_are_rejected(X, kind, size):
    """Differences of unsigned pointers wrap, so the pointers would seem to increase."""
    bad, model = kind(X), ALMAClassifier(hypothesis="vote").fit(X, Y)
    bad.indptr = bad.indptr.astype(f"u{size}")
    bad.indptr[4] = np.iinfo(bad.indptr.dtype).max
    given = {"y": Y, "model": model, "classes": None, "sample_weight": None, "before": None}
    takers = list(takers_of_rows(model))
    assert len(takers) > 8
    for taker in takers:
        parameters = inspect.signature(taker).parameters
        others = {key: value for key, value in given.items() if key in parameters}
        with pytest.raises(ValueError, match=r"^X is corrupted"):
            taker(X=bad, **others)
    with pytest.raises(ValueError, match=r"^y is corrupted"):
        ALMAClassifier().fit(X, bad)


def test_lists_of_labels_are_rejected_as_classes(X):
    model = PNormPerceptron(hypothesis="vote").fit(X, Y)
    with pytest.raises(ValueError, match=r"^y\[1\] = \[0, 1\] is no class, but a list of 2"):
        margins(model, X, [[0], [0, 1], []] * 10)


def test_corrupted_arrays_are_rejected_before_slicing(X):
    bad = X.copy()
    CORRUPTIONS["far pointer"](bad)
    with pytest.raises(ValueError, match=r"^X is corrupted"):
        margins(PNormPerceptron().fit(X, Y), bad, Y)


def misaligned(array):
    raw = np.zeros(array.nbytes + 1, np.uint8)
    raw[1:] = array.view(np.uint8)
    return raw[1:].view(array.dtype)


LAYOUTS = {
    "strided": lambda array: np.repeat(array, 2)[::2],
    "backwards": lambda array: array[::-1].copy()[::-1],
    "misaligned": misaligned,
    "byte-swapped": lambda array: array.astype(array.dtype.newbyteorder()),
}


@pytest.mark.parametrize("laid_out", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("name", ["data", "indices", "indptr"])
def test_model_does_not_depend_on_the_memory_layout(X, laid_out, name):
    odd = X.copy()
    setattr(odd, name, laid_out(getattr(X, name)))
    expected, model = (ALMAClassifier(random_state=0).fit(rows, Y) for rows in (X, odd))
    assert_array_equal(model.coef_, expected.coef_)
    assert_array_equal(model.decision_function(odd), expected.decision_function(X))
    assert_array_equal(getattr(odd, name), getattr(X, name))


def test_rows_of_zeros_may_be_reported_as_too_large():
    """The weight of its intercept, which depends on the rows before, is too large."""
    X = sp.csr_matrix([[1.0, 0.0], [-1.0, 1.0], [0.0, 0.0], [0.0, 0.0]])
    model = PNormPerceptron(p=8, normalize=False, intercept_scaling=1.0, shuffle=False, max_iter=3)
    with pytest.raises(ValueError, match=r"^Row \d of X, zero but for the intercept, leads to"):
        model.fit(X, [0, 1, 1, 0], sample_weight=[1e300, 1e300, 1e-300, 1e-300])


def indicator():
    return sp.csr_matrix((np.random.RandomState(0).rand(30, 5) > 0.5).astype(float))


BROKEN_POINTERS = {
    **CORRUPTIONS,
    "the last pointer is 0": put("indptr", -1, 0),
    "the last pointer falls": put("indptr", -1, 3),
    "unsigned pointers": turned(
        "indptr", lambda indptr: (indptr * (np.arange(len(indptr)) != 4)).astype("u4")
    ),
}


@pytest.mark.parametrize("format", [sp.csr_matrix, sp.csr_array, sp.csc_array, sp.bsr_matrix])
@pytest.mark.parametrize("name", BROKEN_POINTERS)
@pytest.mark.parametrize("sort", [False, True])
def test_corrupted_arrays_are_rejected_as_labels(X, name, format, sort):
    bad = format(indicator())
    BROKEN_POINTERS[name](bad)
    if sort:  # which scipy would do first, by compiled code
        bad.has_sorted_indices = bad.has_canonical_format = False
    model = ALMAClassifier()
    fitted = ALMAClassifier().fit(X, indicator())
    for call in (model.fit, model.partial_fit, fitted.score):
        with pytest.raises(ValueError, match=r"^y is (corrupted|of shape)"):
            call(X, bad)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr", "dia"])
def test_other_byte_orders_are_converted(X, format):
    def turned_round(matrix):
        matrix = matrix.asformat(format)
        for name in ("data", "indices", "indptr", "row", "col", "offsets"):
            array = getattr(matrix, name, None)
            if isinstance(array, np.ndarray):
                setattr(matrix, name, array.astype(array.dtype.newbyteorder(">")))
        return matrix

    plain = PNormPerceptron(random_state=0).fit(X, indicator())
    turned_model = PNormPerceptron(random_state=0).fit(turned_round(X), turned_round(indicator()))
    assert_array_equal(turned_model.coef_, plain.coef_)
    assert turned_model.score(turned_round(X), turned_round(indicator())) == plain.score(
        X, indicator()
    )
    alone = fit_csr(turned_round(X), Y.astype(">i8"), "pnorm", random_state=0)
    assert_array_equal(alone.coef_, fit_csr(X, Y, "pnorm", random_state=0).coef_)
