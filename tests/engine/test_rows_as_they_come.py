"""Rows with columns in any order, some of them twice: learned as the rows they add up to are, by
the dense references; and what can't be used of them, refused before it is."""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.base import clone

from problems.first_order import (
    Extras,
    Machine,
    alma_rules,
    augmentations,
    check_random_slices,
    check_votes,
    check_weights,
    cramma_rules,
    examples,
    index_types,
    make_problem,
    margin_rules,
    partial_epochs,
    perceptron_rules,
    problems,
    romma_rules,
    smallest_gap,
    to_csr,
    vectors,
)
from references.first_order import ALMA, MarginPerceptron, run_reference
from sparsemargin import ALMAClassifier, MaxMarginClassifier, PNormPerceptron
from sparsemargin._engine.kernel import gram_loop as gram
from sparsemargin._engine.rows.csr import NOT_CANONICAL, OK, first_bad_row
from sparsemargin.models import rows as border
from tests.engine.test_joint import Joint
from tests.engine.test_joint import check as check_joint
from tests.engine.test_margin_rules import by_dot_products, check_certificate, check_exactly
from tests.engine.test_max_margin import ascend, separable_problem

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

POWERS = [2.0, 3.5, 6.0]

# Factors of an entry's parts, which add up to it in any order without rounding.
PARTS = [(0.5, 0.5), (0.25,) * 4, (0.125,) * 8, (2.0, -1.0), (1.0, 0.0), (-3.0, 4.0)]


def scattered(X, chance, rng):
    """Return X with each row in an order of its own, and, in rows drawn by that chance, half of the
    entries in parts."""
    data, columns, lengths = [], [], []
    for start, stop in pairwise(X.indptr):
        splits = rng.uniform(size=stop - start) < 0.5 * (rng.uniform() < chance)
        parts = [PARTS[rng.randint(len(PARTS))] if split else (1.0,) for split in splits]
        entries = zip(X.data[start:stop], X.indices[start:stop], parts, strict=True)
        row = [(value * part, column) for value, column, factors in entries for part in factors]
        order = rng.permutation(len(row))
        data += [row[i][0] for i in order]
        columns += [row[i][1] for i in order]
        lengths.append(len(row))
    return as_stored(data, columns, lengths, X)


def as_stored(data, columns, lengths, like):
    """Return CSR of these very entries, of the types and the shape of another matrix."""
    X = sp.csr_matrix(like.shape, dtype=like.dtype)
    X.data = np.array(data, dtype=like.dtype)
    X.indices = np.array(columns, dtype=like.indices.dtype)
    X.indptr = np.cumsum([0, *lengths], dtype=like.indices.dtype)
    return X


@dataclass
class Scattered(Machine):
    """A machine whose estimator is given the rows as `scattered` leaves them."""

    chance: float = 0.0
    seed: int = 0

    def given(self, X, problem):
        return scattered(X, self.chance, np.random.RandomState(self.seed))


def rounded(problem):
    """The problem with values of few digits, of which parts are exact."""
    problem.X.data = np.round(problem.X.data * 1024) / problem.X.dtype.type(1024)
    return problem


def machines(rules, powers=POWERS):
    chances = st.sampled_from([0.0, 0.1, 1.0])
    return st.builds(Scattered, rules, st.sampled_from(powers), chances, st.integers(0, 10**6))


def rough(**fixed):
    return problems(index_dtype=index_types, **fixed).map(rounded)


weighted_rules = perceptron_rules | alma_rules | margin_rules
with_p, with_p_of_2 = machines(weighted_rules), machines(weighted_rules, [2.0])
at_2 = machines(cramma_rules | romma_rules, [2.0])
few_classes = st.integers(2, 4).flatmap(lambda k: rough(n_classes=st.just(k)))
narrow = rough(value_dtype=st.just("f4"))
plain = st.builds(Extras, **(augmentations | {"n_epochs": partial_epochs}))
weighted = st.builds(Extras, weighted=st.just(True), **augmentations)


# -- the model of the rows they add up to ---------------------------------------------------------


@examples(150)
@given(with_p | at_2, few_classes, plain, vectors, st.booleans())
def test_rows_of_float64(machine, problem, extras, hypothesis, normalized):
    check_weights(machine, problem, extras, hypothesis, normalized)


