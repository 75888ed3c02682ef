"""Rows with unsorted or duplicate columns: their norms, columns that are hard to distinguish, and
invalid rows, which are rejected before they are used.

``test_first_order.py`` shows that duplicates are trained on as their sums.
"""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import sparsemargin
from depth import pairwise
from problems.first_order import (
    Extras,
    Machine,
    as_stored,
    examples,
    index_types,
    make_problem,
    scattered,
    to_csr,
)
from references.first_order import ALMA, MarginPerceptron, run_reference
from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin._engine.rows.csr import NOT_CANONICAL, OK, first_bad_row
from sparsemargin._engine.rows.parts import summed
from sparsemargin.kernels import RBF
from sparsemargin.models.inputs import rows as border

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

POWERS = [2.0, 3.5, 6.0]


@pytest.mark.parametrize(
    ("rule", "p", "dtype", "coordinates", "n_vectors"),
    pairwise(
        [ALMA(alpha=0.9), ALMA(alpha=0.95), MarginPerceptron(0.2, normalize=True)],
        POWERS,
        ["f4", "f8"],
        [{}, {"rho": 0.1}, {"delta": 0.1}],
        [1, 20],
    ),
)
def test_norm_of_a_row_uses_summed_duplicates(rule, p, dtype, coordinates, n_vectors):
    # The parts of the second row's long entry have a much smaller norm together than separately.
    y, counted = np.array([1, 1, -1]), set()
    of_vectors = y if n_vectors == 1 else np.tile(y[:, np.newaxis] > 0, n_vectors).astype(int)
    model = Extras(**coordinates).estimator(Machine(rule, p), hypothesis="last")
    for output in np.linspace(0.02, 2.0, 17, dtype=dtype):
        rows = np.array([[1.0, 0.0, 0.0], [output, 1.0, 0.0], [0.0, 0.0, 1.0]])
        run = run_reference(rows, y, rule, p, **coordinates)
        assert run.smallest_gap > 1e-6
        for n_parts in 1, 2, 4, 256:
            data = [1.0, *[1 / n_parts] * n_parts, output, 1.0]
            columns = [0, *[1] * n_parts, 0, 2]
            X = as_stored(data, columns, [1, n_parts + 1, 1], to_csr(rows, dtype, "i4"))
            model.fit(X, of_vectors)
            assert np.all(model.n_corrections_ == run.n_corrections), (output, n_parts)
        counted.add(run.n_corrections)
    assert counted == {2, 3}


MARKS = 1 << 20


@examples(100)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=8),
        min_size=1,
        max_size=6,
    ),
    index_types,
)
def test_columns_with_the_same_mark_are_not_duplicates(rows, index_dtype):
    # With 64-bit indices, columns beyond the 32-bit range are used, too.
    stride = MARKS if index_dtype == "i4" else MARKS << 20
    rows = [[near + stride * far for near, far in row] for row in rows]
    repeats = [len(set(row)) < len(row) for row in rows]
    columns = np.array([column for row in rows for column in row], dtype=index_dtype)
    indptr = np.cumsum([0, *map(len, rows)], dtype=index_dtype)
    stored = border.Rows(np.ones(len(columns)), columns, indptr, 4 * stride)
    found = first_bad_row(stored, False)
    first = repeats.index(True) if any(repeats) else -1
    assert found == (NOT_CANONICAL if any(repeats) else OK, first)


