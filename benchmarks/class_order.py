"""Rows sorted by class: does the shuffling hide the order, as it should?"""

import numpy as np
from contestants import ONE_EPOCH, RAW
from corpora import Corpus
from measure import text_table

from sparsemargin import ALMAClassifier, PNormPerceptron

CASES = (
    ("random order, shuffled", False, True),
    ("sorted, shuffled", True, True),
    ("sorted, given order", True, False),
)

ESTIMATORS = {
    "Perceptron, last": (PNormPerceptron, RAW | {"hypothesis": "last"}),
    "Perceptron, average": (PNormPerceptron, RAW | {"hypothesis": "average"}),
    "p-norm p=6, average": (PNormPerceptron, {"p": 6.0, "hypothesis": "average"}),
    "ALMA p=2, average": (ALMAClassifier, {"p": 2.0, "hypothesis": "average"}),
}


def class_order(corpus: Corpus, n_seeds: int) -> list[dict]:
    """Compare the test error on class-sorted rows with that on rows in random order.

    Parameters
    ----------
    corpus : Corpus
        Its rows are in random order.
    n_seeds : int
        The number of shuffles averaged over.

    Returns
    -------
    list of dict
        One entry per estimator: the mean test error of each case, and the standard deviation over
        the shuffles.
    """
    by_class = np.argsort(corpus.y, kind="stable")
    rows = {False: (corpus.X, corpus.y), True: (corpus.X[by_class], corpus.y[by_class])}
    entries = []
    for name, (estimator_class, params) in ESTIMATORS.items():
        entry = {"estimator": name}
        for case, is_sorted, shuffle in CASES:
            errors = []
            for seed in range(n_seeds):
                model = estimator_class(**ONE_EPOCH, **params, shuffle=shuffle, random_state=seed)
                model.fit(*rows[is_sorted])
                errors.append(1 - model.score(corpus.X_test, corpus.y_test))
            entry[case] = {"mean": float(np.mean(errors)), "std": float(np.std(errors))}
        entries.append(entry)
    return entries


def show(corpus: Corpus, entries: list[dict], n_seeds: int) -> None:
    """Print the table."""
    print(
        f"\nTest error in % (and its standard deviation over {n_seeds} shuffles) by the order "
        f"of the rows, {corpus.shape.name}"
    )
    columns = [("", ""), *((case, "") for case, _, _ in CASES)]
    rows = [
        (entry["estimator"], *(_percent(entry[case]) for case, _, _ in CASES)) for entry in entries
    ]
    print(text_table(columns, rows))


def _percent(error: dict) -> str:
    return f"{100 * error['mean']:.2f} ({100 * error['std']:.2f})"
