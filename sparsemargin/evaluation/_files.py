"""How good a model is on files, in memory that does not depend on their length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from sparsemargin._engine.kernel_functions import PrecomputedKernel
from sparsemargin.evaluation._confusion import Confusion
from sparsemargin.evaluation._quantiles import Quantiles
from sparsemargin.evaluation._unit_margins import UnitMargins
from sparsemargin.io.labels import LabelTable, OneAgainstTheRest, label_text, number_of
from sparsemargin.io.predict import PredictedBlock, Predictor
from sparsemargin.io.sources import Source
from sparsemargin.learners import Learner

#: Of the margins, shares of the rows that have none larger.
SHARES = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]


def _has_margins(learner: Learner) -> bool:
    """Whether outputs can be divided by what lengths there are, or are shares of votes."""
    precomputed = isinstance(getattr(learner._space, "kernel", None), PrecomputedKernel)
    return learner.hypothesis != "random" and (learner.hypothesis == "vote" or not precomputed)


class Evaluation:
    """What comes of a model's predictions for labelled files.

    Parameters
    ----------
    learner : Learner
    sources : list of Source
    positive : str, default=None
        The label that class 1 of two stands for, against all others.
    zero_based, n_threads
        As for `Predictor`.

    Attributes
    ----------
    confusion : Confusion
    margins : Quantiles or None
        Of the rows whose class the model knows; None: there are no margins.
    unknown : Counter
        Rows of each label that the model doesn't know.

    Raises
    ------
    ValueError
        If `positive` is given and the model doesn't have two classes, or if files can't tell its
        classes apart.
    """

    def __init__(
        self,
        learner: Learner,
        sources: list[Source],
        *,
        positive: str | None = None,
        zero_based: bool | Literal["auto"] = "auto",
        n_threads: int = 1,
    ) -> None:
        classes = learner.classes_
        if positive is not None and len(classes) != 2:
            raise ValueError(
                f"positive={positive!r} needs a model of two classes; this one has {len(classes)}."
            )
        self.positive = None if positive is None else OneAgainstTheRest(positive)
        # The classes come first, so that a label's number is the place of its class.
        self.labels = [label_text(label) for label in classes.tolist()]
        table = LabelTable(self.labels, [number_of(label) for label in self.labels])
        if len(table.texts) < len(classes):
            raise ValueError(
                f"Some of the model's classes, {', '.join(self.labels)}, are equal as numbers, by "
                "which labels in files are told apart."
            )
        self.predictor = Predictor(
            learner, sources, zero_based=zero_based, multilabel=positive is not None, table=table,
            n_threads=n_threads,
        )  # fmt: skip
        self.confusion = Confusion(len(classes))
        has_margins = _has_margins(learner)
        self.margins = Quantiles() if has_margins else None
        self._unit_margins = UnitMargins(learner) if has_margins else None
        self._unknown: Counter[int] = Counter()
        # Ids of labels that rows have: the table has those of the classes in any case.
        self._found: set[int] = set()

    def run(self, report: Callable[[PredictedBlock], Any] | None = None) -> None:
        """Predict all rows, telling `report` of each block.

        Raises
        ------
        OSError, ValueError
            If a file can't be read, or has no rows with a label that the model has learned, or
            none with the label `positive`.
        """
        n_rows = 0
        for predicted in self.predictor.blocks():
            self._count(predicted)
            n_rows += predicted.block.n_rows
            if report is not None:
                report(predicted)
        if not n_rows:
            raise ValueError(
                f"{self.predictor.corpus.names} has no rows. svmlight lines are 'label index:value "
                "index:value ...'."
            )
        self._check_positive()
        if not self.confusion.n_rows:
            known, found = (", ".join(list(labels)[:10]) for labels in (self.labels, self.unknown))
            raise ValueError(
                f"{self.predictor.corpus.names} has none of the labels that the model has learned, "
                f"{known}, but others: {found}. A model that tells one label from all others needs "
                "that one as positive."
            )

    def _check_positive(self) -> None:
        """Refuse a label that no row has: it may be misspelt."""
        if self.positive is None:
            return
        table = self.predictor.table
        if table.find(self.positive.positive) not in self._found:
            texts = [table.texts[i] for i in sorted(self._found)]
            known = ", ".join(texts[:10]) + ", ..." * (len(texts) > 10)
            raise ValueError(
                f"{self.predictor.corpus.names}: no row has the label "
                f"positive={self.positive.positive!r}. There are: {known}."
            )

    @property
    def unknown(self) -> Counter[str]:
        texts = self.predictor.table.texts
        return Counter({texts[i]: count for i, count in self._unknown.items()})

    def _count(self, predicted: PredictedBlock) -> None:
        codes = self._codes(predicted)
        known = codes < self.confusion.n_classes
        if not known.all():
            self._unknown.update(codes[~known].tolist())
        self.confusion.add(codes[known], predicted.codes[known])
        if self._unit_margins is not None and self.margins is not None:
            places = np.where(known, codes, 0)
            margins = self._unit_margins.of_rows(predicted.rows, predicted.outputs, places)
            self.margins.add(margins[known])

    def _codes(self, predicted: PredictedBlock) -> np.ndarray:
        block = predicted.block
        if self.positive is None:
            return block.labels
        self._found.update(np.unique(block.labels).tolist())
        return self.positive.of_rows(self.predictor.table, block.labels, block.label_start)

    def figures(self) -> dict[str, Any]:
        """All of it, as JSON can hold it; shares are None where there are no rows to share."""
        confusion, n_rows = self.confusion, self.confusion.n_rows
        accuracy = confusion.n_right / n_rows if n_rows else None
        return {
            "rows": n_rows,
            "mistakes": n_rows - confusion.n_right,
            "accuracy": accuracy,
            "error": None if accuracy is None else 1 - accuracy,
            # Each row has one label and one prediction, so what is missed here is taken there.
            "micro_f1": accuracy,
            "macro_f1": confusion.macro_f1() if n_rows else None,
            "classes": self._class_figures(),
            "confusion": self._confusion_figures(),
            "margins": self._margin_figures(),
            "unknown_labels": [
                {"label": label, "rows": count} for label, count in self.unknown.most_common()
            ],
        }

    def _class_figures(self) -> list[dict[str, Any]]:
        columns = self.confusion.scores()
        return [
            {"label": label, **dict(zip(columns._fields, values, strict=True))}
            for label, *values in zip(self.labels, *(c.tolist() for c in columns), strict=True)
        ]

    def _confusion_figures(self) -> list[dict[str, Any]]:
        return [
            {"label": self.labels[own], "predicted": self.labels[other], "rows": count}
            for (own, other), count in sorted(self.confusion.pairs.items())
        ]

    def _margin_figures(self) -> dict[str, Any] | None:
        if self.margins is None or not self.margins.n:
            return None
        values = self.margins.at(SHARES).tolist()
        return {
            "least": self.margins.least,
            "quantiles": [
                {"share": share, "margin": value}
                for share, value in zip(SHARES, values, strict=True)
            ],
            "largest": self.margins.largest,
        }
