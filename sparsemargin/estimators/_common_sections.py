"""The sections of the docstrings that all first-order classifiers share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type[Any])
_Method = TypeVar("_Method", bound=Callable[..., Any])

# In the order in which they are listed; a class lists those its constructor has.
_PARAMETERS = {
    "hypothesis": """\
    hypothesis : {"average", "last", "vote", "random"}, default={hypothesis}
        What predicts: the average of all weight vectors, each counted for the trials it lasted;
        the last one; their weighted majority vote; the one of a random moment (Freund & Schapire
        1999, section 5). {why hypothesis}
""",
    "normalize_hypotheses": """\
    normalize_hypotheses : bool, default={normalize_hypotheses}
        Whether each weight vector is divided by its dual norm before it counts.
""",
    "max_iter": """\
    max_iter : float or None, default={max_iter}
        Epochs, fractions included. None: until a pass makes no correction, which data that are
        not separable never reach{without soft margin}; such a fit says every ten seconds where
        it is, and Ctrl-C ends it with the model as it then is.
        {why max_iter}
""",
    "max_corrections": """\
    max_corrections : int or None, default={max_corrections}
        Stop learning after that many corrections, those of earlier fits under `warm_start`
        included; with many classes each label by itself, whose averages then count no further
        trials.
""",
    "tol": """\
    tol : float or None, default={tol}
        Stop where `margin_` is at least ``(1 - tol) * margin_upper_bound_``: a proven share of
        the largest margin there is. Needs ``hypothesis="last"``, whose vector the proof is for.
""",
    "shuffle": """\
    shuffle : bool, default={shuffle}
        Whether rows come in a new random order every epoch; False: in the given order.
""",
    "random_state": """\
    random_state : int, RandomState instance or None, default={random_state}
        Seed of the shuffling and of ``hypothesis="random"``.
""",
    "fit_intercept": """\
    fit_intercept : bool, default={fit_intercept}
        Whether a constant coordinate of value `intercept_scaling` is appended to every instance.
""",
    "intercept_scaling": """\
    intercept_scaling : float or "auto", default={intercept_scaling}
        Value of that coordinate. "auto": a tenth of the root mean square 2-norm of the first 100
        rows, of those of the first call to `partial_fit`, or 0.1 where these are zero; with a
        kernel there is no intercept then.
""",
    "soft_margin": """\
    soft_margin : float, default={soft_margin}
        Delta: every example gets a coordinate of its own of that value while learning, which
        makes any data separable (Freund & Schapire 1999, section 3.2).
""",
    "kernel": """\
    kernel : str or callable, default={kernel}
        What takes the place of the dot products, for p = 2: ``"linear"``: nothing does;
        ``"poly"``: ``(gamma x.z + coef0)**degree``; ``"rbf"``: ``exp(-gamma |x - z|^2)``;
        ``"polyrbf"``: ``(1 + exp(-gamma |x - z|^2))**degree`` (Gentile 2001, section 4.3);
        ``"precomputed"``: X is the kernel of all pairs of rows in `fit`, and of the rows to
        predict with those in `predict`; or a function of two matrices, ndarrays, or `csr_array`
        where X was sparse, to the ndarray of shape (n_rows, n_other_rows). An intercept adds the
        square of `intercept_scaling` to it, and norms of rows are those in feature space. All
        labels share one pool of rows; a trial costs one kernel row, and {kernel memory}
""",
    "degree": """\
    degree : int from 1 to 1000, default={degree}
        Of ``"poly"`` and ``"polyrbf"``.
""",
    "gamma": """\
    gamma : {"scale", "auto"} or float above 0, default={gamma}
        Of ``"poly"``, ``"rbf"`` and ``"polyrbf"``. ``"scale"``: ``1 / (n_features * X.var())``;
        ``"auto"``: ``1 / n_features``. In the papers' terms ``1 / (2 sigma**2)`` for a Gaussian of
        width sigma, ``1 / s`` for greys divided by the scale s.
""",
    "coef0": """\
    coef0 : float from 0, default={coef0}
        Of ``"poly"``.
""",
    "max_support": """\
    max_support : int or None, default={max_support}
        Rows that the pool may hold.
""",
    "when_full": """\
    when_full : {"error", "skip"}, default={when_full}
        What is done where a row would join a full pool: the fit ends in an error; or the trial is
        passed over, and a warning at the end says how many were.
""",
    "multi_class": """\
    multi_class : {"ovr", "joint"}, default={multi_class}
        How more than two classes are learned. ``"ovr"``: a vector for each, that tells its rows
        from the rest. ``"joint"``: one vector made of one for each class, and a correction moves
        those of the true class and of its strongest rival alone (Gentile 2001, section 5, item
        4): the instance is x at the place of the one and -x at that of the other, its p-norm
        ``2**(1/p)`` times that of x, its output the difference of theirs, and `n_corrections_`,
        `margin_` and `margin_upper_bound_` are single numbers; `class_weight` weighs the true
        class. For the average and the last vector, without kernel and soft margin; `n_jobs` has
        no effect. Two classes are learned by the lone vector either way: w at one place and -w at
        the other is the joint one, up to a factor, and for rows divided by their norms they make
        the same corrections.
""",
    "class_weight": """\
    class_weight : dict, "balanced" or None, default={class_weight}
        Multiplies the step for rows of each class. With more than two classes, and where rows may
        have several, each label's positive rows are so weighted, its negative ones weigh 1; in the
        latter case ``"balanced"`` makes both sides of each label weigh the same, but for a label
        that no row has, or every row.
