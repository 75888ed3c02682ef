"""What learners with a kernel share: its parameters, and what is read off the pool of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from sparsemargin._engine.fitting.task import Task
from sparsemargin._engine.kernel.functions import (
    CallableKernel,
    Kernel,
    KernelName,
    PolyKernel,
    PrecomputedKernel,
    RBFKernel,
    keeps_zeros,
)
from sparsemargin.models._learner import Learner
from sparsemargin.models.parameters import CALLABLE, declared, integer, one_of, parameter, real

#: What a feature takes while products of sparse rows are worked out, by label, at least.
BYTES_PER_FEATURE = 4


def refuse_precomputed() -> NoReturn:
    """Refuse to learn from rows whose kernel with all others is not at hand."""
    raise ValueError(
        "kernel='precomputed' needs the kernel of all pairs of rows, which partial_fit can't know. "
        "Call fit, or pass the kernel as a function."
    )


@declared
class KernelLearner(Learner):
    """Base of the learners whose dot products a kernel can take the place of."""

    kernel: KernelName | Callable[[Any, Any], Any] = parameter(
        "linear",
        (one_of(get_args(KernelName)), CALLABLE),
        'What takes the place of the dot products, for p = 2. ``"linear"``: nothing does; '
        '``"poly"``: ``(gamma x.z + coef0)**degree``; ``"rbf"``: ``exp(-gamma |x - z|^2)``; '
        '``"polyrbf"``: ``(1 + exp(-gamma |x - z|^2))**degree`` (Gentile 2001, section 4.3); '
        '``"precomputed"``: X is the kernel of all pairs of rows in `fit`, and of the rows to '
        "predict with those in `predict`; or a function of two matrices, ndarrays, or `csr_array` "
        "where X was sparse, to the ndarray of shape (n_rows, n_other_rows). An intercept adds the "
        "square of `intercept_scaling` to it, and norms of rows are those in feature space. All "
        "labels share one pool of rows; a trial costs one kernel row, and the pool takes for each "
        "row its entries (zeros too, where every fourth is not 0 or features are few) and, for "
        "algorithms of first order, 16 bytes a label.",
        structural=True,
    )
    degree: int = parameter(
        3, integer(1, 1000), 'Of ``"poly"`` and ``"polyrbf"``.', structural=True
    )
    gamma: float | Literal["scale", "auto"] = parameter(
        "scale",
        (one_of(["scale", "auto"]), real(0)),
        'Of ``"poly"``, ``"rbf"`` and ``"polyrbf"``; ``"scale"``: ``1 / (n_features * X.var())``, '
        '``"auto"``: ``1 / n_features``. In the papers\' terms ``1 / (2 sigma**2)`` for a Gaussian '
        "of width sigma, ``1 / s`` for greys divided by the scale s.",
        structural=True,
    )
    coef0: float = parameter(
        0.0, real(0, closed="left"), 'Added to ``gamma x.z``, of ``"poly"``.', structural=True
    )

    @property
    def _is_linear(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "linear"

    @property
    def _takes_gamma(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel in ("poly", "rbf", "polyrbf")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self._is_linear and self.p != 2:
            raise ValueError(
                f"kernel={self.kernel!r} needs p=2, whose dot products a kernel takes the place "
                f"of; got p={self.p!r}. Pass p=2 or kernel='linear'."
            )

    def _open(self, rows: Any) -> None:
        self._check_needs_no_rows()
        super()._open(rows)

    def _recall_rows(self, task: Task, *others: Any) -> bool:
        same = super()._recall_rows(task, *others)
        kernel = getattr(self._space, "kernel", None)
        if isinstance(kernel, PrecomputedKernel):
            if self._space.trials and not same:
                raise ValueError(
                    "warm_start with kernel='precomputed' goes on with the very X and y of the "
                    "last fit; these are others. Pass warm_start=False."
                )
            kernel.check(task.rows)
        return same

    def _learn_stream(self, task: Task, order: np.ndarray | None = None) -> int | None:
        if not self._space.tells_lengths:
            refuse_precomputed()
        return super()._learn_stream(task, order)

    def _make_kernel(self, rows: Any) -> Kernel:
        """The kernel, for rows like these."""
        bias, dense = self._bias(rows), not self._grows and keeps_zeros(rows)
        if callable(self.kernel):
            given = getattr(self, "_sparse_rows", True)
            return CallableKernel(bias, dense=not given, function=self.kernel)
        if self.kernel == "precomputed":
            return PrecomputedKernel(bias)
        if self._is_linear:
            return PolyKernel(bias, dense=dense, degree=1, gamma=1.0, coef0=0.0)
        self.gamma_ = self._find_gamma(rows)
        if self.kernel == "rbf":
            return RBFKernel(bias, dense=dense, gamma=self.gamma_)
        if self.kernel == "polyrbf":
            return RBFKernel(bias, dense=dense, gamma=self.gamma_, degree=int(self.degree))
        degree, coef0 = int(self.degree), float(self.coef0)
        return PolyKernel(bias, dense=dense, degree=degree, gamma=self.gamma_, coef0=coef0)

    def _check_needs_no_rows(self) -> None:
        """Refuse a kernel that is known only when all rows are."""
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            refuse_precomputed()
        known = hasattr(self, "gamma_")  # to a model that goes on
        if self._takes_gamma and self.gamma == "scale" and not known:
            raise ValueError(
                "gamma='scale' needs the variance of all rows, which partial_fit can't know. Pass "
                "gamma as a number, or 'auto'."
            )

    def _check_streams(self, *, grows: bool) -> None:
        super()._check_streams(grows=grows)
        self._check_needs_no_rows()
        if self._takes_gamma and self.gamma == "auto" and grows:
            raise ValueError(
                "gamma='auto' is 1 over the number of features: pass n_features, or hash_bits."
            )

    def _find_gamma(self, rows: Any) -> float:
        if self.gamma == "auto":
            return 1.0 / rows.n_features
        if self.gamma != "scale":
            return float(self.gamma)
        variance = _variance(rows)
        return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0

    # ------------------------------------------------------------------------ fitted attributes

    def _with_kernel(self, name: str) -> None:
        """Refuse what only a model with a kernel has."""
        if not self._has_pool:
            raise AttributeError(f"{name} is of models with a kernel; this one has coef_.")

    def _check_linear(self, name: str) -> None:
        if self._has_pool:
            raise AttributeError(
                f"A model with a kernel has no {name}: its vectors lie in feature space. It has "
                "support_ and dual_coef_."
            )

    def _weights(self) -> np.ndarray:
        self._check_linear("coef_")
        return super()._weights()

    @property
    def intercept_(self) -> np.ndarray:
        """Intercept of each label, shape (1,) or (n_classes,); zero without `fit_intercept`."""
        if not self._has_pool:
            return super().intercept_
        self._check_has_weights()
        intercepts: np.ndarray = self._space.coefficients().sum(axis=1) * self._space.bias**2
        return intercepts

    @property
    def support_(self) -> np.ndarray:
        """Rows of the pool, in the order in which they joined it: an int64 array of shape
        (n_support,). In `fit`, rows of its X; in `partial_fit`, and in a fit under `warm_start`
        with other rows, counted on from call to call."""
        self._with_kernel("support_")
        return self._space.origin.copy()

    @property
    def dual_coef_(self) -> np.ndarray:
        """What each row of the pool is multiplied by in the hypothesis, shape (n_labels,
        n_support): outputs are ``dual_coef_ @ K(support, x)`` plus the intercept."""
        self._with_kernel("dual_coef_")
        self._check_has_weights()
        return self._space.coefficients()

    @property
    def n_support_(self) -> int | np.ndarray:
        """Rows that a label's hypothesis is made of: an int for two classes, else an array of
        shape (n_classes,)."""
        self._with_kernel("n_support_")
        return self._by_label(self._space.count_support())

    @property
    def pool_bytes_(self) -> int:
        """Bytes of the pool's rows and coefficients, and of the matrices over them if there are
        any."""
        self._with_kernel("pool_bytes_")
        return self._space.nbytes


def _variance(rows: Any) -> float:
    """Of all entries, zeros included, as scikit-learn's SVC has it."""
    n = (len(rows.indptr) - 1) * rows.n_features
    mean = float(np.sum(rows.data, dtype=np.float64)) / n
    rest = rows.data - np.float64(mean)
    return float(np.dot(rest, rest) + (n - len(rest)) * mean * mean) / n
