"""How good a model of many labels is on files."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin.evaluation._files import Evaluation
from sparsemargin.evaluation._label_counts import SetCounts
from sparsemargin.io.predict import PredictedBlock
from sparsemargin.io.sources import Source
from sparsemargin.models import Learner
from sparsemargin.models.labels import label_sets


class LabelEvaluation(Evaluation):
    """What comes of predictions by a model whose rows may have any number of labels.

    Parameters
    ----------
    learner : Learner
    sources : list of Source
    **how
        As for `Evaluation`.

    Attributes
    ----------
    sets : SetCounts
        A row with a label that the model doesn't know is none with all its labels told.
    """

    def __init__(self, learner: Learner, sources: list[Source], **how: Any) -> None:
        super().__init__(learner, sources, multilabel=True, **how)
        self.sets = SetCounts(len(self.labels))

    def _count(self, predicted: PredictedBlock) -> None:
        block, told = predicted.block, predicted.codes
        assert isinstance(told, Positives)
        assert block.label_start is not None
        n_known = len(self.predictor.table.texts)
        own = label_sets(block.labels.astype(np.int64), block.label_start, n_known)
        self._unknown.update(own.labels[own.labels >= len(self.labels)].tolist())
        self.sets.add(own, told)

    def _check(self) -> None:
        if self._unknown and not self.sets.counts.rows.any():
            self._refuse_labels()

    def figures(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        sets = self.sets
        return {
            "rows": sets.n_rows,
            "mistakes": sets.n_rows - sets.n_exact,
            "subset_accuracy": sets.n_exact / sets.n_rows,
            "hamming_loss": sets.hamming_loss,
            **sets.counts.averages(),
            "classes": self._class_figures(sets.counts),
            "unknown_labels": self._unknown_figures(),
        }
