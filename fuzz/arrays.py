"""Fits, and asks models, with CSR arrays that are corrupted or odd: see fuzz/README.md.

Whatever they hold, there is a result, or a clear error of an expected kind; what was given is left
as it was, and so is the model where it refuses. Arrays that are merely odd, such as read-only or
strided ones, give the very model of plain ones.
"""

from __future__ import annotations

import pickle
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from corruptions import Arrays, change
from harness import Given, main

from problems.models import JOINT, MODELS, make_problem, widened
from sparsemargin import fit_csr
from sparsemargin.evaluation import margins

ALL_MODELS = {**MODELS, **JOINT}
REFUSALS = (ValueError, TypeError)
ODD_LABELS = [
    lambda y: y[:-1], lambda y: y[:0], lambda y: None, lambda y: 3, lambda y: "labels",
    lambda y: np.full(12, np.nan), lambda y: np.full(12, 1), lambda y: np.arange(12) * 2**62,
    lambda y: np.arange(12) + 0.5, lambda y: np.ones((12, 2, 2)), lambda y: np.eye(12) > 0,
    lambda y: np.array(["a", "b", "\0"] * 4), lambda y: np.array([b"a", b"b"] * 6),
    lambda y: np.array([1, "a", None] * 4, object), lambda y: np.array([{}, []] * 6, object),
    lambda y: np.array([1j, 2] * 6), lambda y: np.array(["2020-01-01"] * 12, "M8[D]"),
    lambda y: np.zeros(12, [("a", "i4"), ("b", "f8")]), lambda y: np.arange(24)[::2] % 3,
    lambda y: np.array([0, 1] * 6, ">i2"), lambda y: [[], [1], [1, 2]] * 4, lambda y: [{1}] * 12,
    lambda y: sp.csr_matrix((12, 2**12)), lambda y: sp.coo_matrix(np.eye(12)[:, :3]),
]  # fmt: skip
# What numpy or Cython say of what should have been looked at before.
UNCLEAR = re.compile(
    "Buffer dtype|Buffer has wrong|zero-size array|cannot reshape|not subscriptable|broadcast|"
    "unsupported operand|has no len|out of bounds|Out of bounds|object is not iterable|setting an"
)
# Some uses make five calls, and scipy warns once or twice at each.
MOST_WARNINGS = 10


class CorruptedArrays:
    """Everything that takes X or y, on arrays of all kinds."""

    MOST_CHANGES = 4

    def __init__(self, folder: Path):
        self.fitted: dict[Any, bytes] = {}

    def check(self, given: Given) -> None:
        random = given.random
        name = list(ALL_MODELS)[random.randint(len(ALL_MODELS))]
        n_classes, params = _parameters(random, name)
        # Of many features few have entries: predictions then weigh only these.
        wide = "n x n" not in name and random.uniform() < 0.2
        form = ["f4", "f8"][random.randint(2)], bool(wide)
        setting = name, n_classes, _Key(params), form
        X, y = _problem(setting)
        use = USES[random.randint(len(USES))]
        arrays = Arrays.of(X if use is not _labelled_by else _ones(X))
        if random.uniform() < 0.1:
            y, arrays.plain = ODD_LABELS[random.randint(len(ODD_LABELS))](y), False
        for of_change in given.changes(random.randint(1, self.MOST_CHANGES + 1)):
            change(of_change, arrays, given.log)
        given.log.append(f"{use.__name__} of {setting}")
        before = _contents(arrays)
        X_given = arrays.matrix()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                outcome = use(self, setting, X_given, y, arrays.plain)
            except REFUSALS as error:
                outcome = "refused"
                assert not arrays.plain, error
                assert str(error), error
                assert not UNCLEAR.search(str(error)), error
            except MemoryError:
                outcome = "too large"
                assert arrays.shape[1] > 2**28
        assert len(told) <= MOST_WARNINGS, [str(each.message) for each in told]
        assert _contents(arrays) == before
        given.outcomes[outcome] += 1

    def model(self, setting: tuple) -> Any:
        """A model that has learned the sound matrix."""
        if setting not in self.fitted:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.fitted[setting] = pickle.dumps(_unfitted(setting).fit(*_problem(setting)))
        return pickle.loads(self.fitted[setting])


# -- what may be done -----------------------------------------------------------------------------


def _fits(fuzzer: CorruptedArrays, setting: tuple, X: Any, y: Any, plain: bool) -> str:
    model = _unfitted(setting).fit(X, y)
    if plain:
        _assert_same_outputs(model, fuzzer.model(setting), setting)
    return "fitted"


def _fits_by_default(fuzzer: CorruptedArrays, setting: tuple, X: Any, y: Any, plain: bool) -> str:
    fit_csr(X, y, random_state=0, max_iter=2)
    return "fitted"


