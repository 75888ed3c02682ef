"""Curves of time against one size, all points of all curves measured in turn."""

import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from measure import garbage_collection_off, in_turn, text_table, timed

from sparsemargin.evaluation import growth_exponent

MILLISECOND = 1e-3


@dataclass(frozen=True)
class Point:
    """One point of a curve; `prepare(round_number)` returns the call to be timed.

    `unit` is what the time is also told per: nonzeros, or nonzeros x labels.
    """

    curve: str
    size: float
    unit: float
    prepare: Callable[[int], Callable[[], Any]]


@dataclass(frozen=True)
class Curve:
    """The points of a name, by size; seconds are the least of the rounds.

    `counts` are the corrections of the last fit, where the model tells them.
    """

    name: str
    sizes: list[float]
    seconds: list[float]
    nanoseconds: list[float]
    counts: list[int]

    def as_json(self) -> dict[str, Any]:
        """Return the points as they are written to the report, with the fitted exponent."""
        return asdict(self) | {"exponent": growth_exponent(self.sizes, self.seconds)._asdict()}


def measure(points: Sequence[Point], n_rounds: int, what: str) -> list[Curve]:
    """Time every point once in each round, and gather the curves."""
    seconds: dict[tuple[str, float], list[float]] = defaultdict(list)
    counts = {}
    with garbage_collection_off():
        for number in range(n_rounds):
            print(f"growth with {what}, round {number + 1} of {n_rounds}", file=sys.stderr)
            for i in in_turn(range(len(points)), number):
                elapsed, model = timed(points[i].prepare(number))
                seconds[points[i].curve, points[i].size].append(elapsed)
                counts[points[i]] = _corrections(model)
    return [
        _curve(name, [point for point in points if point.curve == name], seconds, counts)
        for name in dict.fromkeys(point.curve for point in points)
    ]


def _corrections(model: Any) -> int:
    corrections = getattr(model, "n_corrections_", 0)
    return int(sum(corrections)) if hasattr(corrections, "__len__") else int(corrections)


def _curve(name: str, points: list[Point], seconds: dict, counts: dict) -> Curve:
    points = sorted(points, key=lambda point: point.size)
    least = [min(seconds[name, point.size]) for point in points]
    return Curve(
        name,
        [point.size for point in points],
        least,
        [1e9 * s / point.unit for s, point in zip(least, points, strict=True)],
        [counts[point] for point in points],
    )


def show(curves: list[dict[str, Any]], size_name: str) -> None:
    """Print the points, and the exponents under them."""
    columns = [("", ""), (size_name, ",.6g"), ("ms", ".3f"), ("ns per unit", ".3f")]
    rows = [
        (curve["name"], size, seconds / MILLISECOND, ns)
        for curve in curves
        for size, seconds, ns in zip(
            curve["sizes"], curve["seconds"], curve["nanoseconds"], strict=True
        )
    ]
    print(text_table(columns, rows) + "\n")
    for curve in curves:
        slope, error = curve["exponent"]["slope"], curve["exponent"]["standard_error"]
        print(f"{curve['name']}: time grows as {size_name}^{slope:.3f} ± {error:.3f}")