@pytest.mark.parametrize(
    ("chance", "p", "index_dtype", "value_dtype", "multi_class"),
    pairwise([0.0, 0.2], POWERS, ["i4", "i8"], ["f4", "f8"], ["ovr", "joint"]),
)
def test_distant_columns_are_learned_like_near_ones(
    chance, p, index_dtype, value_dtype, multi_class
):
    problem = make_problem(4, 30, 6, 0.5, 0.2, 3, value_dtype, index_dtype)
    places = np.arange(6) % 2 + MARKS * (np.arange(6) // 2)
    X = scattered(problem.X, chance, 1)
    wide = sp.csr_matrix((30, places[-1] + 1), dtype=X.dtype)
    wide.data, wide.indptr = X.data, X.indptr
    wide.indices = places[X.indices].astype(index_dtype)
    model = ALMAClassifier(p=p, multi_class=multi_class, shuffle=False, fit_intercept=False)
    added_up = wide.copy()
    added_up.sum_duplicates()
    assert (added_up.nnz < wide.nnz) == (chance > 0)
    model.fit(wide, problem.y)
    expected = clone(model).fit(problem.X, problem.y)
    np.testing.assert_array_equal(model.n_corrections_, expected.n_corrections_)
    # Sums of several products depend on the order of the entries by rounding errors.
    close = {"rtol": 1e-4, "atol": 1e-6} if value_dtype == "f4" else {"rtol": 1e-10, "atol": 1e-13}
    np.testing.assert_allclose(model.coef_[:, places], expected.coef_, **close)
    assert np.count_nonzero(model.coef_) == np.count_nonzero(expected.coef_)


N_LONG = 300  # more than one block of entries that are scored between two checks of columns

LABELS = {
    "two classes": [0, 1, 1, 1],
    "three classes": [0, 1, 2, 1],
    "three classes, joint": [0, 1, 2, 1],
    "many labels": np.eye(3, 20, dtype=int)[[0, 1, 2, 1]],
}
TYPES = [("f4", "i4"), ("f4", "i8"), ("f8", "i4"), ("f8", "i8")]
ORDERS = ["sorted", "reversed", "rotated"]
PLACES = [0, 1, 63, 64, 100, 191, 192, N_LONG - 1]


def long_rows(dtype, index_dtype, order):
    """Three rows with one entry, and one that equals the second, plus zeros in many columns that no
    other row has."""
    columns = np.r_[1, np.arange(3, N_LONG + 2)]
    last = {"sorted": columns, "reversed": columns[::-1], "rotated": np.roll(columns, 100)}[order]
    like = sp.csr_matrix((4, N_LONG + 2), dtype=dtype)
    like.indices = like.indices.astype(index_dtype)
    return as_stored([1.0] * 3 + [1.0] * N_LONG, [0, 1, 2, *last], [1, 1, 1, N_LONG], like)


def make_model(kind, p):
    joint = {"multi_class": "joint"} if kind == "three classes, joint" else {}
    return PNormPerceptron(
        p=p, normalize=False, hypothesis="last", shuffle=False, fit_intercept=False, max_iter=2,
        **joint,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "types", "order", "p"), pairwise(list(LABELS), TYPES, ORDERS, [2.0, 3.5])
)
def test_non_finite_values_are_rejected_despite_zero_weights(kind, types, order, p):
    for place in PLACES:
        for value, name in (np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"):
            X = long_rows(*types, order)
            X.data[3 + place] = value
            where = rf"contains {name} at row 3, column {X.indices[3 + place]}\."
            with pytest.raises(ValueError, match=where):
                make_model(kind, p).fit(X, LABELS[kind])
    with pytest.raises(ValueError, match=where):
        make_model(kind, p).fit(X, LABELS[kind], sample_weight=[1, 1, 1, 0])


@pytest.mark.parametrize(("kind", "types", "order"), pairwise(list(LABELS), TYPES, ORDERS))
def test_columns_out_of_range_are_rejected_before_reading(kind, types, order):
    ends = np.iinfo(types[1])
    for place in PLACES:
        for bad in -1, ends.min, N_LONG + 2, ends.max:
            X = long_rows(*types, order)
            X.indices[3 + place] = bad
            # A value that is not finite, in the first or last block, is reported later.
            X.data[3 + (0 if place > 100 else N_LONG - 1)] = np.nan
            with pytest.raises(ValueError, match=f"at row 3: column index {bad} is outside"):
                make_model(kind, 2.0).fit(X, LABELS[kind])


def unsorted_rows(dtype, index_type, n=120, d=30, k=20):
    """Return rows with columns in random order, of which some have repeated columns."""
    rng = np.random.RandomState(0)
    indices = np.vstack([rng.permutation(d)[:k] for _ in range(n)]).astype(index_type)
    for row in rng.choice(n, 20, replace=False):
        indices[row, -3:] = indices[row, :3]
    X = sp.csr_matrix((n, d), dtype=dtype)
    X.data, X.indices = rng.randn(n * k).astype(dtype), indices.ravel()
    X.indptr = np.arange(0, n * k + 1, k, dtype=index_type)
    return X, rng.randint(0, 3, n)


@pytest.mark.parametrize(("dtype", "index_type"), [("f4", "i4"), ("f8", "i8")])
@pytest.mark.parametrize(
    ("classifier", "params"),
    [
        ("AROWClassifier", {}), ("ALMAClassifier", {}), ("ALMAClassifier", {"p": 4.0}),
        ("PNormPerceptron", {}), ("PNormPerceptron", {"hypothesis": "average"}),
        ("PNormPerceptron", {"hypothesis": "vote"}), ("ROMMAClassifier", {}),
        ("PNormPerceptron", {"multi_class": "joint"}),
        ("PNormPerceptron", {"kernel": RBF(0.1)}),
        ("HigherOrderPerceptron", {}), ("SecondOrderPerceptron", {}),
    ],
)  # fmt: skip
def test_rows_with_repeated_columns_change_no_other_row(classifier, params, dtype, index_type):
    X, y = unsorted_rows(dtype, index_type)
    make = partial(getattr(sparsemargin, classifier), random_state=0, intercept_scaling=1.0)
    models = []
    for size in len(y), 50, 1:
        model = make(**params)
        for start in range(0, len(y), size):
            batch = slice(start, start + size)
            model.partial_fit(X[batch], y[batch], [0, 1, 2])
        models.append(model)
    models.append(make(shuffle=False, max_iter=1, **params).fit(X, y))
    outputs = [model.decision_function(X) for model in models]
    if "kernel" not in params:  # BLAS adds up the products of one row in another order.
        outputs.append(np.vstack([models[0].decision_function(X[i]) for i in range(len(y))]))
    for other in outputs[1:]:
        np.testing.assert_array_equal(other, outputs[0])


def test_only_rows_with_repeated_columns_are_summed():
    X = sp.csr_matrix((4, 6), dtype=np.float32)
    X.data = np.array([1, 2, 1e8, 3, -1e8, 4, 5, 6], np.float32)
    X.indices = np.array([4, 1, 3, 0, 3, 2, 3, 3], np.int32)
    X.indptr = np.array([0, 2, 5, 6, 8], np.int32)
    rows = summed(border.open_rows(X))
    assert rows.indptr.tolist() == [0, 2, 4, 5, 6]
    assert rows.indices.tolist() == [4, 1, 0, 3, 2, 3]
    assert rows.data.tolist() == [1, 2, 3, 0, 4, 11]
    assert X.indices.tolist() == [4, 1, 3, 0, 3, 2, 3, 3]
    assert summed(rows) is rows
