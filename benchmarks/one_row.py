"""What one call costs when rows come one at a time: score it, then learn it."""

from collections import defaultdict
from functools import partial

from contestants import ONE_EPOCH, PEER_EPOCH, PERCEPTRON_SGD, RAW
from corpora import Shape, draw
from measure import garbage_collection_off, in_turn, minimum_and_median, text_table, timed
from sklearn.linear_model import Perceptron, SGDClassifier

from sparsemargin import ALMAClassifier, PNormPerceptron

MICROSECOND = 1e-6
CALLS = ("decision_function", "partial_fit")
COLUMNS = [
    ("", ""),
    *((header, ".1f") for call in CALLS for header in (call, "median")),
]


def _learners() -> dict:
    return {
        "sklearn Perceptron": Perceptron(**PEER_EPOCH),
        "sklearn SGD perceptron, average": SGDClassifier(
            **PEER_EPOCH, **PERCEPTRON_SGD, average=True
        ),
        "Perceptron, last": PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="last"),
        "Perceptron, average": PNormPerceptron(**ONE_EPOCH, **RAW, hypothesis="average"),
        "p-norm p=6, average": PNormPerceptron(**ONE_EPOCH, p=6.0, hypothesis="average"),
        "ALMA p=2, average": ALMAClassifier(**ONE_EPOCH, p=2.0, hypothesis="average"),
        "ALMA p=6, average": ALMAClassifier(**ONE_EPOCH, p=6.0, hypothesis="average"),
    }


def one_row_calls(shape: Shape, n_calls: int) -> list[dict]:
    """Time `decision_function` and `partial_fit` on one-row CSR matrices, classes known.

    Every row is scored and then learned, which is the on-line protocol: weights prepared once for
    many scores can't flatter the result.

    Parameters
    ----------
    shape : Shape
        Gives the number of features and of nonzeros a row.
    n_calls : int
        The number of rows, each scored and learned once by every learner.

    Returns
    -------
    list of dict
        One entry per learner, microseconds per call (``min``, ``median``).
    """
    X, y = draw(shape, n_calls + 1)
    learners = _learners()
    for learner in learners.values():
        learner.partial_fit(X[:1], y[:1], classes=[-1, 1])
    seconds = defaultdict(list)
    with garbage_collection_off():
        for i in range(1, n_calls + 1):
            row, label = X[i : i + 1], y[i : i + 1]
            for name in in_turn(list(learners), i):
                learner = learners[name]
                elapsed, _ = timed(partial(learner.decision_function, row))
                seconds[name, "decision_function"].append(elapsed)
                elapsed, _ = timed(partial(learner.partial_fit, row, label))
                seconds[name, "partial_fit"].append(elapsed)
    return [
        {"n_features": shape.n_features, "learner": name}
        | {call: minimum_and_median(seconds[name, call], MICROSECOND) for call in CALLS}
        for name in learners
    ]


def show(entries: list[dict], n_calls: int) -> None:
    """Print the table of one shape."""
    print(
        f"\nOne-row calls at {entries[0]['n_features']:,} features: microseconds, "
        f"minimum and median of {n_calls} calls"
    )
    rows = [
        (entry["learner"], *(entry[call][value] for call in CALLS for value in ("min", "median")))
        for entry in entries
    ]
    print(text_table(COLUMNS, rows))
