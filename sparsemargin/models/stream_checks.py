"""Messages about parameters that do not support streams or several labels per row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, NoReturn

import numpy as np

from sparsemargin._engine.first_order.prior import NaiveBayesPrior
from sparsemargin.models.fitted.state import Attributes
from sparsemargin.models.inputs.rows import Rows
from sparsemargin.models.inputs.training_set import Targets
from sparsemargin.models.kernels import Kernel, Precomputed
from sparsemargin.models.shared_parameters import SharedParameters

#: Error message about a precomputed kernel.
PRECOMPUTED = (
    "kernel='precomputed' needs the kernel of all pairs of rows, which no stream can know. Call "
    "fit, or pass the kernel as a function."
)


class StreamChecks(SharedParameters, Attributes):
    """Base class of the learners with the messages for parameters of all algorithms."""

    #: Name of the scikit-learn class of this learner, for messages and model files.
    classifier: ClassVar[str]

    # This is a parameter of some of the linear algorithms only.
    standardize: ClassVar[bool] = False

    @abstractmethod
    def check_parameters(self) -> None:
        """Raise a ValueError if a parameter is invalid."""

    @property
    @abstractmethod
    def is_linear(self) -> bool:
        """True without a kernel."""

    @property
    @abstractmethod
    def kernel_object(self) -> Kernel:
        """The kernel; for ``"linear"``, the polynomial of degree 1."""

    #: True if `prior_of` needs the first rows of a stream.
    counts_first_rows = False

    def prior_of(
        self, rows: Rows, targets: Targets, classes: np.ndarray, counted: np.ndarray | None
    ) -> NaiveBayesPrior | None:
        """Return the counts of checked rows that determine initial variances; None if the learner
        does not need them. `counted` selects rows; None: all."""
        return None

    def refuse_multilabel(self) -> NoReturn:
        """Raise a ValueError that describes how to train on several labels per row."""
        how = "" if self.is_linear else f" with kernel={self.kernel!r}"
        raise ValueError(
            f"{self.classifier}{how} learns from rows of one class each, and y may have several "
            "labels a row. Fit a model for each: "
            "sklearn.multiclass.OneVsRestClassifier(model).fit(X, Y), Y being an indicator; from "
            "files with positive=LABEL."
        )

    def refuse_standardize(self, name: str, instead: str) -> NoReturn:
        """Raise a ValueError about a parameter that does not allow `standardize`."""
        raise ValueError(
            "standardize=True needs one weight vector per class, and a model with "
            f"{name}={getattr(self, name)!r} has none. Pass {name}={instead}, or "
            "standardize=False and scikit-learn's StandardScaler in front of the classifier."
        )

    def check_streams(self, *, grows: bool) -> None:
        """Raise a ValueError if these parameters do not support training on a stream of rows, with
        memory that does not grow with its length. `grows` is True if the number of features is not
        known in advance."""
        self.check_parameters()
        faults = " ".join(self._stream_faults(grows))
        if faults:
            raise ValueError(faults)

    def _stream_faults(self, grows: bool) -> Iterator[str]:
        """Yield a message with a remedy for each parameter that does not support streams."""
        if self.hypothesis in ("vote", "random"):
            yield self._fault("hypothesis", "keeps a log of all corrections", "'average'")
        if self.max_corrections is not None:
            yield self._fault("max_corrections", "ends a fit, not a stream", "None")
        if self.max_iter is not None and self.max_iter % 1:
            yield self._fault("max_iter", "ends within rows not yet counted", "a whole number")
        if self.p == "log" and grows:
            yield "p='log' needs the number of features: pass n_features, or hash_bits."
        yield from self._kernel_faults(grows)

    def _kernel_faults(self, grows: bool) -> Iterator[str]:
        """Yield the messages of `_stream_faults` about the parameters of the kernel."""
        yield from self._needs_of_all_rows()
        if not self.is_linear and getattr(self.kernel_object, "gamma", None) == "auto" and grows:
            yield "gamma='auto' needs the number of features: pass n_features, or hash_bits."

    def _needs_of_all_rows(self) -> Iterator[str]:
        """Yield the messages of `_stream_faults` about parameters that depend on all rows."""
        if self.standardize:
            yield (
                "standardize=True needs the means and deviations of all rows, which no stream can "
                "know. Call fit, or pass standardize=False and scale the rows with "
                "StandardScaler.partial_fit of scikit-learn."
            )
        kernel = None if self.is_linear else self.kernel_object
        if isinstance(kernel, Precomputed):
            yield PRECOMPUTED
        # A model that resumes training has stored its gamma.
        if getattr(kernel, "gamma", None) == "scale" and self._learned is None:
            yield (
                "gamma='scale' needs the variance of all rows, which no stream can know. Pass "
                "gamma=0.1, say, or gamma='auto' to the kernel."
            )

    def _fault(self, name: str, why: str, instead: str) -> str:
        return (
            f"{name}={getattr(self, name)!r} {why}, and a stream is learned in memory that doesn't "
            f"grow with its rows. Pass {name}={instead}, or load the file and fit: "
            "fit_csr(*load_svmlight(path), ...)."
        )
