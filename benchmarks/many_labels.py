"""How fast, how well and how big are a hundred labels, beside one-versus-rest and a C sweep?

Four measurements: fits of 103 labels on the RCV1 shape, the contestants in turn; predictions by
their models; the peak memory of a thousand labels on a million features; and the topics of the real
RCV1 sample, looked for in the folder that SPARSEMARGIN_DATA names. Quote the ratios: they were
measured side by side in one run. The times belong to the machine.

    python benchmarks/many_labels.py [--only race memory rcv1] [--quick]
"""

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import label_memory
import label_race
import label_rcv1
from corpora import NEWS20, RCV1_SMALL
from label_data import OF_LABELS, draw_labelled
from measure import describe_machine, options_with_rounds, write_json
from threadpoolctl import threadpool_limits

QUICK_ROWS, QUICK_STORIES = 4000, 4000
MANY_LABELS = 1000
QUICK_LABELS = 200


def _race(options: argparse.Namespace) -> dict[str, Any]:
    shape = replace(RCV1_SMALL, n_train=QUICK_ROWS) if options.quick else RCV1_SMALL
    corpus = draw_labelled(shape, OF_LABELS)
    fits, models = label_race.fit_race(corpus, options.rounds)
    label_race.show_fits(corpus, fits, options.rounds)
    predictions = label_race.predict_race(corpus, models, options.rounds)
    label_race.show_predictions(corpus, predictions)
    return {"fits": fits, "predictions": predictions}


def _memory(options: argparse.Namespace) -> dict[str, Any] | None:
    shape = replace(NEWS20, n_train=QUICK_ROWS, n_test=QUICK_ROWS) if options.quick else NEWS20
    entry = label_memory.many_features(shape, QUICK_LABELS if options.quick else MANY_LABELS)
    label_memory.show(entry)
    return entry


def _rcv1(options: argparse.Namespace) -> dict[str, Any] | None:
    try:
        report = label_rcv1.measure(QUICK_STORIES if options.quick else None)
    except FileNotFoundError as error:
        print(f"\nLEFT OUT: the topics of RCV1. {error}")
        return None
    label_rcv1.show(report)
    return report


MEASUREMENTS = {"race": _race, "memory": _memory, "rcv1": _rcv1}


def main() -> None:
    """Run the measurements, print the tables and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=MEASUREMENTS, default=list(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="fewer rounds, rows and labels")
    parser.add_argument("--rounds", type=int, help="fits of every contestant (5, quick: 2)")
    parser.add_argument("--out", type=Path, default=Path("results/many-labels.json"))
    options = options_with_rounds(parser, usual=5, quick=2)
    print(describe_machine())
    # So that the processes of OneVsRest inherit it: labels that no row of a fold has are told of
    # a hundred times over.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Label not .* is present in all training")
        report = {name: MEASUREMENTS[name](options) for name in options.only}
    write_json(options.out, {"rounds": options.rounds, **report})


if __name__ == "__main__":
    main()
