"""What was wanted of the figures in the charter, and what they came to."""

from collections.abc import Callable, Iterator
from typing import Any

from contestants import FLOOR as FLOOR_LOOP
from contestants import LAST_BASELINE as SKLEARN
from files_race import Aim
from growth_rows import RANDOM
from label_memory import AIM_BYTES
from label_race import OVR
from vectorized import ONE_CALL, OURS, UNSORTED

MEGABYTE = 2**20
OVR_TIMES, OVR_AIM = 15, 20
PREDICT_TIMES = 5
AVERAGE_TIMES = 1.5
ERROR_POINTS = 0.2
SLOPE_OFF = 0.05
CALL_TIMES, ORDER_TIMES = 1.1, 1.15
TEXT_TIMES = {"text": 4, "rcv1m, 5% wrong": 2}
THREADS_TIMES = 1.8
LAST, AVERAGE = "Perceptron, last", "Perceptron, average"


def _labels(report: Any) -> Iterator[Aim]:
    if report.get("race"):
        yield from _fits_of_labels(report["race"]["fits"])
        yield from _predictions_of_labels(report["race"]["predictions"])
    if report.get("memory"):
        entry = report["memory"]
        peak = entry["peak_bytes"]
        what = f"{entry['n_labels']:,} labels x {entry['n_features']:,} features: peak MB"
        wanted = f"< {AIM_BYTES / MEGABYTE:,.0f}"
        yield Aim(what, wanted, f"{peak / MEGABYTE:,.0f}", peak < AIM_BYTES)


def _fits_of_labels(entries: list[dict[str, Any]]) -> Iterator[Aim]:
    fits = {(entry["contestant"], entry["n_jobs"]): entry for entry in entries}
    for n_jobs in (1, 2):
        own, ovr, average = (fits[name, n_jobs] for name in (LAST, OVR, AVERAGE))
        what = f"103 labels, threads: {n_jobs}, last"
        times = own["times_ovr"]
        wanted = f">= {OVR_TIMES}, at best {OVR_AIM}"
        yield Aim(f"{what}: times {OVR}", wanted, f"{times:.1f}", times >= OVR_TIMES)
        points = 100 * (own["hamming_error"] - ovr["hamming_error"])
        yield Aim(
            f"{what}: label errors above {OVR}'s, points", f"within {ERROR_POINTS}",
            f"{points:+.3f}", abs(points) <= ERROR_POINTS,
        )  # fmt: skip
        ratio = average["ns"]["min"] / own["ns"]["min"]
        yield Aim(
            f"103 labels, threads: {n_jobs}, average: times last", f"<= {AVERAGE_TIMES}",
            f"{ratio:.2f}", ratio <= AVERAGE_TIMES,
        )  # fmt: skip


def _predictions_of_labels(entries: list[dict[str, Any]]) -> Iterator[Aim]:
    for entry in entries:
        if entry["contestant"] in (LAST, AVERAGE):
            what = f"predicting 103 labels, threads: {entry['n_jobs']}, {entry['contestant']}"
            times = entry["times_ovr"]
            yield Aim(
                f"{what}: times {OVR}", f">= {PREDICT_TIMES}", f"{times:.1f}",
                times >= PREDICT_TIMES,
            )  # fmt: skip


def _slope(size_name: str, expected: float, curve: dict[str, Any]) -> Aim:
    slope, error = curve["exponent"]["slope"], curve["exponent"]["standard_error"]
    wanted, reached = f"{expected:g} ± {SLOPE_OFF}", abs(slope - expected) <= SLOPE_OFF
    if size_name == "nonzeros" and not curve["name"].endswith(RANDOM):
        # Of text, further rows have fewer corrections than those before.
        wanted, reached = f"<= {expected + SLOPE_OFF:g}", slope <= expected + SLOPE_OFF
    what = f"time against {size_name}, {curve['name']}: exponent"
    return Aim(what, wanted, f"{slope:.3f} ± {error:.3f}", reached)


def _growth(report: Any) -> Iterator[Aim]:
    for name, expected in (("nonzeros", 1.0), ("features", 0.0)):
        for curve in report.get(name, {"curves": []})["curves"]:
            if not curve["name"].startswith((FLOOR_LOOP, SKLEARN)):
                yield _slope(name, expected, curve)
    for entry in report.get("threads", {"speed_ups": []})["speed_ups"]:
        what = f"two threads, {entry['name']}, {entry['n_labels']:.0f} labels: times one"
        times = entry["times"]
        yield Aim(what, f">= {THREADS_TIMES}", f"{times:.2f}", times >= THREADS_TIMES)


def _floor(report: Any) -> Iterator[Aim]:
    wanted = report["aim"]
    for entry in report["epochs"]:
        order = "shuffled" if entry["shuffled"] else "in order"
        for epoch, what in (("first", "a fit of one epoch"), ("further", "a further epoch")):
            ratio = entry["ratio"][epoch]
            yield Aim(
                f"{entry['shape']}, {entry['dtype']}, {order}, {what}: of the C loop's time",
                f"<= {wanted}", f"{ratio:.2f}", ratio <= wanted,
            )  # fmt: skip


def _text(report: Any) -> Iterator[Aim]:
    for entry in report["races"]:
        name, where = entry["contestant"], f"{entry['shape']}, {entry['rows']}"
        ratio = entry["times_baseline"]["min"]
        if name == ONE_CALL:
            yield Aim(
                f"{where}, {name}: of its estimator's own fit's time", f"<= {CALL_TIMES}",
                f"{ratio:.2f}", ratio <= CALL_TIMES,
            )  # fmt: skip
        if entry["rows"] != UNSORTED:
            continue
        if name == LAST and (times := TEXT_TIMES.get(entry["shape"])):
            what = f"{where}, {name}: times {SKLEARN}"
            yield Aim(what, f">= {times}", f"{1 / ratio:.1f}", 1 / ratio >= times)
        if name in OURS:
            of_sorted = entry["times_sorted"]["min"]
            yield Aim(
                f"{where}, {name}: of sorted rows' time", f"<= {ORDER_TIMES}",
                f"{of_sorted:.2f}", of_sorted <= ORDER_TIMES,
            )  # fmt: skip


def _files(report: Any) -> Iterator[Aim]:
    yield from (Aim(**aim) for aim in report["aims"])
    seconds = {entry["contestant"]: entry["seconds"]["min"] for entry in report.get("load", [])}
    if seconds:
        one, two = (seconds[f"load_svmlight, {n}"] for n in ("1 thread", "2 threads"))
        what = "load_svmlight, two threads: times one"
        yield Aim(what, f">= {THREADS_TIMES}", f"{one / two:.2f}", one / two >= THREADS_TIMES)


def _ho(report: Any) -> Iterator[Aim]:
    for entry in report.get("race", []):
        if entry["aim"] is not None:
            ratio = entry["times_linear_svc"]["min"]
            what = f"{entry['contestant']}: of LinearSVC's time"
            yield Aim(what, f"<= {entry['aim']:g}", f"{ratio:.2f}", ratio <= entry["aim"])


AIMS: dict[str, Callable[[Any], Iterator[Aim]]] = {
    "text": _text, "floor": _floor, "labels": _labels, "growth": _growth, "files": _files,
    "ho": _ho,
}  # fmt: skip


def aims(parts: dict[str, Any]) -> list[Aim]:
    """Return the aims of all parts that were measured."""
    return [
        aim
        for name, of_part in AIMS.items()
        if "report" in parts.get(name, {})
        for aim in of_part(parts[name]["report"])
    ]
