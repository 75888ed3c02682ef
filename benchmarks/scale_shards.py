"""Test error against epochs and shards: the shards are learned from in turn, on this machine.

A model depends on the shards, not on where they are learned from; so one machine tells the errors
of any number of them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scale_data
from measure import text_table
from scale_data import Problem
from scale_learners import FIRST_ORDER, SECOND_ORDER, SEED

from sparsemargin.distributed import Round, fit_distributed

N_SHARDS = (1, 2, 4, 8, 16, 32, 64)
RCV1_EPOCHS, LARGE_EPOCHS = 10, 5
# Second-order: quadratic in mistakes.
SECOND_ORDER_EPOCHS = 5


def curve(
    problem: Problem, n_shards: int, learner: dict[str, Any], mixing: str, n_epochs: int
) -> dict[str, list[float]]:
    """Learn from the shards in turn.

    Returns
    -------
    dict
        After each epoch: ``errors``, the share of labels predicted wrongly, and ``corrections``,
        those of the epoch.
    """
    found: dict[str, list[float]] = {"errors": [], "corrections": []}

    def take(done: Round) -> None:
        predicted = done.model().predict(problem.X_test)
        found["errors"].append(float(np.mean(predicted != problem.y_test)))
        found["corrections"].append(sum(done.corrections))

    fit_distributed(
        problem.shards(n_shards), max_iter=n_epochs, mixing=mixing, random_state=SEED,
        on_round=take, **learner,
    )  # fmt: skip
    return found


def curves(
    problems: Sequence[Problem], learners: dict[str, dict[str, Any]], n_epochs: int,
    n_shards: Sequence[int], by_errors: Sequence[int] = (),
) -> list[dict[str, Any]]:  # fmt: skip
    """Curves of every learner and number of shards, each the mean over the problems; of some
    numbers of shards also those of mixing by errors."""
    entries = []
    for name, learner in learners.items():
        for shards in n_shards:
            for mixing in ("uniform", *(["errors"] if shards in by_errors else [])):
                each = [curve(problem, shards, learner, mixing, n_epochs) for problem in problems]
                means = {key: np.mean([one[key] for one in each], axis=0) for key in each[0]}
                entries.append(
                    {"learner": name, "shards": shards, "mixing": mixing}
                    | {key: [round(float(value), 6) for value in values]
                       for key, values in means.items()}
                )  # fmt: skip
                show_entry(problems[0].name, entries[-1])
    return entries


def show_entry(name: str, entry: dict[str, Any]) -> None:
    errors = " ".join(f"{100 * error:.2f}" for error in entry["errors"])
    print(f"{name}, {entry['learner']}, {entry['shards']} shards, {entry['mixing']}: {errors}",
          flush=True)  # fmt: skip


def of_rcv1(quick: bool) -> dict[str, Any]:
    """Ten topics of the RCV1 sample; the figures are means over them."""
    problem, topics = scale_data.rcv1()
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else RCV1_EPOCHS
    columns = range(2 if quick else len(topics))
    alone = [scale_data.one_topic(problem, column) for column in columns]
    return {
        "topics": topics, "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "curves": [
            *curves([problem], FIRST_ORDER, n_epochs, shards, shards[1:]),
            *curves(alone, SECOND_ORDER, min(n_epochs, SECOND_ORDER_EPOCHS), shards),
        ],
    }  # fmt: skip


def of_generated(quick: bool) -> dict[str, Any]:
    """Generated rows of 10^8 nonzeros; mixed by errors where the shards are most."""
    problem = scale_data.generated(scale_data.SMALL if quick else scale_data.LARGE)
    shards = N_SHARDS[:3] if quick else N_SHARDS
    n_epochs = 2 if quick else LARGE_EPOCHS
    return {
        "n_train": problem.X.shape[0], "n_test": problem.X_test.shape[0],
        "n_features": problem.X.shape[1], "n_entries": problem.X.nnz,
        "curves": curves([problem], FIRST_ORDER, n_epochs, shards, shards[-1:]),
    }  # fmt: skip


def show(report: dict[str, Any]) -> None:
    """Print the errors after the last epoch."""
    rows = [
        [entry["learner"], entry["mixing"], entry["shards"], 100 * entry["errors"][0],
         100 * entry["errors"][-1]]
        for entry in report["curves"]
    ]  # fmt: skip
    headers = [("learner", ""), ("mixing", ""), ("shards", "d"), ("error %, 1 epoch", ".2f"),
               ("all epochs", ".2f")]  # fmt: skip
    print(text_table(headers, rows))
