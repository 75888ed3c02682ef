"""How fast is one epoch, one call and one fit, beside scikit-learn and a bare C loop?

Quote the ratios: they were measured side by side in one run. The times belong to the machine.
"""

import argparse
from pathlib import Path

import class_order
import numpy as np
import one_row
import peak_memory
import race
from contestants import CONTESTANTS
from corpora import NEWS20, RCV1_LARGE, RCV1_SMALL, Shape, draw_corpus
from measure import describe_machine, options_with_rounds, write_json
from threadpoolctl import threadpool_limits

N_SEEDS = 5


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the smallest shape, few rounds")
    parser.add_argument("--rounds", type=int, help="fits of every contestant (9, quick: 3)")
    parser.add_argument("--out", type=Path, default=Path("results/bench-epoch.json"))
    return options_with_rounds(parser, usual=9, quick=3)


def _races(shapes: list[Shape], n_rounds: int) -> list[dict]:
    entries = []
    for shape in shapes:
        drawn = draw_corpus(shape)
        for dtype in (np.float64, np.float32):
            corpus = drawn.astype(dtype)
            entries += (measured := race.race({race.SORTED: corpus}, CONTESTANTS, n_rounds))
            race.show(corpus, measured, n_rounds)
    return entries


def _one_row_calls(shapes: list[Shape], n_calls: int) -> list[dict]:
    entries = []
    for shape in shapes:
        entries += (measured := one_row.one_row_calls(shape, n_calls))
        one_row.show(measured, n_calls)
    return entries


def _peak_memory(cases: list[tuple[Shape, int]]) -> list[dict]:
    entries = []
    for shape, n_classes in cases:
        entries += (measured := peak_memory.peak_memory(shape, n_classes))
        peak_memory.show(measured)
    return entries


def _class_order() -> list[dict]:
    corpus = draw_corpus(RCV1_SMALL)
    entries = class_order.class_order(corpus, N_SEEDS)
    class_order.show(corpus, entries, N_SEEDS)
    return entries


def main() -> None:
    """Run every measurement, print the tables and write them as JSON."""
    arguments = _arguments()
    quick = arguments.quick
    print(describe_machine())
    with threadpool_limits(1):
        report = {
            "rounds": arguments.rounds,
            "epoch": _races(
                [RCV1_SMALL] if quick else [RCV1_SMALL, RCV1_LARGE, NEWS20], arguments.rounds
            ),
            "one_row": _one_row_calls([RCV1_SMALL, NEWS20], 100 if quick else 1000),
            "peak_memory": _peak_memory(
                [(RCV1_SMALL, 2), (RCV1_SMALL, 10)]
                if quick
                else [(RCV1_LARGE, 2), (NEWS20, 2), (NEWS20, 5)]
            ),
            "class_order": _class_order(),
        }
    write_json(arguments.out, report)


if __name__ == "__main__":
    main()
