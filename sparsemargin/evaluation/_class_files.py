"""How good a model that tells classes apart is on files."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin.evaluation._confusion import Confusion
from sparsemargin.evaluation._files import Evaluation
from sparsemargin.evaluation._quantiles import Quantiles
from sparsemargin.evaluation._unit_margins import UnitMargins
from sparsemargin.io.labels import OneAgainstTheRest, first_labels
from sparsemargin.io.predict import PredictedBlock
from sparsemargin.io.sources import Source
from sparsemargin.models import Learner

#: Of the margins, shares of the rows that have none larger.
SHARES = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]


def _has_margins(learner: Learner) -> bool:
    """Whether outputs can be divided by what lengths there are, or are shares of votes."""
    if learner.hypothesis in ("random", "vote"):
        return learner.hypothesis == "vote"
    return bool(learner._space.tells_lengths)


class ClassEvaluation(Evaluation):
    """What comes of predictions by a model whose rows have one class each.

    Parameters
    ----------
    learner : Learner
    sources : list of Source
    positive : str, default=None
        The label that class 1 of two stands for, against all others.
    **how
        As for `Evaluation`.

    Attributes
    ----------
    confusion : Confusion
    margins : Quantiles or None
        Of the rows whose class the model knows; None: there are no margins.

    Raises
    ------
    ValueError
        If `positive` is given and the model doesn't have two classes.
    """

    def __init__(
        self, learner: Learner, sources: list[Source], *, positive: str | None = None, **how: Any
    ) -> None:
        classes = learner.classes_
        if positive is not None and len(classes) != 2:
            raise ValueError(
                f"positive={positive!r} needs a model of two classes; this one has {len(classes)}."
            )
        self.positive = None if positive is None else OneAgainstTheRest(positive)
        super().__init__(learner, sources, multilabel=positive is not None, **how)
        self.confusion = Confusion(len(classes))
        has_margins = _has_margins(learner)
        self.margins = Quantiles() if has_margins else None
        self._unit_margins = UnitMargins(learner) if has_margins else None
        # Ids of labels that rows have: the table has those of the classes in any case.
        self._found: set[int] = set()

    def _check(self) -> None:
        self._check_positive()
        if not self.confusion.n_rows:
            self._refuse_labels()

    def _check_positive(self) -> None:
        """Refuse a label that no row has: it may be misspelt."""
        if self.positive is None:
            return
        table = self.predictor.table
        if table.find(self.positive.positive) not in self._found:
            texts = [table.texts[i] for i in sorted(self._found)]
            raise ValueError(
                f"{self.predictor.corpus.names}: no row has the label "
                f"positive={self.positive.positive!r}. There are: {first_labels(texts)}."
            )

    def _count(self, predicted: PredictedBlock) -> None:
        told = predicted.codes
        assert isinstance(told, np.ndarray)
        codes = self._codes(predicted)
        known = codes < self.confusion.n_classes
        if not known.all():
            self._unknown.update(codes[~known].tolist())
        self.confusion.add(codes[known], told[known])
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
        counts = confusion.counts()
        accuracy = confusion.n_right / n_rows if n_rows else None
        return {
            "rows": n_rows,
            "mistakes": n_rows - confusion.n_right,
            "accuracy": accuracy,
            "error": None if accuracy is None else 1 - accuracy,
            **(counts.averages() if n_rows else dict.fromkeys(counts.averages())),
            "classes": self._class_figures(counts),
            "confusion": self._confusion_figures(),
            "margins": self._margin_figures(),
            "unknown_labels": self._unknown_figures(),
        }

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
