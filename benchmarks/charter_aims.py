"""What was wanted of the figures in the charter, and what they came to."""

from collections.abc import Callable, Iterator
from typing import Any

from files_race import Aim
from label_memory import AIM_BYTES
from label_race import OVR

MEGABYTE = 2**20
OVR_TIMES, OVR_AIM = 15, 20
PREDICT_TIMES = 5
AVERAGE_TIMES = 1.5
ERROR_POINTS = 0.2
SLOPE_OFF = 0.05
THREADS_TIMES = 1.8
LAST, AVERAGE = "Perceptron, last", "Perceptron, average"


def _labels(report: Any) -> Iterator[Aim]:
    if report.get("race"):
        fits = {(entry["contestant"], entry["n_jobs"]): entry for entry in report["race"]["fits"]}
        for n_jobs in (1, 2):
            own, ovr = fits[LAST, n_jobs], fits[OVR, n_jobs]
            what = f"103 labels, last, {n_jobs} thread{'s' * (n_jobs > 1)}"
            times = own["times_ovr"]
            wanted = f">= {OVR_TIMES}, at best {OVR_AIM}"
            yield Aim(f"{what}: times {OVR}", wanted, f"{times:.1f}", times >= OVR_TIMES)
            points = 100 * (own["hamming_error"] - ovr["hamming_error"])
            yield Aim(
                f"{what}: label errors above {OVR}'s, points", f"within {ERROR_POINTS}",
                f"{points:+.3f}", abs(points) <= ERROR_POINTS,
            )  # fmt: skip
            ratio = fits[AVERAGE, n_jobs]["ns"]["min"] / own["ns"]["min"]
            what = what.replace("last", "average")
            yield Aim(
                f"{what}: times last", f"<= {AVERAGE_TIMES}", f"{ratio:.2f}", ratio <= AVERAGE_TIMES
            )
        for entry in report["race"]["predictions"]:
            if entry["contestant"] in (LAST, AVERAGE):
                what = f"predicting 103 labels, {entry['contestant']}, threads: {entry['n_jobs']}"
                times = entry["times_ovr"]
                yield Aim(
                    f"{what}: times {OVR}", f">= {PREDICT_TIMES}", f"{times:.1f}",
                    times >= PREDICT_TIMES,
                )  # fmt: skip
    if report.get("memory"):
        entry = report["memory"]
        peak = entry["peak_bytes"]
        what = f"{entry['n_labels']:,} labels x {entry['n_features']:,} features: peak MB"
        wanted = f"< {AIM_BYTES / MEGABYTE:,.0f}"
        yield Aim(what, wanted, f"{peak / MEGABYTE:,.0f}", peak < AIM_BYTES)


def _growth(report: Any) -> Iterator[Aim]:
    for name, expected in (("nonzeros", 1.0), ("features", 0.0)):
        for curve in report.get(name, {"curves": []})["curves"]:
            if curve["name"].startswith(("C loop", "sklearn")):
                continue
            slope, error = curve["exponent"]["slope"], curve["exponent"]["standard_error"]
            yield Aim(
                f"time against {name}, {curve['name']}: exponent",
                f"{expected:g} ± {SLOPE_OFF}", f"{slope:.3f} ± {error:.3f}",
                abs(slope - expected) <= SLOPE_OFF,
            )  # fmt: skip
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
    "floor": _floor, "labels": _labels, "growth": _growth, "files": _files, "ho": _ho,
}  # fmt: skip


def aims(parts: dict[str, Any]) -> list[Aim]:
    """Return the aims of all parts that were measured."""
    return [
        aim
        for name, of_part in AIMS.items()
        if "report" in parts.get(name, {})
        for aim in of_part(parts[name]["report"])
    ]
