"""How good a model is on files, in memory that does not depend on their length."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from sparsemargin.evaluation._label_counts import LabelCounts
from sparsemargin.io.predict import PredictedBlock, Predictor
from sparsemargin.io.sources import Source
from sparsemargin.models import Learner
from sparsemargin.models.labels import LabelTable, first_labels


class Evaluation:
    """What comes of a model's predictions for labelled files; base of those by kind of model.

    Parameters
    ----------
    learner : Learner
    sources : list of Source
    multilabel, zero_based, n_threads, threshold, top_k
        As for `Predictor`.

    Attributes
    ----------
    labels : list of str
        The model's classes.
    unknown : Counter
        Rows of each label that the model doesn't know.

    Raises
    ------
    ValueError
        If files can't tell the model's classes apart.
    """

    def __init__(
        self,
        learner: Learner,
        sources: list[Source],
        *,
        multilabel: bool,
        zero_based: bool | Literal["auto"] = "auto",
        n_threads: int = 1,
        threshold: float | None = None,
        top_k: int | None = None,
    ) -> None:
        # The classes come first, so that a label's number is the place of its class.
        table = LabelTable.of_classes(learner.classes_)
        self.labels = list(table.texts)
        self.predictor = Predictor(
            learner, sources, zero_based=zero_based, multilabel=multilabel, table=table,
            n_threads=n_threads, threshold=threshold, top_k=top_k,
        )  # fmt: skip
        self._unknown: Counter[int] = Counter()

    def run(self, report: Callable[[PredictedBlock], Any] | None = None) -> None:
        """Predict all rows, telling `report` of each block.

        Raises
        ------
        OSError, ValueError
            If a file can't be read, or has no rows with a label that the model has learned.
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
        self._check()

    @abstractmethod
    def _count(self, predicted: PredictedBlock) -> None:
        """Take in what was predicted for a block of rows."""

    @abstractmethod
    def _check(self) -> None:
        """Refuse files whose labels are not the model's."""

    def _refuse_labels(self) -> None:
        known, found = first_labels(self.labels), first_labels(list(self.unknown))
        raise ValueError(
            f"{self.predictor.corpus.names} has none of the labels that the model has learned, "
            f"{known}, but others: {found}. A model that tells one label from all others needs "
            "that one as positive."
        )

    @property
    def unknown(self) -> Counter[str]:
        texts = self.predictor.table.texts
        return Counter({texts[i]: count for i, count in self._unknown.items()})

    @abstractmethod
    def figures(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""

    def _class_figures(self, counts: LabelCounts) -> list[dict[str, Any]]:
        columns = counts.scores()
        return [
            {"label": label, **dict(zip(columns._fields, values, strict=True))}
            for label, *values in zip(self.labels, *(c.tolist() for c in columns), strict=True)
        ]

    def _unknown_figures(self) -> list[dict[str, Any]]:
        return [{"label": label, "rows": count} for label, count in self.unknown.most_common()]
