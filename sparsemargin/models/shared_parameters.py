"""Parameters of all algorithms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from sparsemargin._engine.first_order.spaces import MAX_P
from sparsemargin.models.kernels import Kernel, KernelName
from sparsemargin.models.parameters import (
    CALLABLE,
    FLAG,
    MAPPING,
    NONE,
    RANDOM_STATE,
    Limit,
    declared,
    integer,
    one_of,
    parameter,
    real,
)

Hypothesis = Literal["last", "average", "vote", "random"]


def standardize_parameter() -> Any:
    """Declare the parameter `standardize`, which some of the linear algorithms have."""
    return parameter(
        False,
        FLAG,
        "Whether features are standardized in training: the mean is subtracted, and the result is "
        "divided by the standard deviation, both of the training rows with their sample weights. "
        "Features that do not vary are left out. The rows of X, outputs, `coef_` and `intercept_` "
        "stay on the scale of X. Margins, norms and `theta_` are those of standardized rows. It "
        "suits dense features of unequal scale. Training on a sparse X takes the memory of a dense "
        "one. `fit` determines the means and deviations; `partial_fit` and `warm_start` keep them.",
        structural=True,
    )


@declared
class SharedParameters:
    """Parameters of all algorithms; some algorithms turn them into constants."""

    p: float | Literal["log"] = parameter(
        2.0,
        (real(2, MAX_P, "both", remark=" (p > 2 ln n_features gains nothing)"), one_of(["log"])),
        'p of the norm of the instances; ``"log"`` is ``max(2, 2 ln n_features)``. The norm of the '
        "weights is the dual norm. Large p is better if few features are relevant.",
        structural=True,
    )
    hypothesis: Hypothesis = parameter(
        "average",
        one_of(get_args(Hypothesis)),
        "The hypothesis used for prediction: the average of all weight vectors, each weighted by "
        "the number of trials it survived; the last vector; the weighted majority vote of all "
        "vectors; or the vector after a random trial (Freund & Schapire 1999, section 5).",
        structural=True,
    )
    normalize_hypotheses: bool = parameter(
        False,
        FLAG,
        "Whether each weight vector is divided by its dual norm before averaging or voting.",
        structural=True,
    )
    max_iter: float | None = parameter(
        5,
        (real(0), NONE),
        "Number of epochs; None: until an epoch makes no correction. A fraction ends within an "
        "epoch. With None, a fit to data that are not separable does not end. It reports its "
        "progress every ten seconds. A `ConvergenceWarning` is issued if a fit ends before it "
        "reaches the requested margin.",
    )
    max_corrections: int | None = parameter(
        None,
        (integer(1), NONE),
        "Stop after this number of corrections, including those of earlier fits under "
        "`warm_start`. With more than two classes, each vector stops separately, and its average "
        "does not count later trials.",
    )
    early_stopping: bool = parameter(
        False,
        FLAG,
        "Whether training stops before `max_iter` epochs if `n_iter_no_change` epochs in a row "
        "did not have fewer corrections than the best epoch so far. No rows are held out, and the "
        "model is that of the last epoch.",
    )
    n_iter_no_change: int = parameter(
        5, integer(1), "Number of epochs without fewer corrections before `early_stopping` stops."
    )
    shuffle: bool = parameter(
        True,
        FLAG,
        "Whether rows are shuffled before every epoch; False: the given order.",
    )
    random_state: Any = parameter(
        None,
        (integer(0, 2**32 - 1), NONE, RANDOM_STATE),
        'Seed of the shuffling and of ``hypothesis="random"``.',
    )
    fit_intercept: bool = parameter(
        True,
        FLAG,
        "Whether a constant coordinate of value `intercept_scaling` is appended to every instance.",
        structural=True,
    )
    intercept_scaling: float | Literal["auto"] = parameter(
        "auto",
        (real(0), one_of(["auto"])),
        'Value of the coordinate for the intercept; ``"auto"``: a third of the root mean square '
        "p-norm of the first 100 rows (in `partial_fit`, of its first call), or 1/3 if they are "
        'all zero. With a kernel, ``"auto"`` means no intercept.',
        structural=True,
    )
    class_weight: Any = parameter(
        None,
        (one_of(["balanced"]), MAPPING, NONE),
        "Weights of the classes; only ratios matter, because weights are divided by their harmonic "
        "mean. The step of a correction is multiplied by the cube root of the row's weight (AROW "
        "divides r by the square root). With steps proportional to the weights, rare classes would "
        "be predicted far too often, and the error on the other classes would be much higher. With "
        "more than two classes and in multilabel problems, the weights apply to the positive rows "
        "of each class, and negative rows have weight 1. "
        '``"balanced"``: inversely proportional to the number of rows of each class; in multilabel '
        "problems, to the numbers of positive and negative rows of each label that has both.",
    )
    warm_start: bool = parameter(
        False, FLAG, "Whether `fit` resumes from the model of the last fit."
    )
    n_jobs: int | None = parameter(
        None,
        (integer(high=-1), integer(1), NONE),
        "Number of threads, which train the vectors of different classes (each at least 8 vectors, "
        "or 16 of float32) and compute kernel rows; None: 1, -1: all processors. The model does "
        "not depend on it.",
    )
    verbose: int = parameter(
        0,
        (FLAG, integer(0)),
        "Whether progress is printed: a line for each of the first ten epochs, then a line every "
        "half second.",
    )
    kernel: KernelName | Kernel | Callable[[Any, Any], Any] = parameter(
        "linear",
        (
            one_of(get_args(KernelName)),
            Limit("an object of sparsemargin.kernels", Kernel),
            CALLABLE,
        ),
        'The kernel, which replaces dot products; it requires p = 2. ``"linear"``: dot products. '
        "Other kernels are objects of `sparsemargin.kernels`, which have the kernel's parameters "
        'and the limit of its pool of rows; ``"poly"``, ``"rbf"``, ``"polyrbf"`` and '
        '``"precomputed"`` are `Polynomial`, `RBF`, `PolynomialRBF` and `Precomputed` with their '
        "defaults, and a function f means ``Function(f)``. An intercept adds the square of "
        "`intercept_scaling` to the kernel. Norms of rows are those in feature space. All classes "
        "share one pool of rows. A trial costs one row of the kernel. For each of its rows, the "
        "pool stores the entries (including zeros if at least every fourth entry is not zero or if "
        "there are few features) and, except for the Higher- and Second-order Perceptron, 16 bytes "
        "per class.",
        structural=True,
    )
