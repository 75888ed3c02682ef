"""What an epoch costs in instructions and cache misses, beside the plain C loop: by callgrind.

Counted is what two more epochs add to a fit, so neither Python nor the checking of rows is in it.
Callgrind simulates two levels of cache (32 MiB the last, prefetches ignored) and no vectors wider
than AVX2's, so many labels have other code here than on a machine with AVX-512. A miss of the first
level is served by the second or third, one of the last by memory.

Needs valgrind (Debian's package of that name).

    python benchmarks/counters.py [--quick]
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from shutil import which
from typing import Any

import numpy as np
from contestants import RAW
from corpora import NEWS20, RCV1_SMALL, draw_corpus
from floor import FloorLabels, FloorPerceptron, row_orders
from label_data import OF_LABELS, draw_labelled
from measure import cannot_run, describe_machine, text_table, write_json
from scipy.sparse import csr_matrix, load_npz, save_npz

from sparsemargin import PNormPerceptron

EPOCHS = (1, 3)
LABELLED_ROWS, LABELLED_ROWS_QUICK = 8000, 3000
WARM_UP_ROWS = 50
COUNTED = {
    "instructions": ("Ir",),
    "loads and stores": ("Dr", "Dw"),
    "first-level misses": ("D1mr", "D1mw"),
    "last-level misses": ("DLmr", "DLmw"),
}
VALGRIND = (
    "valgrind", "--tool=callgrind", "--cache-sim=yes", "--LL=33554432,16,64",
    "--instr-atstart=no", "--quiet",
)  # fmt: skip
COLUMNS = [("rows", ""), ("", ""), *((f"{name}", ".3f") for name in COUNTED)]


def _floor(shuffle: bool, X: csr_matrix, y: np.ndarray, n_epochs: int) -> Any:
    loop = FloorLabels if y.ndim == 2 else FloorPerceptron
    return loop(X, y, row_orders(len(y), n_epochs, shuffle, seed=0)).run()


def _ours(shuffle: bool, X: csr_matrix, y: np.ndarray, n_epochs: int) -> Any:
    model = PNormPerceptron(
        **RAW, max_iter=n_epochs, hypothesis="last", fit_intercept=False, shuffle=shuffle,
        random_state=0, n_jobs=1,
    )  # fmt: skip
    return model.fit(X, y)


FITS: dict[str, Callable] = {"C loop": _floor, "Perceptron, last": _ours}


def draw_rows(folder: Path, quick: bool) -> dict[str, int]:
    """Write the rows to learn from, and return what one epoch is counted per, by their names."""
    labelled = LABELLED_ROWS_QUICK if quick else LABELLED_ROWS
    many = draw_labelled(replace(RCV1_SMALL, n_train=labelled, n_test=1), OF_LABELS)
    rows = {f"rcv1s, {OF_LABELS} labels": (many.X, many.Y)}
    for shape in [RCV1_SMALL] if quick else [RCV1_SMALL, NEWS20]:
        corpus = draw_corpus(shape).astype(np.float32)
        rows[shape.name] = corpus.X, corpus.y
    for name, (X, y) in rows.items():
        save_npz(folder / f"{name}.npz", X, compressed=False)
        np.save(folder / f"{name}.npy", y)
    return {name: X.nnz * (y.shape[1] if y.ndim == 2 else 1) for name, (X, y) in rows.items()}


def _fits(folder: Path) -> Iterator[tuple[str, str, bool, int]]:
    """All fits, in the order in which they are made: rows, contestant, shuffled, epochs."""
    names = sorted(path.stem for path in folder.glob("*.npz"))
    return product(names, FITS, (False, True), EPOCHS)


def _control(*options: str) -> None:
    command = ["callgrind_control", *options, str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


def _run_fits(folder: Path) -> None:
    """Run in the child: make all fits, and have what each counted dumped under its number."""
    for number, (name, contestant, shuffle, n_epochs) in enumerate(_fits(folder)):
        X, y = load_npz(folder / f"{name}.npz"), np.load(folder / f"{name}.npy")
        FITS[contestant](shuffle, X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], 1)
        _control("--instr=on")
        _control("--zero")
        FITS[contestant](shuffle, X, y, n_epochs)
        # It goes through a shell, so that names would have to be quoted.
        _control(f"--dump={number}")
        _control("--instr=off")


def _read_dumps(folder: Path) -> dict[tuple[str, str, bool, int], dict[str, int]]:
    """Return the events of each fit."""
    fits = list(_fits(folder))
    counted = {}
    for path in folder.glob("callgrind.*"):
        lines = dict(
            line.split(": ", 1)
            for line in path.read_text(errors="replace").splitlines()
            if line.startswith(("desc: Trigger: ", "events: ", "summary: "))
        )
        trigger = lines["desc"].removeprefix("Trigger: ").split()
        if trigger[0] == "dump":
            events = lines["events"].split(), map(int, lines["summary"].split())
            counted[fits[int(trigger[1])]] = dict(zip(*events, strict=True))
    return counted


def measure(quick: bool) -> list[dict[str, Any]]:
    """Count the events of all fits.

    Returns
    -------
    list of dict
        One entry for each kind of rows, their order and contestant: events of an epoch per nonzero,
        or per nonzero and label.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        units = draw_rows(folder, quick)
        command = [*VALGRIND, f"--callgrind-out-file={folder}/callgrind", sys.executable, __file__]
        print("fits under callgrind ...", file=sys.stderr, flush=True)
        child = subprocess.run([*command, "--child", name], capture_output=True, text=True)
        if child.returncode:
            raise SystemExit(f"the fits under callgrind failed:\n{child.stderr}")
        counted = _read_dumps(folder)
    return [
        {"rows": rows, "shuffled": shuffle, "contestant": contestant}
        | _per_epoch(*(counted[rows, contestant, shuffle, n] for n in EPOCHS), unit)
        for rows, unit in units.items()
        for shuffle in (False, True)
        for contestant in FITS
    ]


def _per_epoch(few: dict[str, int], many: dict[str, int], unit: int) -> dict[str, float]:
    return {
        name: sum(many[event] - few[event] for event in events) / (EPOCHS[1] - EPOCHS[0]) / unit
        for name, events in COUNTED.items()
    }


def show(entries: list[dict[str, Any]]) -> None:
    """Print the table."""
    print("\nA further epoch by callgrind, float32, per nonzero (and label)\n")
    rows = [
        (
            f"{entry['rows']}, {'shuffled' if entry['shuffled'] else 'in order'}",
            entry["contestant"], *(entry[name] for name in COUNTED),
        )
        for entry in entries
    ]  # fmt: skip
    print(text_table(COLUMNS, rows))


def main() -> None:
    """Count, print the table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer rows")
    parser.add_argument("--out", type=Path, default=Path("results/counters.json"))
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        _run_fits(options.child)
        return
    if not which("callgrind_control"):
        cannot_run("valgrind is not installed (Debian's package valgrind)")
    print(describe_machine())
    entries = measure(options.quick)
    show(entries)
    write_json(options.out, {"further epoch": entries})


if __name__ == "__main__":
    main()
