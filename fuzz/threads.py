"""Train and predict with every algorithm on several threads, so that the thread sanitizer reports
memory that two threads write at the same time; see README.md."""

import warnings
from itertools import product

from problems.lives import BLOCKS, LIMITS, THREADS, classifier, lowered, rows
from sparsemargin.models import ALGORITHMS
from sparsemargin.models.parameters import declarations

N_THREADS = 4


def main() -> None:
    for (algo, (learner, _)), n_classes, dtype in product(
        ALGORITHMS.items(), (3, 20, 70), ("f4", "f8")
    ):
        hypothesis = next(
            each for each in declarations(learner)["hypothesis"].limits if each.choices
        )
        X, y = rows(200, 60, n_classes, 1, dtype)
        for name, held in product(hypothesis.choices, ({THREADS}, set(LIMITS))):
            # Votes need a log of the corrections, which blocks do not have.
            held = held if name in ("last", "average") else held - BLOCKS
            with lowered(held), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = classifier(algo, hypothesis=name, n_jobs=N_THREADS).fit(X, y)
                model.partial_fit(X, y).decision_function(X)
        print(f"{algo}, {n_classes} classes, {dtype}", flush=True)


if __name__ == "__main__":
    main()