def _goes_on(fuzzer: CorruptedArrays, setting: tuple, X: Any, y: Any, plain: bool) -> str:
    """`partial_fit`, or a second `fit` under `warm_start`."""
    model, clean = fuzzer.model(setting), _problem(setting)[0]
    warm = setting[2].get("warm_start")
    before = _outputs(model, clean)
    try:
        (model.fit if warm else model.partial_fit)(X, y)
    except REFUSALS as error:
        # Rows before one of another magnitude have been learned.
        told = re.match("Row|After|The weights", str(error))
        assert told or np.array_equal(_outputs(model, clean), before), error
        raise
    _outputs(model, clean)
    return "went on"


def _begins_a_stream(fuzzer: CorruptedArrays, setting: tuple, X: Any, y: Any, plain: bool) -> str:
    classes = np.arange(setting[1]) if setting[1] else None
    model = _unfitted(setting).partial_fit(X, y, classes)
    _outputs(model, _problem(setting)[0])
    return "went on"


def _asks(fuzzer: CorruptedArrays, setting: tuple, X: Any, y: Any, plain: bool) -> str:
    model, clean = fuzzer.model(setting), _problem(setting)[0]
    before = _outputs(model, clean)
    asked = [model.predict, model.decision_function, lambda X: model.score(X, y)]
    if not isinstance(y, sp.csr_matrix):
        asked.append(lambda X: margins(model, X, y))
    refused = None
    for ask in asked:
        try:
            ask(X)
        except REFUSALS as error:
            if not plain:
                refused = error
    assert np.array_equal(_outputs(model, clean), before)
    if plain:
        assert np.array_equal(_outputs(model, X), before)
    elif refused is not None:
        raise refused
    return "asked"


def _labelled_by(fuzzer: CorruptedArrays, setting: tuple, X: Any, y: Any, plain: bool) -> str:
    """The matrix in the place of an indicator of labels."""
    rows = make_problem(12, 8, seed=1)[0]
    model = ALL_MODELS["ALMA"](max_iter=2)
    model.fit(rows, X).predict(rows)
    model.score(rows, X)
    model.partial_fit(rows, X)
    return "fitted"


USES = [
    _fits,
    _fits,
    _fits_by_default,
    _goes_on,
    _begins_a_stream,
    _asks,
    _asks,
    _labelled_by,
]


# -- settings -------------------------------------------------------------------------------------


def _parameters(random: np.random.RandomState, name: str) -> tuple[int, dict[str, Any]]:
    """The number of classes, 0 where rows have any number of labels; and parameters."""

    def maybe(share: float) -> bool:
        return bool(random.uniform() < share)

    first_order = not name.endswith(("order", "p = 3", "n x n"))
    joint = name in JOINT
    params: dict[str, Any] = {"random_state": 0, "max_iter": [0.5, 1, 2, 3][random.randint(4)]}
    logs = first_order and not joint
    hypotheses = ["average", "last", "vote", "random"] if logs else ["average", "last"]
    params["hypothesis"] = hypotheses[random.randint(len(hypotheses))]
    params["fit_intercept"] = maybe(0.3)
    if logs:
        normalized = maybe(0.2)
        if not name.startswith(("ALMA", "CRAMMA")):
            params["normalize_hypotheses"] = normalized
    params["warm_start"] = maybe(0.4)
    params["shuffle"] = maybe(0.5)
    params["n_jobs"] = 2 if maybe(0.1) else None
    if first_order and not joint and maybe(0.2) and name != "ROMMA":
        params["soft_margin"] = 0.5
    many = first_order and not joint and "," not in name and maybe(0.2)
    return (0 if many else 3 if joint else random.randint(2, 5)), params


class _Key(dict):
    """Parameters by which models are remembered."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items(), key=str)))


def _problem(setting: tuple) -> tuple[sp.csr_matrix, Any]:
    return _problem_of(setting[1], *setting[3])


@cache
def _problem_of(n_classes: int, dtype: str, wide: bool) -> tuple[sp.csr_matrix, Any]:
    X, y = make_problem(12, 8, n_classes=n_classes or 3, dtype=dtype)
    X = widened(X) if wide else X
    return X, y if n_classes else sp.csr_matrix(np.eye(3, dtype=int)[y])


def _ones(X: sp.csr_matrix) -> sp.csr_matrix:
    """An indicator of labels."""
    return sp.csr_matrix((np.ones_like(X.data), X.indices, X.indptr), X.shape)


def _unfitted(setting: tuple) -> Any:
    name, _, params, _ = setting
    return ALL_MODELS[name](**params)


def _outputs(model: Any, X: Any) -> np.ndarray:
    return model.decision_function(X)


def _assert_same_outputs(model: Any, other: Any, setting: tuple) -> None:
    clean = _problem(setting)[0]
    assert np.array_equal(_outputs(model, clean), _outputs(other, clean))


def _contents(arrays: Arrays) -> list[Any]:
    """Copies of the arrays."""
    return [
        (array.tobytes() if array.dtype != object else array.tolist(), array.dtype, array.shape)
        if isinstance(array, np.ndarray) else array
        for array in (arrays.data, arrays.indices, arrays.indptr)
    ]  # fmt: skip


if __name__ == "__main__":
    main(CorruptedArrays)
