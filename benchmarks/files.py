"""From a file to a model, beside vw, scikit-learn and liblinear: how fast, in how much memory?

Four measurements on the same rows, as svmlight text and in vw's own format, the page cache warm:
one epoch within a process; whole processes, as from a shell; epochs from a cache; and loading.
Every run is a process of its own, the contestants take turns. Seconds are the least and the median
of the rounds, ratios those of the least. Quote the ratios: they were measured side by side in one
run. The times belong to the machine. MB are millions of bytes.

vw and liblinear take part where they are installed: vw by `pip install "sparsemargin[bench]"`,
liblinear by Debian's package liblinear-tools.

    python benchmarks/files.py [--only fit process cache load] [--rows N] [--rounds N]
"""

import argparse
import os
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import files_cache
import files_fit
import files_load
import files_peers
import files_process
from corpora import RCV1_LARGE
from files_race import MEGABYTE, Aim
from files_texts import Texts, open_texts
from measure import describe_machine, markdown_table, write_json

MEASUREMENTS = {
    "fit": files_fit, "process": files_process, "cache": files_cache, "load": files_load,
}  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--rows", type=int, default=RCV1_LARGE.n_train, help="of training text")
    parser.add_argument("--rounds", type=int, default=5, help="runs of every contestant (5)")
    parser.add_argument(
        "--folder", type=Path, default=Path("results/files"),
        help="where the texts are kept (2 GB; results/files)",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("results/bench-files.json"))
    arguments = parser.parse_args()
    for name, least in (("rows", 1000), ("rounds", 1)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name} must be at least {least}")
    return arguments


def _describe(texts: Texts) -> str:
    sizes = (f"{texts.size('train', kind) / MEGABYTE:.1f}" for kind in ("svm", "vw", "svm.gz"))
    peer = f", vowpalwabbit {version('vowpalwabbit')}" if files_peers.has_vw() else ""
    return (
        f"{describe_machine()}{peer}\n{texts.shape.name}: {texts.shape.n_train:,} rows, "
        "{} MB of svmlight text, {} MB in vw's format, {} MB as gz".format(*sizes)
    )


def _show_aims(aims: list[Aim]) -> None:
    verdicts = {True: "reached", False: "MISSED", None: "not measured"}
    rows = [[aim.what, aim.wanted, aim.measured, verdicts[aim.reached]] for aim in aims]
    print("\nWhat was aimed at\n")
    print(markdown_table(["", "wanted", "measured", ""], rows))


def main() -> None:
    """Run the measurements, print the tables and write them as JSON."""
    arguments = _arguments()
    # Nobody else is told to compile his modules anew each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    n_rows = arguments.rows
    shape = replace(RCV1_LARGE, n_train=n_rows, n_test=n_rows // 10)
    texts = open_texts(arguments.folder, shape)
    print(_describe(texts))
    files_peers.say_who_is_missing()
    report: dict[str, Any] = {"shape": asdict(shape), "rounds": arguments.rounds}
    aims = []
    for name in arguments.only:
        measurement = MEASUREMENTS[name]
        report[name] = measurement.measure(texts, arguments.rounds)
        measurement.show(report[name])
        aims += measurement.aims(report[name])
    _show_aims(aims)
    write_json(arguments.out, report | {"aims": [asdict(aim) for aim in aims]})


if __name__ == "__main__":
    main()
