"""Quality and cost of probabilities; detection of unknown classes; thresholds.

`losses`: log loss and Brier score of `fit_csr(X, y)`, of `CalibratedClassifierCV(cv=5)` with a
sigmoid around the classifier selected by `fit_csr`, and of `LogisticRegression()` with default
settings. Results are means over splits, with the standard error of the paired differences to
`CalibratedClassifierCV`. The method was chosen on the 20 most frequent RCV1 topics, text of seeds 0
to 2, and splits of digits and microarrays; the claims use other seeds and, for topics, other
splits. CPU seconds are given for a fit with and without the outputs that probabilities need, and
for the first `predict_proba`, which fits the probabilities.

`unknown`: one class is left out of training. AUROC of separating its rows from all others by the
largest output, mean over the classes.

`f1`: all RCV1 topics, macro F1 of all and of those below 1 %: outputs above 0, `threshold="f1"`,
and LinearSVC, alone and with scikit-learn's `TunedThresholdClassifierCV`.

    python benchmarks/probabilities.py [--only losses unknown f1] [--rounds 5]

It needs the files in the folder that SPARSEMARGIN_DATA names.
"""

import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import timing
from corpora import N_TRAIN, number_vectors
from defaults import GENOMES, flipped, sides
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import (
    StratifiedShuffleSplit,
    TunedThresholdClassifierCV,
    train_test_split,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC

from papers.data import load_letter
from sparsemargin import datasets, fit_csr
from sparsemargin.plotting import theme
from sparsemargin.plotting.style import line_style, neutral

N_TOPICS, RAREST, FIRST_SEED = 20, 60, 20
OURS, FIVE_FITS, LOGISTIC = (
    "fit_csr(X, y)", "CalibratedClassifierCV(cv=5)", "LogisticRegression()"
)  # fmt: skip

Split = tuple[Any, np.ndarray, Any, np.ndarray]


def splits(n_rounds: int) -> Iterator[tuple[str, Split]]:
    """Yield training and test rows, with the name of the data set."""
    stories = datasets.load_rcv1(None, source="sample")
    X, Y = stories.data, stories.target.toarray().astype(np.int64)
    vectors = number_vectors(X)
    ranked = np.argsort(-Y[:N_TRAIN].sum(axis=0), kind="stable")
    known = ranked[Y[:, ranked].sum(axis=0) >= RAREST][::-1]
    rarest = known[Y[:, known].argmax(axis=1)]
    seeds = range(FIRST_SEED, FIRST_SEED + n_rounds)
    for seed in seeds:
        train, test = sides(vectors, seed)
        for topic in ranked[:N_TOPICS]:
            y = Y[:, topic]
            yield "20 RCV1 topics", (X[train], y[train], X[test], y[test])
        # CalibratedClassifierCV needs at least five rows of each class.
        common = np.flatnonzero(np.bincount(rarest[train]) >= 5)
        train, test = (rows[np.isin(rarest[rows], common)] for rows in (train, test))
        yield "RCV1 as many classes", (X[train], rarest[train], X[test], rarest[test])
        for noise in (0.0, 0.05, 0.15):
            rows, y = datasets.make_zipf_text(30_000, random_state=seed)
            learned = flipped(y[:20_000], noise, seed)
            split = rows[:20_000], learned, rows[20_000:], y[20_000:]
            yield f"text, {100 * noise:g} % wrong", split
        for name, (rows, y) in {
            "digits": load_digits(return_X_y=True), "letter": load_letter("all", return_X_y=True),
        }.items():  # fmt: skip
            a, b, y_a, y_b = train_test_split(rows, y, test_size=1 / 4, random_state=seed)
            yield name, (a, y_a, b, y_b)
    for name, load in list(GENOMES.items())[:4]:
        found = load()
        shuffled = StratifiedShuffleSplit(4 * n_rounds, test_size=1 / 3, random_state=FIRST_SEED)
        for train, test in shuffled.split(found.data, found.target):
            X, y = found.data, found.target
            yield name, (X[train], y[train], X[test], y[test])


def losses_of(shares: np.ndarray, classes: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Log loss and Brier score of probabilities, over rows of known classes."""
    codes = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    known = classes[codes] == y
    shares, codes = np.clip(shares[known], 1e-15, 1.0), codes[known]
    actual = codes[:, np.newaxis] == np.arange(len(classes))
    return -float(np.log(shares[actual]).mean()), float(((shares - actual) ** 2).sum(axis=1).mean())


def cpu_seconds(call: Callable[[], Any]) -> float:
    """CPU seconds of a call."""
    start = process_time()
    call()
    return process_time() - start


def seconds_of(model: Any, X: Any, y: np.ndarray) -> list[float]:
    """CPU seconds of a fit with and without the outputs for probabilities, each the minimum of five
    fits, and of the first probabilities."""
    kept, best = type(model).keeps_outputs, [np.inf, np.inf]
    try:
        for number in range(10):
            type(model).keeps_outputs = kept if number % 2 == 0 else False
            fresh = clone(model)
            best[number % 2] = min(best[number % 2], cpu_seconds(partial(fresh.fit, X, y)))
    finally:
        del type(model).keeps_outputs
    fresh = clone(model).fit(X, y)
    return [*best, cpu_seconds(fresh.fitted.calibrated)]


def losses(options: Namespace) -> dict[str, Any]:
    """Compare ours with five calibrated fits and logistic regression."""
    warnings.simplefilter("ignore")
    found: dict[str, list[np.ndarray]] = {}
    seconds: dict[str, np.ndarray] = {}
    for name, (X, y, X_test, y_test) in splits(options.rounds):
        ours = fit_csr(X, y, random_state=0)
        models = [
            ours, CalibratedClassifierCV(clone(ours), cv=5).fit(X, y),
            LogisticRegression().fit(X, y),
        ]  # fmt: skip
        each = [losses_of(m.predict_proba(X_test), m.classes_, y_test) for m in models]
        found.setdefault(name, []).append(np.array(each))
        if len(found[name]) <= 2:
            seconds[name] = seconds.get(name, np.zeros(3)) + seconds_of(ours, X, y)
    report = {}
    for name, of_splits in found.items():
        values = np.array(of_splits)
        less = values - values[:, 1:2]
        with_, without, first = seconds[name]
        report[name] = {
            "contestants": {
                contestant: {
                    "log_loss": values[:, i, 0].mean(), "brier_score": values[:, i, 1].mean(),
                    "log_loss_more": less[:, i, 0].mean(), "brier_more": less[:, i, 1].mean(),
                    "log_loss_error": less[:, i, 0].std(ddof=1) / len(values) ** 0.5,
                    "brier_error": less[:, i, 1].std(ddof=1) / len(values) ** 0.5,
                }
                for i, contestant in enumerate((OURS, FIVE_FITS, LOGISTIC))
            },
            "seconds": with_ / without, "with_first_probabilities": (with_ + first) / without,
        }  # fmt: skip
        for contestant, figures in report[name]["contestants"].items():
            print(
                f"{name:22} {contestant:30} log loss {figures['log_loss']:.4f} "
                f"({figures['log_loss_more']:+.4f} +- {figures['log_loss_error']:.4f})  Brier "
                f"{figures['brier_score']:.4f} ({figures['brier_more']:+.4f} +- "
                f"{figures['brier_error']:.4f})"
            )
        print(f"{name:22} seconds {with_ / without:.3f}, first {(with_ + first) / without:.3f}")
    return {"losses": report}


def unknown(options: Namespace) -> dict[str, Any]:
    """AUROC for a class that was left out of training."""
    warnings.simplefilter("ignore")
    report = {}
    stories = datasets.load_rcv1(["GCAT", "C15", "ECAT", "MCAT"])
    lone = np.asarray(stories.target.sum(axis=1)).ravel() == 1
    sets = {
        "digits": load_digits(return_X_y=True), "letter": load_letter("all", return_X_y=True),
        "text of 10 classes": datasets.make_zipf_text(6000, n_classes=10, random_state=0),
        "RCV1 of 4 topics": (
            stories.data[lone], np.asarray(stories.target[lone].argmax(axis=1)).ravel()
        ),
    }  # fmt: skip
    for name, (X, y) in sets.items():
        found = []
        for left_out in np.unique(y):
            train, test = train_test_split(np.arange(len(y)), test_size=1 / 3, random_state=0)
            train = train[y[train] != left_out]
            models = {OURS: fit_csr(X[train], y[train], random_state=0)}
            models["LinearSVC()"] = LinearSVC().fit(X[train], y[train])
            sure = [model.decision_function(X[test]).max(axis=1) for model in models.values()]
            logistic = LogisticRegression().fit(X[train], y[train])
            sure.append(logistic.predict_proba(X[test]).max(axis=1))
            found.append([roc_auc_score(y[test] != left_out, each) for each in sure])
        report[name] = dict(zip((*models, LOGISTIC), np.mean(found, axis=0), strict=True))
        print(name, {key: round(float(value), 4) for key, value in report[name].items()})
    return {"unknown": report}


def f1(options: Namespace) -> dict[str, Any]:
    """Macro F1 of all topics, and of rare ones, in percent."""
    warnings.simplefilter("ignore")
    stories = datasets.load_rcv1(None, source="sample")
    X, Y = stories.data, stories.target.toarray().astype(np.int64)
    vectors, rare = number_vectors(X), Y.mean(axis=0) < 0.01
    found: dict[str, list[np.ndarray]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + options.rounds):
        train, test = sides(vectors, seed)
        ours, svc = fit_csr(X[train], Y[train], random_state=seed), OneVsRestClassifier(LinearSVC())
        predicted = {
            OURS: ours.predict(X[test]),
            'predict_labels(threshold="f1")': ours.predict_labels(X[test], threshold="f1"),
            "LinearSVC()": svc.fit(X[train], Y[train]).predict(X[test]),
            "LinearSVC(), TunedThresholdClassifierCV": tuned_predictions(
                X[train], Y[train], X[test]
            ),
        }
        for name, each in predicted.items():
            scores = f1_score(Y[test], each, average=None, zero_division=0.0)
            micro = f1_score(Y[test], each, average="micro")
            found.setdefault(name, []).append([scores.mean(), scores[rare].mean(), micro])
    report = {name: dict(zip(("macro", "rare", "micro"), 100 * np.mean(each, axis=0), strict=True))
              for name, each in found.items()}  # fmt: skip
    for name, figures in report.items():
        print(name, {key: round(value, 1) for key, value in figures.items()})
    return {"f1": report}


def tuned_predictions(X: Any, Y: np.ndarray, X_test: Any) -> np.ndarray:
    """Predictions of LinearSVC with a threshold tuned for each topic by cross-validated F1; no
    predictions for topics with fewer than five rows."""
    predicted = np.zeros((X_test.shape[0], Y.shape[1]), dtype=np.int64)
    for topic in np.flatnonzero(Y.sum(axis=0) >= 5):
        model = TunedThresholdClassifierCV(LinearSVC(), scoring="f1", cv=5)
        predicted[:, topic] = model.fit(X, Y[:, topic]).predict(X_test)
    return predicted


def draw_pictures(folder: Path) -> None:
    """Draw the accuracy against the probability, on a light and on a dark background."""
    X, y = datasets.make_zipf_text(12_000, random_state=0)
    models = {
        OURS: fit_csr(X[:6000], y[:6000], random_state=0),
        LOGISTIC: LogisticRegression().fit(X[:6000], y[:6000]),
    }
    for ground in ("light", "dark"):
        with theme(ground):
            figure = Figure(figsize=(4.6, 4.2), layout="constrained")
            axes = figure.subplots()
            axes.plot([0, 1], [0, 1], **neutral(axes))
            for name, model in models.items():
                shares = model.predict_proba(X[6000:])[:, 1]
                share, mean = calibration_curve(y[6000:] == 1, shares, n_bins=10)
                axes.plot(mean, share, label=name, **line_style(axes, 1, {"marker": "o"}))
            axes.set(xlabel="predicted probability", ylabel="share of the rows of that class")
            axes.legend()
            figure.savefig(folder / f"calibration-{ground}.svg", metadata={"Date": None})


if __name__ == "__main__":
    parser = timing.parser_of(__doc__, "results/probabilities.json")
    timing.run(parser, {"losses": losses, "unknown": unknown, "f1": f1}, (5, 1))
