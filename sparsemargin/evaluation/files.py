"""Evaluation of a model on labelled files, with at most eight bytes of memory per row."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.evaluation.vectors import divided, margins_of
from sparsemargin.models import Learner
from sparsemargin.models.fitted.outputs import confidence_of, probabilities_of
from sparsemargin.models.inputs.label_table import LabelTable
from sparsemargin.models.inputs.labels import LabelEncoder, agreement, first_labels, label_sets
from sparsemargin.models.inputs.rows import naming_bad_rows
from sparsemargin.streaming.predict import OpenCorpus, PredictedBlock, Predictor

#: Quantiles of the margins that are reported.
SHARES = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]

# Number of equally wide bins of probabilities for the expected calibration error.
_BINS = 15

_SCORES = ("precision", "recall", "f1")


class ProbabilityFigures:
    """Accumulates log loss, Brier score and expected calibration error of probabilities.

    The Brier score is the mean squared error of the probabilities. For rows with one label it is
    summed over the classes. The calibration error is the mean absolute difference between the
    share of correct predictions and the mean probability in 15 bins, weighted by their size.
    """

    def __init__(self) -> None:
        self.n = self.log_loss = self.brier = 0.0
        # Rows: number of predictions, number of correct ones, sum of probabilities. Columns: bins.
        self.bins = np.zeros((3, _BINS))

    def add(self, shares: np.ndarray, actual: np.ndarray) -> None:
        """Add the probabilities of some rows, and whether each class is `actual` (bool).

        Both have shape (n_rows, n_classes) for rows with one label. For multilabel rows they have
        shape (n_rows * n_classes, 1).
        """
        if shares.shape[1] == 1:
            right, top = actual[:, 0], shares[:, 0]
            of_actual = np.where(right, top, 1 - top)
        else:
            best = np.arange(len(shares)), shares.argmax(axis=1)
            right, top, of_actual = actual[best], shares[best], shares[actual]
        self.n += len(shares)
        self.log_loss -= float(np.log(np.maximum(of_actual, np.finfo(float).tiny)).sum())
        self.brier += float(((shares - actual) ** 2).sum())
        bins = np.minimum((top * _BINS).astype(np.intp), _BINS - 1)
        for sums, each in zip(self.bins, (np.ones(len(top)), right, top), strict=True):
            sums += np.bincount(bins, each, _BINS)

    def figures(self) -> dict[str, float]:
        """Return the three figures by their names."""
        _, right, given = self.bins
        sums = self.log_loss, self.brier, float(np.abs(right - given).sum())
        # Rounding removes the digits that depend on the division of the rows into blocks.
        means = [round(each / self.n, 12) for each in sums]
        return dict(zip(("log_loss", "brier_score", "calibration_error"), means, strict=True))


class Evaluation:
    """Base class of evaluations of a model on labelled files. `how` is for the `Predictor`."""

    def __init__(self, learner: Learner, opened: OpenCorpus, **how: Any) -> None:
        # The classes come first in the table, so the id of a known label is its class number.
        table = LabelTable.of_classes(learner.classes_)
        self.labels = list(table.texts)
        self.predictor = Predictor(learner, opened, table=table, **how)
        # Rows: correct predictions, rows with this label, predictions. Columns: classes.
        self.counts = np.zeros((3, len(self.labels)), dtype=np.int64)
        # Number of rows that are counted, and of rows whose predicted labels are all correct.
        self.n_rows = self.n_right = 0
        self._unknown: Counter[int] = Counter()
        known = learner.fitted.tells_probabilities
        self.probabilities = ProbabilityFigures() if known else None

    def _add_probabilities(
        self, predicted: PredictedBlock, actual: np.ndarray, rows: Any = slice(None)
    ) -> None:
        """Add the probabilities of some rows. `actual` says whether they have each class."""
        if self.probabilities is not None and len(actual):
            fitted = self.predictor.learner.fitted
            probabilities = probabilities_of(fitted, predicted.outputs[rows])
            width = 1 if fitted.many else probabilities.shape[1]
            self.probabilities.add(probabilities.reshape(-1, width), actual.reshape(-1, width))

    def run(self, blocks: Iterable[PredictedBlock]) -> None:
        """Count the predictions of all rows. The blocks come from the predictor."""
        n_rows = 0
        for predicted in blocks:
            self._add(predicted)
            n_rows += predicted.block.n_rows
        if not n_rows:
            corpus = self.predictor.corpus
            raise ValueError(f"{corpus.names} has no rows. {corpus.form}.")
        self._check()

    @abstractmethod
    def _add(self, predicted: PredictedBlock) -> None:
        """Add the predictions for a block of rows."""

    def _count(self, rows_right: np.ndarray, *labels: np.ndarray) -> None:
        """Count rows and labels.

        `rows_right` says whether the prediction of each row is correct. `labels` are three arrays
        of class numbers: correctly predicted labels, true labels, predicted labels.
        """
        self.n_rows += len(rows_right)
        self.n_right += int(np.count_nonzero(rows_right))
        for counts, found in zip(self.counts, labels, strict=True):
            counts += np.bincount(found, minlength=len(counts))

    def _check(self) -> None:
        """Raise a ValueError if no label of the files is a class of the model."""
        if self._unknown and not self.counts[1].any():
            known, found = first_labels(self.labels), first_labels(list(self.unknown))
            raise ValueError(
                f"{self.predictor.corpus.names} has none of the labels that the model has learned, "
                f"{known}, but others: {found}. If the model tells one label from all others, pass "
                f"positive={next(iter(self.unknown))!r}, or whichever it is."
            )

    @property
    def unknown(self) -> Counter[str]:
        """Number of rows with each label that is not a class of the model."""
        texts = self.predictor.table.texts
        return Counter({texts[i]: count for i, count in self._unknown.items()})

    def figures(self) -> dict[str, Any]:
        """Return all figures, as a dict that can be written as JSON."""
        # Micro averages use the sums of the counts over all classes. Macro averages are means of
        # the scores of the classes.
        scores = _scores(self.counts)
        averages = {"micro": _scores(self.counts.sum(axis=1, keepdims=True)), "macro": scores}
        return {
            "rows": self.n_rows,
            "mistakes": self.n_rows - self.n_right,
            **self._shares(self.n_right / self.n_rows),
            **({} if self.probabilities is None else self.probabilities.figures()),
            **{
                f"{kind}_{name}": float(values.mean())
                for kind, of_kind in averages.items()
                for name, values in zip(_SCORES, of_kind, strict=True)
            },
            "classes": self._classes(self.counts),
            **self._details(),
            "unknown_labels": [
                {"label": label, "rows": count} for label, count in self.unknown.most_common()
            ],
        }

    def _classes(self, counts: np.ndarray) -> list[dict[str, Any]]:
        """Return the scores and the counts of each class."""
        columns = zip(self.labels, *_scores(counts).tolist(), *counts[1:].tolist(), strict=True)
        names = ("label", *_SCORES, "rows", "predicted")
        return [dict(zip(names, entry, strict=True)) for entry in columns]

    @abstractmethod
    def _shares(self, right: float) -> dict[str, Any]:
        """Return the figures that depend on `right`, the fraction of correct rows."""

    def _details(self) -> dict[str, Any]:
        """Return the figures that only one kind of model has."""
        return {}


class ClassEvaluation(Evaluation):
    """Evaluation of a model that predicts one label per row.

    With `positive`, the second of two classes stands for this label, the first for all others.
    `least` is the threshold of a `Rejector`: the rows with at least this confidence are counted,
    too. All other figures are those of the classifier.
    """

    def __init__(
        self, learner: Learner, opened: OpenCorpus, *, positive: str | None = None,
        least: float | None = None, **how: Any,
    ) -> None:  # fmt: skip
        if positive is not None and len(learner.classes_) != 2:
            raise ValueError(
                f"positive={positive!r} needs a model of two classes; this one has "
                f"{len(learner.classes_)}."
            )
        if how.get("top_k") is not None:
            raise ValueError(
                "The model has learned one class a row, and is judged by the one that it predicts. "
                f"Leave top_k={how['top_k']} out."
            )
        super().__init__(learner, opened, multilabel=positive is not None, **how)
        self.positive = None if positive is None else LabelEncoder.of_positive(positive)
        self.least = least
        # Number of accepted rows, and of the correct ones among them.
        self.n_accepted = self.n_accepted_right = 0
        # Ids of the labels that occur in rows. The table always contains all classes.
        self._found: set[int] = set()
        # Number of predictions of each class for rows whose label is not a class of the model.
        self.strays = np.zeros(len(self.labels), dtype=np.int64)
        # Number of rows for each pair of true and predicted class number that occurs.
        self.confusion: Counter[tuple[int, int]] = Counter()
        votes = learner.hypothesis == "vote"
        # Shares of votes are margins. Other outputs must be divided by norms of rows and vectors.
        has_margins = votes or (learner.hypothesis != "random" and learner.space.has_row_lengths)
        # Margins of rows whose label is a class of the model, one array per block.
        self.margins: list[np.ndarray] | None = [] if has_margins else None
        self._norms = None
        if has_margins and not votes:
            self._norms = learner.fitted.norms(learner.n_threads())

    def _check(self) -> None:
        """Also raise a ValueError if no row has the label `positive`: it may be misspelt."""
        super()._check()
        table = self.predictor.table
        if self.positive and table.find(self.positive.positive) not in self._found:
            texts = [table.texts[i] for i in sorted(self._found)]
            raise ValueError(
                f"{self.predictor.corpus.names}: no row has the label "
                f"positive={self.positive.positive!r}. There are: {first_labels(texts)}."
            )

    def _add(self, predicted: PredictedBlock) -> None:
        codes, answers, n_classes = self._codes(predicted), predicted.codes, len(self.labels)
        assert isinstance(answers, np.ndarray)
        known = codes < n_classes
        self._unknown.update(codes[~known].tolist())
        self.strays += np.bincount(answers[~known], minlength=n_classes)
        if self.margins is not None:
            self.margins.append(self._margins_of(predicted, np.where(known, codes, 0))[known])
        codes, answers = codes[known].astype(np.int64), answers[known]
        if self.least is not None:
            accepted = confidence_of(predicted.outputs[known]) >= self.least
            self.n_accepted += int(np.count_nonzero(accepted))
            self.n_accepted_right += int(np.count_nonzero(accepted & (codes == answers)))
        self._add_probabilities(predicted, codes[:, np.newaxis] == np.arange(n_classes), known)
        self._count(codes == answers, codes[codes == answers], codes, answers)
        pairs, counts = np.unique(codes * n_classes + answers, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            self.confusion[divmod(pair, n_classes)] += count

    def classes_of_all_rows(self) -> list[dict[str, Any]]:
        """Return the scores and counts of each class, with all predictions.

        Predictions for rows whose label is not a class of the model count as false positives,
        unlike in `figures`.
        """
        counts = self.counts.copy()
        counts[2] += self.strays
        return self._classes(counts)

    def _codes(self, predicted: PredictedBlock) -> np.ndarray:
        block = predicted.block
        if self.positive is None:
            return block.labels
        self._found.update(np.unique(block.labels).tolist())
        return self.positive.transform_ids(self.predictor.table, block.labels, block.label_start)

    def _margins_of(self, predicted: PredictedBlock, codes: np.ndarray) -> np.ndarray:
        outputs = predicted.outputs
        if self._norms is not None:
            with naming_bad_rows(predicted.rows):
                lengths = self.predictor.learner.fitted.row_lengths(predicted.rows)
            outputs = divided(divided(outputs, self._norms), lengths[:, np.newaxis])
        return margins_of(outputs, codes)

    def _shares(self, right: float) -> dict[str, Any]:
        shares: dict[str, Any] = {"accuracy": right, "error": 1 - right}
        if self.least is not None:
            n = self.n_accepted
            shares["rejected"], shares["coverage"] = self.n_rows - n, n / self.n_rows
            shares["accepted_error"] = None if not n else 1 - self.n_accepted_right / n
        return shares

    def _details(self) -> dict[str, Any]:
        confusion = [
            {"label": self.labels[actual], "predicted": self.labels[answers], "rows": count}
            for (actual, answers), count in sorted(self.confusion.items())
        ]
        margins = None if self.margins is None else _margin_figures(self.margins)
        return {"confusion": confusion, "margins": margins}


class LabelEvaluation(Evaluation):
    """Evaluation of a model that predicts any number of labels per row.

    A row with a label that is not a class of the model never counts as correct.
    """

    def _add(self, predicted: PredictedBlock) -> None:
        block, answers, n_labels = predicted.block, predicted.codes, len(self.labels)
        assert isinstance(answers, Positives)
        assert block.label_start is not None
        n_texts = len(self.predictor.table.texts)
        actual = label_sets(block.labels.astype(np.int64), block.label_start, n_texts)
        known = actual.labels < n_labels
        self._unknown.update(actual.labels[~known].tolist())
        right, exact = agreement(actual, answers, n_labels)
        rows = np.repeat(np.arange(block.n_rows), np.diff(actual.starts))
        having = np.zeros((block.n_rows, n_labels), dtype=bool)
        having[rows[known], actual.labels[known]] = True
        self._add_probabilities(predicted, having)
        self._count(exact, right, actual.labels[known], answers.labels)

    def _shares(self, right: float) -> dict[str, float]:
        n_right, n_actual, n_predicted = self.counts.sum(axis=1).tolist()
        wrong = (n_actual + n_predicted - 2 * n_right) / (self.n_rows * len(self.labels))
        return {"subset_accuracy": right, "hamming_loss": wrong}


def _margin_figures(margins: list[np.ndarray]) -> dict[str, Any]:
    """Return the smallest margin, the largest one, and the quantiles in `SHARES`."""
    values = np.concatenate(margins)
    at = np.quantile(values, SHARES, method="inverted_cdf").tolist()
    quantiles = [{"share": share, "margin": x} for share, x in zip(SHARES, at, strict=True)]
    return {"least": float(values.min()), "quantiles": quantiles, "largest": float(values.max())}


def _scores(counts: np.ndarray) -> np.ndarray:
    """Return precision, recall and F1 of each class, shape (3, n_classes).

    A score whose denominator is 0 is 0.
    """
    right, rows, predicted = counts.astype(np.float64)
    sums = np.array([predicted, rows, rows + predicted])
    return divided(np.array([right, right, 2 * right]), sums)
