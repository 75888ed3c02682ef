"""The probabilities that classifiers predict."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from sparsemargin.models.fitted.in_use import asks
from sparsemargin.models.fitted.outputs import finite_outputs, probabilities_of
from sparsemargin.models.fitted.probabilities import NO_OUTPUTS
from sparsemargin.models.inputs.rows import Rows
from sparsemargin.models.learner import Learner


class ProbabilityMixin(Learner):
    """Base class of the classifiers with their probabilities."""

    @abstractmethod
    def check_test_rows(self, X: Any) -> Rows:
        """Return X as checked rows with the features of the fitted model."""

    def check_probabilities(self) -> bool:
        """Return True if the model has probabilities; raise an AttributeError if it has none."""
        name, learned = type(self).__name__, self.state
        if learned is None:
            if not self.keeps_outputs:
                raise AttributeError(NO_OUTPUTS.format(name))
        elif not learned.tells_probabilities:
            raise AttributeError(learned.why_no_probabilities(name))
        return True

    @available_if(check_probabilities)
    @asks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probabilities of the classes of every row.

        The probabilities are fitted to outputs for rows on which the model had not been trained.
        After one epoch of `fit`, or after `partial_fit`, these are the outputs for up to 8,192 rows
        of the later half, computed just before the model was trained on each row. If `fit` makes
        several epochs, or has fewer than 500 rows, up to three models with the same settings are
        trained on parts of the rows, and their outputs for the other rows are used.

        Each label has a sigmoid (Platt's [1]_, with a separate slope for positive outputs). If each
        row has one class, the probabilities are the softmax of the logarithms of the sigmoids and
        of the outputs, each times a multiplier. All of this is fitted in the first call.

        If each row has one class, the class that `predict` returns has the largest probability.
        Rows are weighted by their `sample_weight`, not by the weight of their class.

        Parameters
        ----------
        X : {CSR matrix or array, other sparse matrix, array-like} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Each row sums to 1. In a multilabel model each label has its own probability, and rows
            need not sum to 1.

        Raises
        ------
        ValueError
            If X is invalid. The message names the place and a remedy.
        AttributeError
            If outputs are not kept with these parameters, or `fit` resumed under `warm_start`, or
            the model was trained more than once on the same rows, by calls of `partial_fit`.
            ``hasattr`` is then False. The message names a remedy.

        References
        ----------
        .. [1] J. Platt. Probabilistic outputs for support vector machines and comparisons to
           regularized likelihood methods. Advances in large margin classifiers, 1999.
        """
        outputs = finite_outputs(self.fitted, self.check_test_rows(X), self.n_threads())
        return probabilities_of(self.fitted, outputs)

    @available_if(check_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities, shape (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))
