"""The weights of classifiers, as scikit-learn's linear models show them."""

from __future__ import annotations

from operator import attrgetter
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn.utils.metaestimators import available_if

from sparsemargin.models.learner import Learner


class CoefficientMixin(Learner):
    """Base class of the classifiers with their weights."""

    @property
    def coef_(self) -> np.ndarray | csr_matrix:
        """Weights of the hypothesis, shape (1, n_features) or (n_classes, n_features).

        They are computed on first use after training. An average is divided by the number of
        trials. The result is CSR after `sparsify`, and if the dense weights of all labels would
        take more than half a gigabyte, so that the model holds them sparsely.
        """
        fitted = self.fitted
        coef = fitted.weights()[:, : self.n_features_in_]
        return csr_matrix(coef) if fitted.sparse_coef or issparse(coef) else coef

    @available_if(attrgetter("is_linear"))
    def sparsify(self) -> Self:
        """Return `coef_` as a CSR matrix from now on, until the next fit."""
        self.fitted.sparse_coef = True
        return self

    @available_if(attrgetter("is_linear"))
    def densify(self) -> Self:
        """Return `coef_` as a dense array again, unless the model holds the weights sparsely."""
        self.fitted.sparse_coef = False
        return self
