"""How far is an epoch from the plain C loop, in memory, and what lies between them?

The Perceptron's last hypothesis, rows in order and shuffled, float32 and float64, on every shape.
The first epoch of a fit is all that `fit` does: it checks parameters, labels and rows, too, and
makes the weights; the C loop checks nothing, and finds its weights and its order made. A further
epoch is a half of what two more add to a fit: loop against loop. Aim: 1.3 times. What the first has
beyond a further one is told in two parts: what a fit of two rows takes as well, and the rest, which
is the checking of rows, their first touch, and the corrections that only a first epoch makes.

    python benchmarks/floor_ratio.py [--quick] [--rounds N]
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from contestants import RAW
from corpora import NEWS20, RCV1_LARGE, RCV1_SMALL, Corpus, draw_corpus
from floor import FloorPerceptron, row_orders
from measure import (
    describe_machine,
    garbage_collection_off,
    in_turn,
    options_with_rounds,
    text_table,
    timed,
    write_json,
)
from threadpoolctl import threadpool_limits

from sparsemargin import PNormPerceptron

AIM = 1.3
EPOCHS = (1, 3)
FLOOR, OURS, FIXED = "C loop", "Perceptron, last", "Perceptron, last, two rows"
COLUMNS = [
    ("shape", ""), ("type", ""), ("rows", ""), ("C first", ".2f"), ("C further", ".2f"),
    ("ours first", ".2f"), ("ours further", ".2f"), ("fixed", ".2f"), ("checks, ...", ".2f"),
    ("first, ours / C", ".2f"),
    ("further, ours / C", ".2f"), ("test error %", ".2f"), ("C's", ".2f"),
]  # fmt: skip


class Case(NamedTuple):
    """A fit to be timed, of one contestant."""

    contestant: str
    shuffle: bool
    n_epochs: int

    def prepare(self, corpus: Corpus, seed: int) -> Callable[[], Any]:
        X, y = corpus.X, corpus.y
        if self.contestant == FIXED:
            two = [np.flatnonzero(y == sign)[0] for sign in (-1, 1)]
            X, y = X[two], y[two]
        if self.contestant != FLOOR:
            model = PNormPerceptron(
                **RAW, max_iter=self.n_epochs, hypothesis="last", fit_intercept=False,
                shuffle=self.shuffle, random_state=seed,
            )  # fmt: skip
            return partial(model.fit, X, y)
        return FloorPerceptron(X, y, row_orders(len(y), self.n_epochs, self.shuffle, seed)).run


CASES = [Case(FIXED, shuffle=False, n_epochs=1)] + [
    Case(contestant, shuffle, n_epochs)
    for contestant in (FLOOR, OURS)
    for shuffle in (False, True)
    for n_epochs in EPOCHS
]


def measure(corpus: Corpus, n_rounds: int) -> Iterator[dict[str, Any]]:
    """Time the fits of all cases in turn.

    Yields
    ------
    dict
        One entry for each order of rows: nanoseconds per nonzero of the first and of a further
        epoch, the least of the rounds, of both contestants, and what the first has beyond a
        further one; the ratios, and the mean test errors after one epoch.
    """
    seconds, wrong = defaultdict(list), defaultdict(list)
    with garbage_collection_off():
        for seed in range(n_rounds):
            for case in in_turn(CASES, seed):
                elapsed, model = timed(case.prepare(corpus, seed))
                seconds[case].append(elapsed)
                wrong[case].append(np.mean(model.predict(corpus.X_test) != corpus.y_test))
    fixed = 1e9 * min(seconds[CASES[0]]) / corpus.X.nnz
    for shuffle in (False, True):
        floor, ours = (
            _epochs(contestant, shuffle, seconds, corpus.X.nnz) for contestant in (FLOOR, OURS)
        )
        yield {
            "shape": corpus.shape.name,
            "dtype": corpus.X.dtype.name,
            "shuffled": shuffle,
            "floor_ns": floor,
            "ours_ns": ours,
            "beyond_ns": {"fixed": fixed, "checks": ours["first"] - ours["further"] - fixed},
            "ratio": {epoch: ours[epoch] / floor[epoch] for epoch in ours},
            "test_error": float(np.mean(wrong[Case(OURS, shuffle, 1)])),
            "floor_error": float(np.mean(wrong[Case(FLOOR, shuffle, 1)])),
        }


def _epochs(contestant: str, shuffle: bool, seconds: dict, nnz: int) -> dict[str, float]:
    few, many = (min(seconds[Case(contestant, shuffle, n_epochs)]) for n_epochs in EPOCHS)
    further = (many - few) / (EPOCHS[1] - EPOCHS[0])
    return {"first": 1e9 * few / nnz, "further": 1e9 * further / nnz}


def show(entries: list[dict[str, Any]], n_rounds: int) -> None:
    """Print the table."""
    print(
        f"\nOne epoch beside the C loop, ns per nonzero, least of {n_rounds} rounds; aim: {AIM}\n"
    )
    rows = [
        (
            entry["shape"], entry["dtype"], "shuffled" if entry["shuffled"] else "in order",
            *entry["floor_ns"].values(), *entry["ours_ns"].values(),
            *entry["beyond_ns"].values(), *entry["ratio"].values(),
            100 * entry["test_error"], 100 * entry["floor_error"],
        )
        for entry in entries
    ]  # fmt: skip
    print(text_table(COLUMNS, rows))


def main() -> None:
    """Run the measurements, print the table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the smallest shape, few rounds")
    parser.add_argument("--rounds", type=int, help="fits of every case (9, quick: 3)")
    parser.add_argument("--out", type=Path, default=Path("results/floor-ratio.json"))
    options = options_with_rounds(parser, usual=9, quick=3)
    print(describe_machine())
    entries = []
    with threadpool_limits(1):
        for shape in [RCV1_SMALL] if options.quick else [RCV1_SMALL, RCV1_LARGE, NEWS20]:
            drawn = draw_corpus(shape)
            for dtype in (np.float32, np.float64):
                entries += measure(drawn.astype(dtype), options.rounds)
    show(entries, options.rounds)
    write_json(options.out, {"rounds": options.rounds, "aim": AIM, "epochs": entries})


if __name__ == "__main__":
    main()
