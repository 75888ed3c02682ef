"""How does the time of one epoch grow: with nonzeros, features, labels, corrections and threads?

Every point is the least of several rounds, in which all points take turns. Exponents are slopes of
log time against log size by least squares, with the standard error of the slope. Rows have the
RCV1 shape, values are float32, the fits shuffle. The growth of the Higher-order Perceptron with its
mistakes is measured by ho_speed.py, that of kernels with rows by kernels.py, and what a second
thread saves in scanning a file by files.py.

    python benchmarks/growth.py [--only nonzeros features labels corrections threads] [--quick]
"""

import argparse
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import growth_curves
import growth_labels
import growth_rows
from growth_curves import Curve, Point
from growth_fit import share
from measure import describe_machine, options_with_rounds, text_table, write_json
from threadpoolctl import threadpool_limits

from sparsemargin.evaluation import growth_exponent


class Growth(NamedTuple):
    """What grows: `points(quick)` draws the rows of all curves, and its docstring says how."""

    title: str
    size_name: str
    points: Callable[[bool], Iterator[Point]]


GROWTHS = {
    "nonzeros": Growth(
        "One epoch over ever more rows of one shape", "nonzeros", growth_rows.nonzeros
    ),
    "features": Growth(
        "One epoch over as many nonzeros among ever more features", "features",
        growth_rows.features,
    ),
    "labels": Growth("One epoch with ever more labels", "labels", growth_labels.labels),
    "corrections": Growth(
        "One epoch with ever more labels flipped (exponents: of what further corrections add)",
        "corrections", growth_rows.corrections,
    ),
    "threads": Growth("Ten epochs on one thread and on two", "labels", growth_labels.threads),
}  # fmt: skip


def _against_corrections(curve: Curve) -> dict[str, Any]:
    """A curve whose sizes are the corrections that the flipped labels led to.

    Half of the time goes to the trials whatever the corrections, so the exponent is that of what
    further corrections add, and beside it stands what one adds by the straight line.
    """
    counts, seconds = curve.counts, curve.seconds
    more = [count - counts[0] for count in counts[1:]]
    added = [own - seconds[0] for own in seconds[1:]]
    line = share(counts, seconds)
    return replace(curve, sizes=list(map(float, counts))).as_json() | {
        "exponent": growth_exponent(more, added)._asdict(),
        "seconds_each": line.each,
        "seconds_each_error": line.standard_error,
        "seconds_without": line.rest,
    }


def measure(name: str, quick: bool, n_rounds: int) -> dict[str, Any]:
    """Measure the curves of one growth.

    Returns
    -------
    dict
        ``title``, ``note``, ``size_name`` and ``curves``; for threads their ``speed_ups`` too.
    """
    growth = GROWTHS[name]
    curves = growth_curves.measure(list(growth.points(quick)), n_rounds, growth.size_name)
    as_json = _against_corrections if name == "corrections" else Curve.as_json
    told = [as_json(curve) for curve in curves]
    report = {
        "title": growth.title,
        "note": inspect.getdoc(growth.points),
        "size_name": growth.size_name,
        "curves": told,
    }
    if name == "threads":
        report["speed_ups"] = growth_labels.speed_ups(told)
    return report


def show(report: dict[str, Any]) -> None:
    """Print the points and the exponents of one growth."""
    print(f"\n{report['title']}\n\n{report['note']}\n")
    growth_curves.show(report["curves"], report["size_name"])
    for curve in report["curves"]:
        if "seconds_each" in curve:
            each, error = (1e6 * curve[key] for key in ("seconds_each", "seconds_each_error"))
            print(
                f"{curve['name']}: a correction adds {each:.3f} ± {error:.3f} us, and "
                f"{1e3 * curve['seconds_without']:.2f} ms are there without any"
            )
    if "speed_ups" in report:
        rows = [(entry["name"], entry["n_labels"], entry["times"]) for entry in report["speed_ups"]]
        columns = [("", ""), ("labels", "d"), ("two threads x one", ".2f")]
        print("\n" + text_table(columns, rows))


def main() -> None:
    """Run the measurements, print the points and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=GROWTHS, default=list(GROWTHS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rows and sizes")
    parser.add_argument("--rounds", type=int, help="fits of every point (9, quick: 3)")
    parser.add_argument("--out", type=Path, default=Path("results/growth.json"))
    options = options_with_rounds(parser, usual=9, quick=3)
    print(describe_machine())
    report = {}
    with threadpool_limits(1):
        for name in options.only:
            report[name] = measure(name, options.quick, options.rounds)
            show(report[name])
    write_json(options.out, {"rounds": options.rounds, **report})


if __name__ == "__main__":
    main()
