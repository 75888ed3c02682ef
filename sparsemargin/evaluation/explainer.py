"""The contribution of each feature of a row to an output.

The command line uses this class, so this module does not import scikit-learn, which takes a second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sparsemargin.evaluation.marked_text import as_html
from sparsemargin.evaluation.vectors import strongest_features
from sparsemargin.models import Learner
from sparsemargin.models.pipelines import names_at

# Number of features that a printed explanation lists.
_MOST_SHOWN = 15


class Explanation(NamedTuple):
    """Explanation of the output of one row for one class, as returned by `explain_row`.

    Attributes
    ----------
    label : object
        The class.
    output : float
        Value of `decision_function` for the class. With two classes, the output of the first is
        the negative output of the second. Up to rounding error, it is the sum of the intercept and
        all contributions.
    intercept : float
        Intercept of the class.
    columns : ndarray of shape (n_contributing,), int64
        Features of the row with a nonzero contribution, the largest magnitude first.
    names : list of str
        Names of these features. Column numbers, from 0, if the features have no names.
    contributions : ndarray of shape (n_contributing,), float64
        Contribution ``w_j x_j`` of each feature. Positive values support the class.
    text : str or None
        The text, if it was explained by `TextClassifier.explain`. Notebooks show it with its words
        marked.

    Examples
    --------
    >>> import sparsemargin
    >>> texts = ["cheap pills", "lunch at noon?", "cheap watches", "see you at noon"]
    >>> model = sparsemargin.fit_text(texts, ["spam", "ham", "spam", "ham"], random_state=0)
    >>> (why,) = model.explain("cheap lunch pills")
    >>> why.label, why.names[0]
    ('spam', 'cheap')
    """

    label: Any
    output: float
    intercept: float
    columns: NDArray[np.int64]
    names: list[str]
    contributions: NDArray[np.float64]
    text: str | None = None

    def __str__(self) -> str:
        shown = list(zip(self.names, self.contributions.tolist(), strict=True))[:_MOST_SHOWN]
        n_more = len(self.names) - len(shown)
        rest = float(self.contributions[len(shown) :].sum())
        lines = [(f"{n_more} more features", rest)] if n_more else []
        lines += [("intercept", self.intercept), ("output", self.output)]
        width = max(len(name) for name, _ in [*shown, *lines])
        return "\n".join(
            [
                f"{self.label!r}",
                *(f"  {name:{width}}  {value:+.4f}" for name, value in shown + lines),
            ]
        )

    def to_frame(self) -> Any:
        """Return the contributions as a pandas DataFrame with the columns "feature" and
        "contribution", the largest magnitude first."""
        # pandas is an optional dependency.
        from pandas import DataFrame

        return DataFrame({"feature": self.names, "contribution": self.contributions})

    def _repr_html_(self) -> str:
        if self.text is None:
            return f"<pre>{escape(str(self))}</pre>"
        head = f"{escape(str(self.label))} ({self.output:+.3g})"
        marked = as_html(self.text, self.names, self.contributions)
        return f"<p><b>{head}</b></p><p style='white-space: pre-wrap'>{marked}</p>"


class Explainer:
    """Splits the outputs of a linear model into the contributions of features.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    weights_of : callable
        Returns the weights of given columns, an array or CSR matrix of shape
        (n_vectors, n_columns). With two classes there is one vector, that of the second class.
    intercepts : ndarray of shape (n_vectors,)
    names : sequence of str or None
        Names of all features. None: features are named by their numbers.
    """

    def __init__(
        self, classes: np.ndarray, weights_of: Callable[[np.ndarray], Any], intercepts: np.ndarray,
        names: Sequence[str] | None,
    ) -> None:  # fmt: skip
        self.classes, self._weights_of, self._names = classes.tolist(), weights_of, names
        self._intercepts = intercepts

    @classmethod
    def of_learner(cls, learner: Learner, names: Sequence[str] | None) -> Self:
        """Return the explainer of a learner. A learner without weights raises a ValueError."""
        try:
            fitted = learner.fitted
            fitted.check_linear("coef_")
            return cls(fitted.classes, fitted.weights_of, fitted.intercept(), names)
        except AttributeError as error:
            raise ValueError(str(error)) from None

    def explain(
        self, code: int, outputs: np.ndarray, columns: np.ndarray, values: np.ndarray,
        names: Sequence[str] | None = None,
    ) -> Explanation:  # fmt: skip
        """Explain the output of one row for the class with number `code`.

        `outputs` has shape (n_vectors,). `columns` and `values` are the nonzeros of the row.
        `names` replaces the feature names of the explainer for this row.
        """
        lone = len(self._intercepts) < len(self.classes)
        at, sign = (0, 1 if code else -1) if lone else (code, 1)
        weights = self._weights_of(columns)[[at]]
        weights = (weights if isinstance(weights, np.ndarray) else weights.toarray()).ravel()
        added = sign * weights.astype(np.float64) * values.astype(np.float64)
        order = strongest_features(added, len(added))
        found = columns[order].astype(np.int64)
        names_found = names_at(found, self._names if names is None else names)
        # Adding 0.0 turns -0.0 into 0.0.
        output, intercept = (float(sign * each[at]) + 0.0 for each in (outputs, self._intercepts))
        return Explanation(self.classes[code], output, intercept, found, names_found, added[order])