@examples(50)
@given(with_p, few_classes, weighted, vectors)
def test_sample_weights(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis)


@examples(75)
@given(
    with_p_of_2 | at_2,
    narrow,
    st.builds(Extras, **augmentations),
    vectors,
)
def test_rows_of_float32_at_p_2(machine, problem, extras, hypothesis):
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


@examples(50)
@given(
    machines(weighted_rules, POWERS[1:]),
    narrow,
    st.builds(Extras, **augmentations),
    vectors,
)
def test_rows_of_float32_at_larger_p(machine, problem, extras, hypothesis):
    # The tolerance leaves room for coefficients handed out as float32.
    check_weights(machine, problem, extras, hypothesis, tolerance=1e-6)


@examples(40)
@given(with_p | at_2, few_classes, plain)
def test_votes(machine, problem, extras):
    check_votes(machine, problem, extras)


@examples(40)
@given(with_p | at_2, few_classes, plain, st.booleans(), st.integers(0, 1000))
def test_random_time_slices(machine, problem, extras, normalized, random_state):
    check_random_slices(machine, problem, extras, normalized, random_state)


@examples(75)
@given(
    machines(perceptron_rules | alma_rules),
    st.integers(3, 5).flatmap(lambda k: rough(n_classes=st.just(k))),
    st.builds(
        Joint, n_epochs=partial_epochs, rho=st.sampled_from([None, 0.5]), weighted=st.booleans()
    ),
    vectors,
)
def test_joint_rows_of_float64(machine, problem, extras, hypothesis):
    check_joint(machine, problem, extras, hypothesis)


@examples(40)
@given(
    machines(perceptron_rules | alma_rules),
    rough(n_classes=st.just(4), value_dtype=st.just("f4")),
    st.builds(Joint, n_epochs=st.integers(1, 3)),
    vectors,
)
def test_joint_rows_of_float32(machine, problem, extras, hypothesis):
    check_joint(machine, problem, extras, hypothesis, tolerance=1e-4, least_gap=1e-4)


@examples(40)
@given(
    with_p,
    rough(m=st.just(25)),
    st.sampled_from([1, 3, 20, 70]),
    st.builds(Extras, n_epochs=st.integers(1, 2), rho=st.sampled_from([None, 0.5])),
    vectors,
)
def test_many_labels_a_row(machine, problem, n_labels, extras, hypothesis):
    rng = np.random.RandomState(n_labels)
    Y = rng.uniform(size=(25, n_labels)) < 0.4
    Y[0], Y[1] = True, False
    rows, options = problem.X.toarray(), {"n_epochs": extras.n_epochs, "rho": extras.rho}
    runs = [
        run_reference(rows, np.where(of_label, 1, -1), machine.rule, machine.p, **options)
        for of_label in Y.T
    ]
    assume(smallest_gap(runs) > 1e-9)
    model = extras.estimator(machine, hypothesis=hypothesis)
    model.fit(machine.given(problem.X, problem), sp.csr_matrix(Y.astype(int)))
    np.testing.assert_array_equal(model.n_corrections_, [run.n_corrections for run in runs])
    expected = np.array([getattr(run, hypothesis)() for run in runs]).astype(float)
    error = 1e-10 * np.abs(expected).max()
    np.testing.assert_allclose(model.coef_, expected[:, : rows.shape[1]], rtol=0, atol=error)


@examples(75)
@given(
    with_p_of_2 | at_2,
    few_classes,
    st.builds(Extras, **(augmentations | {"n_epochs": st.integers(4, 30)})),
)
def test_passes_by_dot_products(machine, problem, extras):
    with by_dot_products() as passes:
        estimator = check_weights(machine, problem, extras, "last")
    assert sum(passes) == estimator.n_iter_ - 1


tolerant = st.builds(
    Extras,
    tol=st.sampled_from([1e-9, 0.5, 0.8]),
    **(augmentations | {"n_epochs": st.integers(1, 6)}),
)


@examples(75)
@given(with_p | at_2, few_classes, tolerant)
def test_certificate(machine, problem, extras):
    check_certificate(machine, problem, extras, normalized=False)


