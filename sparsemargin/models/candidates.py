"""The candidates for the default algorithm, and their numbers of epochs."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from sparsemargin.models import ALGORITHMS, Algorithm, Learner

#: Training error above which AROW is trained for more epochs, and the minimum number of trials
#: (rows times epochs) that it then makes.
UNLEARNED, _ENOUGH_TRIALS = 0.1, 3000

# Numbers of rows of the rarer class below which AROW runs one and two more epochs.
_RARE = 500, 100


class Candidate(NamedTuple):
    """An algorithm, its non-default parameters, and the minimum numbers of epochs and trials if
    `max_iter` is not given."""

    algorithm: Algorithm
    settings: dict[str, Any]
    epochs: int
    trials: int

    def learner(self, params: Mapping[str, Any]) -> Learner:
        """Return the candidate's learner with additional parameters."""
        kind, fixed = ALGORITHMS[self.algorithm]
        return kind(**{**fixed, **self.settings, **params})

    @property
    def standardizes(self) -> bool:
        """True if the candidate is trained on standardized features."""
        return "standardize" in self.settings

    @property
    def without_standardization(self) -> dict[str, bool]:
        """The additional parameters for rows that are standardized already."""
        return {"standardize": False} if self.standardizes else {}

    @property
    def suits_noise(self) -> bool:
        """True if the candidate suits data with label noise or overlapping classes."""
        return "max_loss" in self.settings

    def epochs_of(self, n_rows: int, counts: np.ndarray | None) -> int:
        """Return the number of epochs. `counts` are the numbers of rows of the classes, or None for
        multilabel rows. AROW gets more epochs for more than two classes or a rare class."""
        least = self.epochs
        many = counts is None or len(counts) > 2
        if self.algorithm == "arow" and many:
            least += 1
        elif self.algorithm == "arow" and counts is not None:
            least += sum(int(counts.min()) < rare for rare in _RARE)
        return max(least, ceil(self.trials / max(1, n_rows)))

    def epochs_if_unlearned(self, n_rows: int) -> int:
        """Return the minimum number of epochs of AROW if its training error is above `UNLEARNED`:
        at least `_ENOUGH_TRIALS` trials are made. Return 0 for other algorithms."""
        return ceil(_ENOUGH_TRIALS / max(1, n_rows)) if self.algorithm == "arow" else 0


AROW = Candidate("arow", {}, 1, 1000)
PRIOR = Candidate("arow", {"prior": "naive_bayes"}, 1, 1000)
# The algorithm for words, word pairs and character n-grams of texts. On messages, questions,
# reviews, languages and documentation, the error is lower after two epochs than after one.
OF_TEXTS = Candidate("arow", {"prior": "naive_bayes"}, 2, 1000)
SECOND_ORDER = Candidate("so", {}, 5, 3000)


def _p_norm(n_features: int) -> Candidate:
    return Candidate("pnorm", {"p": float(max(2.0, 2 * log(max(2, n_features))))}, 5, 3000)


def others(n_features: int, *, sparse: bool, dense: bool) -> list[Candidate]:
    """Return the candidates that may replace the default. Only `dense` rows are standardized."""
    standardized = [
        Candidate("arow", {"standardize": True}, 1, 1000),
        Candidate("so", {"standardize": True}, 5, 3000),
    ]
    return [
        # This candidate suits data with label noise or overlapping classes.
        Candidate("arow", {"r": 1.0, "max_loss": 0.5}, 1, 1000),
        # This candidate suits data with few informative features among very many.
        _p_norm(n_features),
        # This candidate suits data with correlated features. It is the slowest one.
        *([] if sparse else [SECOND_ORDER]),
        # These candidates suit features of unequal scale.
        *(standardized if dense else []),
    ]


def for_few_rows(n_features: int, *, whole: bool) -> list[Candidate]:
    """Return the candidates that may replace the default on fewer than 500 dense rows. In a stream
    (not `whole`), features can't be standardized.

    `a` and `r` are larger than the defaults. The steps are then smaller, because few rows are
    repeated in many epochs.
    """
    standardized = [
        Candidate("so", {"a": 4.0, "standardize": True}, 5, 3000),
        Candidate("arow", {"r": 4.0, "standardize": True}, 1, 1000),
    ]
    return [*(standardized if whole else []), _p_norm(n_features)]