""",
    "warm_start": """\
    warm_start : bool, default={warm_start}
        Whether `fit` goes on from the model of the last one.{why warm_start}
""",
    "n_jobs": """\
    n_jobs : int or None, default={n_jobs}
        Threads that share the labels of a many-class problem, and the kernel's work; the model is
        the same for any number.
""",
    "verbose": """\
    verbose : int, default={verbose}
        Whether a line is printed for every epoch of the first ten, and every half second after.
""",
    "keep_history": """\
    keep_history : bool, default={keep_history}
        Whether `history_` tells the margin after every epoch, at the cost of a pass over the rows
        each; needs ``hypothesis="last"``.
""",
}

_FIRST_ORDER = {
    "kernel memory": """the pool takes for each row its entries
        (zeros too, where every fourth is not 0 or features are few) and 16 bytes a label.""",
    "why hypothesis": """The last two log the corrections (56 bytes each and, without a
        kernel, 16 bytes a nonzero of every row that made one) and replay them to predict.""",
    "without soft margin": " without `soft_margin`",
    "why warm_start": """ With other rows than the last one
        had it knows no margin, and `tol` is refused: there would be no proof.""",
}

_MATRIX = {
    "kernel memory": """the pool takes for each row its entries
        (zeros too, where every fourth is not 0 or features are few).""",
    "why hypothesis": """The average costs one addition a feature seen
        and correction. The last two log the rows of all corrections (12 bytes a nonzero, 8 for
        float32) and learn from them again to predict, each time, scoring every point with every
        vector: they are meant for comparisons, not for use. In dual variables the log takes 24
        bytes a correction, and 128 MB of vectors at a time score the points.""",
    "without soft margin": "",
    "why warm_start": "",
    "why max_iter": "The paper's experiments make one on text, five on microarrays, without an\n"
    "        intercept and with ``max_updates=None``.",
}

_WHY_MAX_ITER = {
    True: "Where they end a fit short of its aim, a `ConvergenceWarning` says so.",
    False: "Chosen by cross-validation on text, microarrays and other data.",
}

_SAMPLE_WEIGHT = """\
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the step of a correction; 0 leaves the row out."""

_ATTRIBUTES = """\
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray or CSR matrix of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    intercept_scaling_ : float
        Value of the intercept's coordinate; 0 where there is none.
    n_corrections_ : int or ndarray of shape (n_classes,)
    n_iter_ : float
        Epochs swept.
    n_features_in_ : int
    p_ : float"""

_FIRST_ORDER_ATTRIBUTES = """
    margin_, margin_upper_bound_ : float, or ndarray of shape (n_classes,)
        The margin reached on the rows of the last `fit`, and what no vector can exceed there.
    objective_, relative_deviation_ : float, or ndarray of shape (n_classes,)
        With `soft_margin` and p = 2.
    history_ : dict of ndarray
        Where `keep_history` asked for it.
    theta_, theta_norm_ : ndarray
        The dual vectors of the last hypothesis, and their p-norms.
    support_, dual_coef_, n_support_ : ndarray, ndarray, int or ndarray
        With a kernel, in place of `coef_`: the rows of the pool, their coefficients for each
        label, and how many of these each label has.
    gamma_, pool_bytes_, n_passed_over_ : float, int, int or ndarray
        With a kernel: the gamma taken, the bytes of the pool, the trials it had no room for."""

_MATRIX_ATTRIBUTES = """
    mistakes_ : ndarray of shape (n_corrections,), or list of them
        The row of each mistake, in order.
    n_updates_ : int or ndarray of shape (n_classes,)
        Mistakes that changed the matrix.
    solver_ : {"implicit", "primal", "dual"}, or list of them
        The form of the matrix at the end.
    support_, dual_coef_, n_support_ : ndarray, ndarray, int or ndarray
        In dual variables, in place of `coef_`: the rows of the pool, their coefficients for each
        label, and how many of these each label has.
    gamma_, pool_bytes_ : float, int
        In dual variables: the gamma taken, the bytes of pool and matrices."""


def with_sample_weight(method: Callable[..., Any]) -> Callable[[_Method], _Method]:
    """Give a method the docstring of the one it extends by `sample_weight`."""

    def describe(extended: _Method) -> _Method:
        doc = (method.__doc__ or "").replace("X or y can't", "X, y or sample_weight can't")
        returns = "\n\n        Returns"
        extended.__doc__ = doc.replace(returns, f"\n{_SAMPLE_WEIGHT}{returns}")
        return extended

    return describe


def with_common_sections(cls: _Class) -> _Class:
    """Fill in the common sections, with the defaults that the constructor has."""
    defaults = inspect.signature(cls).parameters
    text = "".join(part for name, part in _PARAMETERS.items() if name in defaults).rstrip("\n")
    attributes = _ATTRIBUTES
    if hasattr(cls, "_seeks_margin"):
        attributes += _FIRST_ORDER_ATTRIBUTES
        reasons = {**_FIRST_ORDER, "why max_iter": _WHY_MAX_ITER[cls._seeks_margin]}
    else:
        attributes += _MATRIX_ATTRIBUTES
        reasons = _MATRIX
    for what, reason in reasons.items():
        text = text.replace(f"{{{what}}}", reason)
    for name, parameter in defaults.items():
        default = parameter.default
        shown = f'"{default}"' if isinstance(default, str) else repr(default)
        text = text.replace(f"default={{{name}}}", f"default={shown}")
    doc = cls.__doc__ or ""
    doc = doc.replace("    {common parameters}", text)
    cls.__doc__ = doc.replace("    {common attributes}", attributes)
    return cls