@examples(40)
@given(with_p_of_2 | at_2, few_classes, tolerant)
def test_certificate_by_dot_products(machine, problem, extras):
    with by_dot_products():
        check_certificate(machine, problem, extras, normalized=False)


@examples(50)
@given(
    machines(st.builds(MarginPerceptron, margin=st.sampled_from([0.0, 1.0, 4.0])), [2.0]),
    problems(
        integers=st.just(True), value_dtype=st.sampled_from(["f4", "f8"]), n=st.integers(2, 5)
    ),
    st.builds(Extras, n_epochs=st.integers(1, 30), delta=st.sampled_from([0.0, 0.5])),
    st.booleans(),
)
def test_exact_ties_of_whole_numbers_are_corrected(machine, problem, extras, by_gram):
    with by_dot_products() if by_gram else nullcontext():
        check_exactly(machine, problem, extras)


@pytest.mark.parametrize("chance", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("delta", [0.0, 0.4])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("memory", [0, gram.MEMORY])
def test_multipliers_of_the_largest_margin(memory, p, delta, chance, monkeypatch):
    monkeypatch.setattr(gram, "MEMORY", memory)
    X, y = separable_problem()
    X.data = np.round(X.data * 1024) / 1024
    expected, *_, bound = ascend(X.toarray(), np.where(y == 1, 1, -1), p, 30, delta=delta)
    model = MaxMarginClassifier(
        p=p, soft_margin=delta, tol=None, max_iter=30, shuffle=False, fit_intercept=False
    ).fit(scattered(X, chance, np.random.RandomState(0)), y)
    visible = expected[: X.shape[1]].astype(float)
    np.testing.assert_allclose(model.theta_[0], visible, atol=1e-10 * abs(visible).max())
    assert model.margin_upper_bound_ == pytest.approx(float(bound), rel=1e-10)


# -- the quick test's bound on the norm -----------------------------------------------------------


@pytest.mark.parametrize("n_labels", [1, 20])
@pytest.mark.parametrize(("rho", "delta"), [(None, 0.0), (0.1, 0.0), (None, 0.1)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize(
    "rule", [ALMA(alpha=0.9), ALMA(alpha=0.95), MarginPerceptron(0.2, normalize=True)]
)
def test_a_row_is_as_long_as_its_entries_added_up(rule, p, dtype, rho, delta, n_labels):
    # The parts of the second row's long entry are together far shorter than that is.
    y, counted = np.array([1, 1, -1]), set()
    of_labels = y if n_labels == 1 else np.tile(y[:, np.newaxis] > 0, n_labels).astype(int)
    model = Extras(rho=rho, delta=delta).estimator(Machine(rule, p), hypothesis="last")
    for output in np.linspace(0.02, 2.0, 17, dtype=dtype):
        rows = np.array([[1.0, 0.0, 0.0], [output, 1.0, 0.0], [0.0, 0.0, 1.0]])
        run = run_reference(rows, y, rule, p, rho=rho, delta=delta)
        assert run.smallest_gap > 1e-6
        for n_parts in 1, 2, 4, 256:
            data = [1.0, *[1 / n_parts] * n_parts, output, 1.0]
            columns = [0, *[1] * n_parts, 0, 2]
            X = as_stored(data, columns, [1, n_parts + 1, 1], to_csr(rows, dtype, "i4"))
            model.fit(X, of_labels)
            assert np.all(model.n_corrections_ == run.n_corrections), (output, n_parts)
        counted.add(run.n_corrections)
    assert counted == {2, 3}


# -- columns that the scratch can't tell apart ----------------------------------------------------

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
def test_columns_that_share_a_mark_are_no_repeats(rows, index_dtype):
    # Beyond what 32 bits hold, too, where indices do.
    stride = MARKS if index_dtype == "i4" else MARKS << 20
    rows = [[near + stride * far for near, far in row] for row in rows]
    repeats = [len(set(row)) < len(row) for row in rows]
    columns = np.array([column for row in rows for column in row], dtype=index_dtype)
    indptr = np.cumsum([0, *map(len, rows)], dtype=index_dtype)
    stored = border.Rows(np.ones(len(columns)), columns, indptr, 4 * stride)
    found = first_bad_row(stored, False)
    first = repeats.index(True) if any(repeats) else -1
    assert found == (NOT_CANONICAL if any(repeats) else OK, first)


@pytest.mark.parametrize("multi_class", ["ovr", "joint"])
@pytest.mark.parametrize("value_dtype", ["f4", "f8"])
@pytest.mark.parametrize("index_dtype", ["i4", "i8"])
@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("chance", [0.0, 0.2])
def test_columns_far_apart_are_learned_as_near_ones(
    chance, p, index_dtype, value_dtype, multi_class
):
    problem = rounded(make_problem(4, 30, 6, 0.5, 0.2, 3, value_dtype, index_dtype))
    places = np.arange(6) % 2 + MARKS * (np.arange(6) // 2)
    X = scattered(problem.X, chance, np.random.RandomState(1))
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
    # Sums of several products round by the order of the row.
    close = {"rtol": 1e-4, "atol": 1e-6} if value_dtype == "f4" else {"rtol": 1e-10, "atol": 1e-13}
    np.testing.assert_allclose(model.coef_[:, places], expected.coef_, **close)
    assert np.count_nonzero(model.coef_) == np.count_nonzero(expected.coef_)


# -- what can't be used ---------------------------------------------------------------------------

N_LONG = 300  # some blocks of what is scored between looks at the columns

LABELS = {
    "two classes": [0, 1, 1, 1],
    "three classes": [0, 1, 2, 1],
    "many labels": np.eye(3, 20, dtype=int)[[0, 1, 2, 1]],
}


def long_rows(dtype, index_dtype, order):
    """Three rows of one entry, and one like the second but for zeros where no row has been, in
    many columns."""
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


def labels_of(kind):
    return LABELS[kind.removesuffix(", joint")]


every_kind = pytest.mark.parametrize("kind", [*LABELS, "three classes, joint"])
every_type = pytest.mark.parametrize(
    ("dtype", "index_dtype"), [("f4", "i4"), ("f4", "i8"), ("f8", "i4"), ("f8", "i8")]
)
every_order = pytest.mark.parametrize("order", ["sorted", "reversed", "rotated"])
PLACES = [0, 1, 63, 64, 100, 191, 192, N_LONG - 1]


@every_kind
@pytest.mark.parametrize("p", POWERS)
def test_the_last_of_the_long_rows_never_corrects(kind, p):
    X, y = long_rows("f8", "i4", "sorted"), labels_of(kind)
    model, without = make_model(kind, p).fit(X, y), make_model(kind, p).fit(X[:3], y[:3])
    np.testing.assert_array_equal(model.n_corrections_, without.n_corrections_)


@every_kind
@every_type
@every_order
@pytest.mark.parametrize("p", [2.0, 3.5])
def test_what_is_not_finite_is_refused_where_weights_are_0(p, order, dtype, index_dtype, kind):
    for place in PLACES:
        for value, name in (np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"):
            X = long_rows(dtype, index_dtype, order)
            X.data[3 + place] = value
            where = rf"contains {name} at row 3, column {X.indices[3 + place]}\."
            with pytest.raises(ValueError, match=where):
                make_model(kind, p).fit(X, labels_of(kind))


@every_kind
@every_type
def test_what_is_not_finite_is_refused_in_a_row_of_weight_0(dtype, index_dtype, kind):
    X = long_rows(dtype, index_dtype, "reversed")
    X.data[-1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN at row 3, column 1\."):
        make_model(kind, 2.0).fit(X, labels_of(kind), sample_weight=[1, 1, 1, 0])


@every_kind
@every_type
@every_order
def test_columns_out_of_range_are_refused_before_they_are_read(order, dtype, index_dtype, kind):
    ends = np.iinfo(index_dtype)
    for place in PLACES:
        for bad in -1, ends.min, N_LONG + 2, ends.max:
            X = long_rows(dtype, index_dtype, order)
            X.indices[3 + place] = bad
            # Of a value that is not finite, in the first block or the last, is told later.
            X.data[3 + (0 if place > 100 else N_LONG - 1)] = np.nan
            with pytest.raises(ValueError, match=f"at row 3: column index {bad} is outside"):
                make_model(kind, 2.0).fit(X, labels_of(kind))
