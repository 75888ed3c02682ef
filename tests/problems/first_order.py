"""Random problems and machines, and comparisons of estimators with the dense references."""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st

import sparsemargin
from depth import some
from references.first_order import (
    ALMA,
    CRAMMA,
    ROMMA,
    MarginPerceptron,
    Perceptron,
    Rule,
    run_one_versus_rest,
)
from sparsemargin._engine.first_order import linear_loop
from sparsemargin._engine.fitting import epochs as fitting
from sparsemargin.models import learner as base


def examples(n):
    """Return settings for n examples: a fifth in the quick selection, four times as many in
    the full tests; the same examples in every run. fuzz/valgrind uses fewer."""
    fewer = int(os.environ.get("SPARSEMARGIN_FEWER_EXAMPLES", "1"))
    return settings(
        max_examples=-(-some(n // 5, 4 * n) // fewer),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
    )


@dataclass
class Problem:
    X: sp.csr_matrix
    y: np.ndarray
    X_test: sp.csr_matrix


def random_rows(rng, m, n, density, integers):
    """Return dense rows with many zeros; the other entries are not close to 0."""
    signs = rng.choice([-1, 1], (m, n))
    sizes = rng.randint(1, 4, (m, n)) if integers else rng.uniform(0.1, 1, (m, n))
    return signs * sizes * (rng.uniform(size=(m, n)) < density)


def dense_problem(m=60, n=12, seed=0):
    """Return rows that are mostly 0, and labels of a target with noise."""
    rng = np.random.RandomState(seed)
    X = rng.uniform(-1, 1, (m, n)) * (rng.uniform(size=(m, n)) < 0.4)
    y = np.where(X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(m) > 0, 1, -1)
    return X, y


def to_csr(rows, value_dtype, index_dtype):
    X = sp.csr_matrix(rows.astype(value_dtype))
    # The constructor would choose the index dtype itself.
    X.indices, X.indptr = X.indices.astype(index_dtype), X.indptr.astype(index_dtype)
    return X


def make_problem(
    seed, m, n, density, noise, n_classes=2, value_dtype="f8", index_dtype="i4", integers=False,
    cancels=0.0,
):  # fmt: skip
    """Label rows by the best of several random sparse targets, then change some labels at random.

    If `cancels` is not 0, the first two rows, which have different classes, are equal, and scaled
    by it: the vectors return to 0.
    """
    rng = np.random.RandomState(seed)
    rows = random_rows(rng, m + 10, n, density, integers)
    if cancels:
        rows[:2] = cancels * rows[0]
    targets = random_rows(rng, n_classes, n, 0.5, integers)
    y = np.argmax(rows[:m] @ targets.T, axis=1)
    relabelled = rng.uniform(size=m) < noise
    y[relabelled] = rng.randint(n_classes, size=relabelled.sum())
    y[:n_classes] = rng.permutation(n_classes)
    X, X_test = (to_csr(part, value_dtype, index_dtype) for part in (rows[:m], rows[m:]))
    return Problem(X, y, X_test)


def problems(**fixed):
    free = {"seed": st.integers(0, 2**31 - 1), "m": st.integers(5, 40), "n": st.integers(3, 25)}
    # The low densities produce empty rows as well.
    free |= {"density": st.sampled_from([0.2, 0.5, 1.0]), "noise": st.sampled_from([0.0, 0.2])}
    free["cancels"] = st.sampled_from([0.0, 0.0, 1.0, 2.0**-10])
    return st.builds(make_problem, **(free | fixed))


index_types = st.sampled_from(["i4", "i8"])
# Factors of the parts of an entry, whose sum is exact in any order.
PARTS = [(0.5, 0.5), (0.5, 0.0, 0.5, 0.0), (2.0, -1.0), (1.0, 0.0), (-1.0, 1.0, 1.0)]


def scattered(X, chance, seed):
    """Return X with each row in a random order. In rows selected with the given probability, half
    of the entries are split into parts."""
    rng = np.random.RandomState(seed)
    rows = []
    for start, stop in pairwise(X.indptr):
        splits = rng.uniform(size=stop - start) < 0.5 * (rng.uniform() < chance)
        parts = [PARTS[rng.randint(len(PARTS))] if split else (1.0,) for split in splits]
        entries = zip(X.data[start:stop], X.indices[start:stop], parts, strict=True)
        row = [(value * part, column) for value, column, factors in entries for part in factors]
        rows.append([row[i] for i in rng.permutation(len(row))])
    data, columns = np.array([entry for row in rows for entry in row]).reshape(-1, 2).T
    return as_stored(data, columns, [len(row) for row in rows], X)


def as_stored(data, columns, lengths, like):
    """Return CSR with exactly these entries, and the dtypes and the shape of another matrix."""
    X = sp.csr_matrix(like.shape, dtype=like.dtype)
    X.data = np.array(data, dtype=like.dtype)
    X.indices = np.array(columns, dtype=like.indices.dtype)
    X.indptr = np.cumsum([0, *lengths], dtype=like.indices.dtype)
    return X


RULES = {
    "Perceptron": st.builds(Perceptron, normalize=st.booleans()),
    # C other than the default: of Remark 4 of Gentile (2001) at alpha = 0.5, and a step that is too
    # small to reach the unit sphere soon.
    "ALMA": st.builds(
        ALMA,
        alpha=st.sampled_from([1.0, 0.9, 0.5]),
        C=st.sampled_from([None, None, np.sqrt(0.5), 0.1]),
        normalize=st.sampled_from([True, False, "running", "max"]),
    ),
    "margin": st.builds(
        MarginPerceptron,
        margin=st.sampled_from([0.0, 0.3, 2.0]),
        normalize=st.booleans(),
    ),
    "CRAMMA": st.builds(
        CRAMMA,
        beta=st.sampled_from([0.1, 0.5, 2.0]),
        eta_eff=st.sampled_from([0.02, 0.1, 0.5]),
        epsilon=st.sampled_from([0.5, 1.0, 2.0]),
        radius=st.sampled_from([None, 0.5, 10.0]),
    ),
    "ROMMA": st.builds(ROMMA, aggressive=st.booleans()),
}
# The rules whose estimators have `tol`.
SEEKING = ["margin", "CRAMMA", "ROMMA"]
# These rules do not support weights of steps either.
OF_P_2 = ["CRAMMA", "ROMMA"]
POWERS = [2.0, 2.5, 3.0, 6.0, 10.0, 21.5, "log"]

ESTIMATORS = {
    Perceptron: sparsemargin.PNormPerceptron,
    ALMA: sparsemargin.ALMAClassifier,
    MarginPerceptron: sparsemargin.MarginPerceptron,
    CRAMMA: sparsemargin.CRAMMAClassifier,
    ROMMA: sparsemargin.ROMMAClassifier,
}


class Subject:
    """An object of comparison: `given` returns rows in the form for the estimator, `test_rows`
    those for predictions of the references."""

    def given(self, X, problem):
        return X

    def test_rows(self, problem):
        return problem.X_test.toarray()


@dataclass
class Machine(Subject):
    """A reference rule with its power p, and the estimator that must agree with it.

    The estimator may get rows changed by `scattered`, with a probability and a seed.
    """

    rule: Rule
    p: float | str = 2.0
    chance: float | None = None
    seed: int = 0

    def given(self, X, problem):
        return X if self.chance is None else scattered(X, self.chance, self.seed)

    def estimator(self, **params):
        chosen = {name: value for name, value in vars(self.rule).items() if value is not None}
        if isinstance(self.rule, CRAMMA):
            # The estimator's rate is eta0 / beta^delta, with delta = 1.
            chosen["eta0"] = chosen.pop("eta_eff") * self.rule.beta
        if not isinstance(self.rule, CRAMMA | ROMMA):
            chosen["p"] = self.p
        if isinstance(self.rule, CRAMMA | ROMMA | MarginPerceptron):
            params = {"hypothesis": "last", "early_stopping": False, **params}
        if isinstance(self.rule, ALMA | CRAMMA):  # their vectors have norm 1, or less
            assume(not params.pop("normalize_hypotheses", False))
        return ESTIMATORS[type(self.rule)](shuffle=False, **chosen, **params)


def machines(names=tuple(RULES), powers=POWERS):
    disorder = st.sampled_from([None, 0.0, 0.1, 1.0]), st.integers(0, 10**6)
    of_rule = {name: st.sampled_from([2.0] if name in OF_P_2 else powers) for name in names}
    return st.one_of(st.builds(Machine, RULES[name], of_rule[name], *disorder) for name in names)


@dataclass
class Extras:
    """Optional parts of a run: coordinates, weights, epochs and their ends."""

    n_epochs: float | None = 1
    rho: float | None = None
    delta: float = 0.0
    weighted: bool = False
    class_weight: dict | str | None = None
    max_corrections: int | None = None
    tol: float | None = None

    def sample_weight(self, problem):
        """Return weights that include zeros; that of the first row is not 0."""
        rng = np.random.RandomState(len(problem.y))
        return np.r_[1.0, rng.choice([0.0, 0.5, 1.0, 2.0], len(problem.y) - 1)]

    def options(self, problem):
        weights = self.sample_weight(problem) if self.weighted else None
        options = {**vars(self), "sample_weight": weights}
        del options["weighted"]
        if self.max_corrections is None:
            del options["max_corrections"]
        return options

    def runs(self, machine, problem):
        return run_one_versus_rest(
            problem.X.toarray(), problem.y, machine.rule, machine.p, **self.options(problem)
        )

    def estimator(self, machine, **params):
        named = {name: getattr(self, name) for name in ("class_weight", "max_corrections", "tol")}
        named["intercept_scaling"] = self.rho
        params |= {name: value for name, value in named.items() if value is not None}
        params |= {"max_iter": self.n_epochs, "soft_margin": self.delta}
        return machine.estimator(fit_intercept=self.rho is not None, **params)

    def fit(self, machine, problem, **params):
        weights = {"sample_weight": self.sample_weight(problem)} if self.weighted else {}
        X = machine.given(problem.X, problem)
        return self.estimator(machine, **params).fit(X, problem.y, **weights)


# Enough epochs, the last of them partial, for runs to converge and then only count trials.
partial_epochs = st.sampled_from([1, 2.67, 12.3])
augmentations = {
    "n_epochs": st.integers(1, 3),
    "rho": st.sampled_from([None, 0.5, 1.0, 3.0]),
    "delta": st.sampled_from([0.0, 0.5]),
}
vectors = st.sampled_from(["last", "average"])


# Below this relative norm, the direction of a vector in float64 has errors above 1e-10.
LEAST_NORM = 1e-4


def smallest_gap(runs):
    return min(run.smallest_gap for run in runs)


def assert_per_machine(fitted, expected, **tolerances):
    assert np.shape(fitted) == (() if len(expected) == 1 else (len(expected),))
    np.testing.assert_allclose(np.atleast_1d(fitted), expected, **tolerances)


def assert_same_corrections(estimator, runs):
    expected = [run.n_corrections for run in runs]
    np.testing.assert_array_equal(np.atleast_1d(estimator.n_corrections_), expected)


def assert_same_dual_vectors(estimator, runs, tolerance):
    thetas = np.array([run.visible_theta for run in runs]).astype(float)
    error = tolerance * np.abs(thetas).max()
    np.testing.assert_allclose(estimator.theta_, thetas, rtol=0, atol=error)
    norms = np.array([run.theta_norm for run in runs]).astype(float)
    np.testing.assert_allclose(estimator.theta_norm_, norms, rtol=0, atol=tolerance * norms.max())


def assert_same_weights(estimator, problem, runs, expected, tolerance):
    n, rho = problem.X.shape[1], runs[0].rho
    coef = expected[:, :n].astype(float)
    intercept = np.zeros(len(runs)) if rho is None else rho * expected[:, n].astype(float)
    error = tolerance * float(np.abs(expected).max()) * max(1, rho or 0)
    np.testing.assert_allclose(estimator.coef_, coef, rtol=0, atol=error)
    fitted_intercept = np.broadcast_to(estimator.intercept_, len(runs))
    np.testing.assert_allclose(fitted_intercept, intercept, rtol=0, atol=error)
    outputs = by_machine(problem.X_test @ coef.T + intercept)
    # The sum has up to n entries of size at most 3, and the intercept.
    error *= 3 * n + 1
    decision = estimator.decision_function(problem.X_test)
    assert decision.shape == outputs.shape
    np.testing.assert_allclose(decision, outputs, rtol=0, atol=error)


def by_machine(outputs):
    """Return outputs with one column per machine in scikit-learn's shape: flat for two classes."""
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


def check_weights(
    machine, problem, extras, hypothesis, normalized=False, tolerance=1e-10, least_gap=1e-9
):
    runs = comparable_runs(machine, problem, extras, normalized, least_gap)
    return fit_same_weights(machine, problem, extras, runs, hypothesis, normalized, tolerance)


def comparable_runs(machine, problem, extras, normalized=False, least_gap=1e-9):
    """Return the runs, unless rounding could change a decision or a normalized vector's
    direction."""
    runs = extras.runs(machine, problem)
    assume(smallest_gap(runs) > least_gap)
    assume(any(run.weights[-1].any() for run in runs))  # otherwise there is no scale for errors
    assume(not normalized or have_directions(runs))
    return runs


def have_directions(runs):
    return all(run.smallest_norm > LEAST_NORM for run in runs)


def fit_same_weights(machine, problem, extras, runs, hypothesis, normalized, tolerance=1e-10):
    estimator = extras.fit(machine, problem, hypothesis=hypothesis, normalize_hypotheses=normalized)
    assert_same_corrections(estimator, runs)
    assert_same_dual_vectors(estimator, runs, tolerance)
    expected = np.array([getattr(run, hypothesis)(normalized) for run in runs])
    assert_same_weights(estimator, problem, runs, expected, tolerance)
    return estimator


def check_hypotheses(machine, problem, extras, normalized, random_state):
    runs = comparable_runs(machine, problem, extras, normalized)
    last = fit_same_weights(machine, problem, extras, runs, "last", normalized)
    fit_same_weights(machine, problem, extras, runs, "average", normalized)
    if isinstance(machine.rule, MarginPerceptron | CRAMMA | ROMMA) and are_certified(runs):
        assert_margins(last.margin_, last.margin_upper_bound_, runs)
    if votes_are_clear(machine, problem, runs):
        fit_same_votes(machine, problem, extras, runs)
    fit_same_slices(machine, problem, extras, runs, normalized, random_state)


def check_votes(machine, problem, extras):
    runs = comparable_runs(machine, problem, extras)
    assume(votes_are_clear(machine, problem, runs))
    fit_same_votes(machine, problem, extras, runs)


def votes_are_clear(machine, problem, runs):
    return min(run.vote_gap(machine.test_rows(problem)) for run in runs) > 1e-9


def fit_same_votes(machine, problem, extras, runs):
    estimator = extras.fit(machine, problem, hypothesis="vote")
    assert_same_corrections(estimator, runs)
    test_rows = machine.test_rows(problem)
    votes = by_machine(np.array([run.votes(test_rows) / run.n_trials for run in runs]).T)
    # Like the average, a vote is divided by the trials.
    decision = estimator.decision_function(machine.given(problem.X_test, problem))
    np.testing.assert_allclose(decision, votes.astype(float), rtol=0, atol=1e-14)


def check_random_slices(machine, problem, extras, normalized, random_state):
    runs = comparable_runs(machine, problem, extras, normalized)
    fit_same_slices(machine, problem, extras, runs, normalized, random_state)


def fit_same_slices(machine, problem, extras, runs, normalized, random_state):
    """Every output must be that of one time slice, which is the same for all machines."""
    how = {"normalize_hypotheses": normalized, "random_state": random_state}
    estimator = extras.fit(machine, problem, hypothesis="random", **how)
    X_test = machine.given(problem.X_test, problem)
    scores = estimator.decision_function(X_test).reshape(-1, len(runs))
    by_slice = all_slice_scores(runs, machine.test_rows(problem), normalized)
    error = np.abs(by_slice - scores).max(axis=2) / np.abs(by_slice).max(initial=1)
    assert error.min(axis=0).max() < 1e-10


def all_slice_scores(runs, rows, normalized=False):
    slices = np.arange(runs[0].n_trials + 1)
    return np.transpose([run.slice_scores(rows, slices, normalized) for run in runs])


def are_certified(runs):
    return all(run.bounds for run in runs) and have_directions(runs)


def check_certificate(machine, problem, extras, normalized):
    runs = comparable_runs(machine, problem, extras)
    assume(are_certified(runs))
    estimator = extras.fit(machine, problem, hypothesis="last", normalize_hypotheses=normalized)
    assert_same_corrections(estimator, runs)
    assert_margins(estimator.margin_, estimator.margin_upper_bound_, runs)
    return runs, estimator


def assert_margins(margin, bound, runs):
    longest = np.sqrt(max(np.sum(run.rows**2, axis=1).max() for run in runs))
    within = {"rtol": 0, "atol": 1e-10 * float(longest)}
    expected = np.array([[run.margin, run.margin_upper_bound] for run in runs]).astype(float)
    assert_per_machine(margin, expected[:, 0], **within)
    assert_per_machine(bound, expected[:, 1], **within)


@contextmanager
def by_dot_products():
    """Run all epochs but the first with the matrix of dot products; yield a list of these
    epochs. No models are fitted that hold rows out, as their epochs would be in the list."""
    passes = []

    class Recorded(linear_loop.GramLoop):
        @staticmethod
        def cost_of_pass(*_):
            return 1

        def run(self, *args):
            result = super().run(*args)
            passes.append(result[1])
            return result

    with (
        patch.object(linear_loop, "GramLoop", Recorded),
        patch.object(fitting, "PATIENCE", 0),
        patch.object(base, "held_out_outputs", lambda *_: None),
    ):
        yield passes
