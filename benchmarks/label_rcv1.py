"""All topics of the real RCV1 sample: micro and macro F1 beside LinearSVC and the Perceptron.

The 27,695 stories are parted once, by a fixed seed, three quarters to learn from; stories with
equal vectors come to the same side. Thresholds are the default, 0. Macro F1 is the mean over the
topics with a story in the test part: of the others there is nothing to find.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import text_table, timed
from rcv1_sample import number_vectors
from sklearn.linear_model import Perceptron
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.datasets import load_rcv1

TEST_SHARE = 0.25
NORMS = (2, 3, 4, 6)
# The intercept's scale is what `fit_csr` takes by default: a tenth of the rows' norm, which is 1.
OWN_SETTINGS = {
    "max_iter": 5, "hypothesis": "average", "fit_intercept": True, "intercept_scaling": 0.1,
    "random_state": 0,
}  # fmt: skip

MODELS: dict[str, Callable[[], Any]] = {
    "OneVsRest(LinearSVC)": partial(OneVsRestClassifier, LinearSVC(random_state=0)),
    "OneVsRest(Perceptron)": partial(OneVsRestClassifier, Perceptron(random_state=0)),
    **{f"p-norm, p={p}": partial(PNormPerceptron, p=p, **OWN_SETTINGS) for p in NORMS},
    **{f"ALMA, p={p}": partial(ALMAClassifier, p=p, **OWN_SETTINGS) for p in NORMS},
}


def split_topics(n_stories: int | None = None) -> tuple[Any, np.ndarray, Any, np.ndarray]:
    """Load the sample and part it: X and Y to learn from, X and Y to test on.

    Parameters
    ----------
    n_stories : int or None, default=None
        The first so many of the loader's shuffled order; None: all.

    Raises
    ------
    FileNotFoundError
        If the sample is not at hand; the message says how to get it.
    """
    stories = load_rcv1(None, source="sample", dtype=np.float32)
    X, Y = stories.data[:n_stories], stories.target[:n_stories].toarray()
    parts = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=0)
    train, test = next(parts.split(X, groups=number_vectors(X)))
    return X[train], Y[train], X[test], Y[test]


def measure(n_stories: int | None = None) -> dict[str, Any]:
    """Fit every model on all topics, once.

    Returns
    -------
    dict
        The sizes of the parts, and for each model seconds of the fit and of the predictions, and
        the test part's ``micro_f1`` and ``macro_f1``.
    """
    X, Y, X_test, Y_test = split_topics(n_stories)
    present = np.flatnonzero(Y_test.any(axis=0))
    entries = []
    for name, make in MODELS.items():
        fit_seconds, model = timed(partial(make().fit, X, Y))
        predict_seconds, predicted = timed(partial(model.predict, X_test))
        f1 = partial(f1_score, Y_test, predicted, zero_division=0.0)
        entries.append(
            {
                "contestant": name,
                "fit_seconds": fit_seconds,
                "predict_seconds": predict_seconds,
                "micro_f1": float(f1(average="micro")),
                "macro_f1": float(f1(average="macro", labels=present)),
            }
        )
    sizes = {"n_train": len(Y), "n_test": len(Y_test), "n_topics": Y.shape[1]}
    return sizes | {"n_topics_in_test": len(present), "models": entries}


COLUMNS = [
    ("", ""), ("micro F1 %", ".1f"), ("macro F1 %", ".1f"), ("fit s", ".2f"), ("predict s", ".3f"),
]  # fmt: skip


def show(report: dict[str, Any]) -> None:
    """Print the table."""
    print(
        f"\nRCV1, {report['n_topics']} topics, {report['n_train']:,} stories to learn from, "
        f"{report['n_test']:,} to test on; macro F1 over the {report['n_topics_in_test']} topics "
        "with a story in the test part; ours: five epochs, average, one thread"
    )
    rows = [
        (
            entry["contestant"], 100 * entry["micro_f1"], 100 * entry["macro_f1"],
            entry["fit_seconds"], entry["predict_seconds"],
        )
        for entry in report["models"]
    ]  # fmt: skip
    print(text_table(COLUMNS, rows))
