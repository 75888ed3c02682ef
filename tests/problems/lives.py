"""Random histories of models of every algorithm: their parameters, rows, and lowered limits, with
which small data use all code paths."""

import warnings
from contextlib import ExitStack, contextmanager
from numbers import Integral, Real
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from problems.first_order import scattered
from sparsemargin._engine import state
from sparsemargin._engine.first_order import linear_loop, linear_space, prior, vector_blocks
from sparsemargin._engine.fitting import protocol, threads
from sparsemargin._engine.kernel import loop, outputs, support
from sparsemargin._engine.replay import replayed
from sparsemargin._engine.rows import columns
from sparsemargin.estimators.classifiers import as_classifier
from sparsemargin.models import ALGORITHMS
from sparsemargin.models.parameters import declarations

#: The algorithms, and AROW with a prior, whose state has counts in addition.
VARIANTS = {**ALGORITHMS, "arow, prior": (ALGORITHMS["arow"][0], {"prior": "naive_bayes"})}

#: Names of the limits for threads, and for weights that are held in blocks.
THREADS, BLOCKS = "vectors on threads", {"vectors in blocks", "some vectors in blocks"}

#: Limits above which data is stored or divided differently: their modules and names, and values
#: that small data exceed. No limit may change any bit of a model.
LIMITS = {
    "vectors in blocks": ((vector_blocks, "DENSE_BYTES", 0),),
    "vectors side by side": ((linear_loop, "FEW_VECTORS", 1),),
    THREADS: ((threads, "PRODUCTS_PER_THREAD", 1), (linear_loop, "LINE_BYTES", 1)),
    "passes in spans": ((protocol, "PRODUCTS_PER_CALL", 50),),
    "outputs in parts": ((linear_space, "_OUTPUTS_PER_PART", 4),),
    "replays in parts": (
        (replayed, "_POINTS_PER_REPLAY", 3), (replayed, "_POINTS_WITH_MOMENTS", 2),
    ),
    "kernel rows in parts": ((loop, "BLOCK", 3), (outputs, "_TILE", 2), (outputs, "_POINTS", 3)),
    "room of a pool": ((support, "_ROOM", 1),),
    "some vectors in blocks": ((vector_blocks, "DENSE_BYTES", 1000),),
    "coordinates in parts": ((linear_space, "_COORDINATES_PER_PART", 3),),
    "sparse states": ((state, "_SPARSE_BYTES", 0),),
    "columns sorted": ((columns, "_COLUMNS_AN_ENTRY", 0),),
    "counts in parts": ((prior, "_NUMBERS_AT_ONCE", 5),),
    "columns looked up": ((columns, "_COLUMNS_AN_ENTRY", 1 << 20),),
}  # fmt: skip

#: Parameters that a history sets itself, or for which no rows are drawn.
_LEFT_OUT = {"random_state", "verbose", "n_jobs", "max_iter", "class_weight", "warm_start"}
_NO_VALUES = {"precomputed"}


@contextmanager
def lowered(names):
    """Lower these limits inside the block."""
    with ExitStack() as stack:
        for name in names:
            for module, constant, value in LIMITS[name]:
                stack.enter_context(patch.object(module, constant, value))
        yield


def classifier(algo, **params):
    """The classifier with that name, with settings whose fits are short."""
    learner, fixed = VARIANTS[algo]
    soon = {"max_iter": 2, "random_state": 0}
    if "early_stopping" in declarations(learner):
        soon["early_stopping"] = False
    return as_classifier(learner(**fixed, **soon | params))


def _values(limit):
    """Some values that a limit permits."""
    if limit.choices:
        return sorted({*limit.choices} - _NO_VALUES)
    if limit.kind is bool:
        return [False, True]
    if limit.kind is type(None):
        return [None]
    if limit.kind is Integral:
        low = max(limit.low, 0)
        return [low, low + 1, low + 4]
    if limit.kind is Real:
        low, high = max(limit.low, 0.0), limit.high
        inner = [low + (high - low) * share for share in (0.3, 0.9)] if high < 2 else []
        return inner or [low + 0.5, low + 2.0, *([low] if limit.allows(low) else [])]
    return []


def changes(algo):
    """Strategy of changes of parameters, including every declared parameter."""
    learner, fixed = ALGORITHMS[algo]
    values = {
        name: [value for limit in each.limits for value in _values(limit) if limit.allows(value)]
        for name, each in declarations(learner).items() if name not in {*_LEFT_OUT, *fixed}
    }  # fmt: skip
    # Only few are changed at once, because most exclude each other.
    one = st.sampled_from(sorted(name for name in values if values[name])).flatmap(
        lambda name: st.tuples(st.just(name), st.sampled_from(values[name]))
    )
    weight = st.sampled_from([None, "balanced", {0: 2.0}, {1: 0.5}])
    more = {"max_iter": st.sampled_from([0.5, 1, 2, 3])}
    if "class_weight" in declarations(learner):
        more["class_weight"] = weight
    return st.builds(
        lambda some, more: dict(some) | more,
        st.lists(one, min_size=1, max_size=2), st.fixed_dictionaries({}, optional=more),
    )  # fmt: skip


def rows(n_rows, n_features, n_classes, seed, dtype="f8", many=False):
    """Unsorted rows, some of them empty, with duplicate columns, and labels: numbers, or with
    `many` lists of them."""
    random = np.random.RandomState(seed)
    X = sp.random(n_rows, n_features, 0.3, "csr", random_state=random)
    X.data = np.round(4 * (X.data - 0.5), 2)
    X.eliminate_zeros()
    y = np.asarray(X @ random.standard_normal((n_features, n_classes))).argmax(axis=1)
    wrong = random.uniform(size=n_rows) < 0.2
    y[wrong] = random.randint(n_classes, size=wrong.sum())
    y[:n_classes] = np.arange(n_classes)[:n_rows]
    X = scattered(X.astype(dtype), 0.3, seed)
    if not many:
        return X, y
    second = random.randint(n_classes, size=n_rows)
    return X, [sorted({first, other})[: 1 + i % 2] for i, (first, other)
               in enumerate(zip(y.tolist(), second.tolist(), strict=True))]  # fmt: skip


def same_numbers(one, other):
    """Return whether two dense or sparse arrays are bitwise equal."""
    one, other = (each.toarray() if hasattr(each, "toarray") else each for each in (one, other))
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()


def told(model, X):
    """The attributes of a model, and its outputs for rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {
            "outputs": model.decision_function(X), "classes": model.classes_,
            "corrections": model.n_corrections_, "epochs": model.n_iter_, "trials": model.t_,
            "features": model.n_features_in_, "intercept": model.intercept_scaling_,
        }  # fmt: skip


def assert_alike(one, other, X, tolerance=0.0):
    """Compare the outputs of two models, bitwise or up to a tolerance."""
    one, other = told(one, X), told(other, X)
    for name in one:
        if tolerance and name == "outputs":
            size = max(np.abs(other[name]).max(initial=0.0), 1e-300)
            assert np.abs(one[name] - other[name]).max(initial=0.0) <= tolerance * size, name
        else:
            assert same_numbers(one[name], other[name]), (name, one[name], other[name])
