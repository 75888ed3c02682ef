"""Kernels, which replace the dot products of rows, as values of the parameter `kernel`."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, TypeVar, dataclass_transform

import numpy as np

from sparsemargin._engine.kernel import functions, user_kernels
from sparsemargin._engine.state import require
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.models.parameters import (
    CALLABLE,
    NONE,
    collected,
    declarations,
    documented,
    integer,
    one_of,
    parameter,
    real,
)

KernelName = Literal["linear", "poly", "rbf", "polyrbf", "precomputed"]

_KernelClass = TypeVar("_KernelClass", bound=type)


@dataclass_transform(frozen_default=True)
def _kernel(cls: _KernelClass) -> _KernelClass:
    """Decorate a kernel class so that its constructor and docstring have its parameters."""
    dataclass(frozen=True, repr=False)(cls)
    collected(cls)
    cls.__doc__ = documented(inspect.cleandoc(cls.__doc__ or ""), declarations(cls), Kernel)
    return cls


@collected
@dataclass(frozen=True, kw_only=True)
class Kernel:
    """Base class of the kernels."""

    max_support: int | None = parameter(
        None, (integer(1), NONE), "Maximum number of rows in the pool of a kernel. None: no limit."
    )
    when_full: Literal["error", "skip"] = parameter(
        "error",
        one_of(["error", "skip"]),
        'Behaviour if a row would join a full pool: ``"error"`` ends the fit with an error, '
        '``"skip"`` skips the trial and reports the number of skipped trials in a warning at the '
        "end.",
    )

    def __post_init__(self) -> None:
        for name, each in declarations(self).items():
            each.check(getattr(self, name), type(self).__name__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        require(state.keys() == declarations(self).keys(), "its kernel has other parameters")
        vars(self).update(state)
        self.__post_init__()

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in reversed(declarations(self))}
        known = declarations(self)
        changed = (f"{k}={v!r}" for k, v in values.items() if v != known[k].default)
        return f"{type(self).__name__}({', '.join(changed)})"

    @abstractmethod
    def for_model(self, bias: float, first: Beginning) -> functions.Kernel:
        """Return the engine's kernel for a new model with an intercept's coordinate `bias`."""


@collected
@dataclass(frozen=True, repr=False, kw_only=True)
class WithGamma(Kernel):
    """Base class of the kernels with a coefficient gamma."""

    gamma: float | Literal["scale", "auto"] = parameter(
        "scale",
        (one_of(["scale", "auto"]), real(0)),
        'Coefficient of the kernel; ``"scale"``: ``1 / (n_features * X.var())``, ``"auto"``: '
        "``1 / n_features``. In the notation of the papers, it is ``1 / (2 sigma**2)`` for a "
        "Gaussian of width sigma, and ``1 / s`` for grey values divided by the scale s.",
    )

    def gamma_for(self, rows: Any) -> float:
        """Return gamma as a number, computed from the rows if necessary."""
        if self.gamma == "auto":
            return 1.0 / rows.n_features
        if self.gamma != "scale":
            return float(self.gamma)
        variance = _variance(rows)
        return 1.0 / (rows.n_features * variance) if variance > 0 else 1.0


@_kernel
class Polynomial(WithGamma):
    """The kernel ``(gamma x.z + coef0)**degree``.

    {parameters}
    """

    degree: int = parameter(3, integer(1, 1000), "Degree of the polynomial.")
    _: KW_ONLY
    coef0: float = parameter(
        0.0, real(0, closed="left"), "Constant that is added to ``gamma x.z``."
    )

    def for_model(self, bias: float, first: Beginning) -> functions.Kernel:
        return functions.PolyKernel(
            bias, dense=_stores_zeros(first), degree=int(self.degree),
            gamma=self.gamma_for(first.rows), coef0=float(self.coef0),
        )  # fmt: skip


@_kernel
class RBF(WithGamma):
    """The Gaussian kernel ``exp(-gamma |x - z|^2)``.

    {parameters}
    """

    gamma: float | Literal["scale", "auto"] = parameter("scale")

    def for_model(self, bias: float, first: Beginning) -> functions.Kernel:
        return functions.RBFKernel(
            bias, dense=_stores_zeros(first), gamma=self.gamma_for(first.rows)
        )


@_kernel
class PolynomialRBF(WithGamma):
    """The kernel ``(1 + exp(-gamma |x - z|^2))**degree`` [1]_.

    {parameters}

    References
    ----------
    .. [1] C. Gentile. A new approximate maximal margin classification algorithm. Journal of
       Machine Learning Research 2, 2001: section 4.3.
    """

    degree: int = parameter(3, integer(1, 1000), "Degree of the polynomial.")

    def for_model(self, bias: float, first: Beginning) -> functions.Kernel:
        return functions.RBFKernel(
            bias, dense=_stores_zeros(first), gamma=self.gamma_for(first.rows),
            degree=int(self.degree),
        )  # fmt: skip


@_kernel
class Precomputed(Kernel):
    """Kernel values in place of rows.

    X contains the kernel of all pairs of rows in `fit`, and of the test rows with these rows in
    `predict`.

    {parameters}
    """

    def for_model(self, bias: float, first: Beginning) -> functions.Kernel:
        return user_kernels.PrecomputedKernel(bias)


@_kernel
class Function(Kernel):
    """A kernel that is computed by a function.

    Model files can't contain the function, because loading them runs no code. Pickles can.

    {parameters}
    """

    function: Callable[[Any, Any], Any] = parameter(
        None,
        CALLABLE,
        "Gets two matrices, ndarrays or, if X is sparse, `csr_array`, and returns an ndarray of "
        "shape (n_rows, n_other_rows).",
    )

    def for_model(self, bias: float, first: Beginning) -> functions.Kernel:
        return user_kernels.CallableKernel(bias, dense=not first.sparse, function=self.function)


#: The kernels by their short names.
NAMED: dict[str, type[Kernel]] = {
    "poly": Polynomial, "rbf": RBF, "polyrbf": PolynomialRBF, "precomputed": Precomputed
}  # fmt: skip

_LINEAR = Polynomial(1, gamma=1.0)


def kernel_of(kernel: str | Kernel | Callable[[Any, Any], Any]) -> Kernel:
    """Return the kernel for a value of the parameter `kernel`."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, type) and issubclass(kernel, Kernel):
        raise ValueError(
            f"kernel={kernel.__name__} is a class. Pass an object: kernel={kernel.__name__}()."
        )
    if callable(kernel):
        return Function(kernel)
    return _LINEAR if kernel == "linear" else NAMED[kernel]()


def _stores_zeros(first: Beginning) -> bool:
    return not first.grows and functions.keeps_zeros(first.rows)


def _variance(rows: Any) -> float:
    """Variance of all entries, including zeros, as in scikit-learn's SVC."""
    n = (len(rows.indptr) - 1) * rows.n_features
    mean = float(np.sum(rows.data, dtype=np.float64)) / n
    rest = rows.data - np.float64(mean)
    return float(np.dot(rest, rest) + (n - len(rest)) * mean * mean) / n
