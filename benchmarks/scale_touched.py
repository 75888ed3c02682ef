"""How many coordinates an epoch of a shard touches, as the shard grows.

Two shards of as many rows each are learned from in turn. A place and a value travel for each
coordinate of theta that has moved, and again for each of the average; so the bytes tell how many
have been touched, up to where the whole vectors are shorter.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scale_data
from measure import text_table
from scale_data import Problem, Shape, rows_between
from scale_learners import FIRST_ORDER
from scale_speed import rounds_of

from sparsemargin.evaluation import growth_exponent

N_EPOCHS = 3
PLACE = 4
#: As wide as features hashed to 24 bits.
WIDE = Shape(1_000_000, 1_000, 1 << 24)
N_ROWS = (2_000, 8_000, 32_000, 128_000, 500_000)
N_ROWS_LARGE = (*N_ROWS, 1_000_000)
N_ROWS_QUICK = (250, 500, 1_000, 2_000)


def measure(quick: bool) -> list[dict[str, Any]]:
    """All first-order learners on rows of a million features, and of 2**24."""
    if quick:
        return _of(scale_data.generated(scale_data.SMALL), N_ROWS_QUICK)
    return [
        *_of(scale_data.generated(scale_data.LARGE), N_ROWS_LARGE),
        *_of(scale_data.generated(WIDE), N_ROWS),
    ]


def _of(problem: Problem, sizes: Sequence[int]) -> list[dict[str, Any]]:
    entries = []
    for name, learner in FIRST_ORDER.items():
        value = value_bytes(learner)
        found = [_bytes(problem, n_rows, learner) for n_rows in sizes]
        entries.append(
            {"learner": name, "n_features": problem.X.shape[1], "rows": list(sizes),
             "coordinates": [touched(each, value) for each in found],
             "whole": [each >= 2 * value * problem.X.shape[1] for each in found]}
        )  # fmt: skip
        entries[-1] |= law(entries[-1])
    return entries


def value_bytes(learner: dict[str, Any]) -> int:
    """Of a coordinate of float32 rows' vectors."""
    return 4 if learner["p"] == 2 else 8


def _bytes(problem: Problem, n_rows: int, learner: dict[str, Any]) -> int:
    """What a shard sends in the last epoch."""
    shards = [
        (rows_between(problem.X, start, start + n_rows), problem.y[start : start + n_rows])
        for start in (0, n_rows)
    ]
    last = rounds_of(shards, learner, n_epochs=N_EPOCHS)[-1]
    return last.bytes_received // len(shards)


def touched(n_bytes: int, value: int) -> int:
    return n_bytes // (2 * (PLACE + value))


def law(entry: dict[str, Any]) -> dict[str, Any]:
    """The power of the rows that the coordinates grow with, where they are told one by one; the
    last two such points lead the line beyond them."""
    told = [not whole for whole in entry["whole"]]
    rows, found = (np.array(entry[key])[told] for key in ("rows", "coordinates"))
    fitted = growth_exponent(rows, found)
    tail = float(np.diff(np.log(found[-2:]))[0] / np.diff(np.log(rows[-2:]))[0])
    return {
        "exponent": fitted.slope, "standard_error": fitted.standard_error, "tail": tail,
        "last": [int(rows[-1]), int(found[-1])],
    }  # fmt: skip


def show(entries: Sequence[dict[str, Any]]) -> None:
    """Print the coordinates touched, and the law."""
    for entry in entries:
        rows = [
            [f"{n:,}", f"{coordinates:,}", "whole" if whole else ""]
            for n, coordinates, whole in zip(
                entry["rows"], entry["coordinates"], entry["whole"], strict=True
            )
        ]
        print(f"\n{entry['learner']}, {entry['n_features']:,} features: to the power of "
              f"{entry['exponent']:.3f}, last {entry['tail']:.3f}")  # fmt: skip
        print(text_table([("rows", ""), ("touched", ""), ("", "")], rows), flush=True)
