"""Train and predict with every algorithm on several threads, so that the thread sanitizer reports
memory that two threads write at the same time; see README.md."""

import warnings
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from problems.lives import BLOCKS, LIMITS, THREADS, classifier, lowered, rows
from sparsemargin import fit_text
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
    from_files()
    print("files of texts", flush=True)


def from_files() -> None:
    """Train on a file of texts. Threads share the vectors while others vectorize texts, write the
    row cache and name the columns."""
    with TemporaryDirectory() as folder, lowered({THREADS}), ExitStack() as stack:
        for name, value in (
            ("files.sources.BLOCK_BYTES", 500),
            ("readers.texts.ENOUGH_CHARACTERS", 1),
        ):
            stack.enter_context(patch(f"sparsemargin.{name}", value))
        path = Path(folder, "texts.tsv")
        path.write_text("".join(f"{i % 5}\tword{i % 7} other{i % 5} {i}\n" for i in range(300)))
        fit_text(path, n_jobs=N_THREADS, max_iter=2, random_state=0)


if __name__ == "__main__":
    main()
