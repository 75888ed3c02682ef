"""Loading of saved classifiers and pipelines."""

from __future__ import annotations

import os
from typing import Any

from sparsemargin.estimators.classifiers import as_classifier
from sparsemargin.estimators.rejector import Rejector
from sparsemargin.saving.model_files import as_pipeline, as_wrapped, load_saved
from sparsemargin.tasks.cell_classifier import CellClassifier
from sparsemargin.tasks.text_classifier import TextClassifier

# Classes of the estimators around a pipeline or classifier: see `sparsemargin.saving.wrappers`.
# A name in a file is looked up here and nowhere else.
_WRAPPERS: dict[str, Any] = {
    each.__name__: each for each in (CellClassifier, Rejector, TextClassifier)
}


def load_model(
    path: str | os.PathLike[str], *, trusted: bool = False, predict_only: bool = False
) -> Any:
    """Load a classifier or a pipeline from a file that `save_model` wrote.

    Files from any origin can be loaded safely. No code in the file is run, and its content is
    checked, so that no file can make the library access memory or files that it should not. The
    predictions of a model are only as trustworthy as its origin.

    Parameters
    ----------
    path : path
        File to read.
    trusted : bool, default=False
        If True, accept a vectorizer that may take very long, or all memory, on some texts. This is
        one with a `token_pattern` other than scikit-learn's default and the usual ones (``\\w+``,
        ``\\S+``), or with n-grams longer than 64. If False, such a file is refused.
    predict_only : bool, default=False
        If True, keep only the weights of features with a weight, which takes a fraction of the
        memory. The predictions are the same. `partial_fit` and `save_model` raise a ValueError, and
        `theta_` is not available.

    Returns
    -------
    classifier, pipeline, TextClassifier, CellClassifier or Rejector
        The model in the state in which it was saved, with the same class and parameters.

    Raises
    ------
    ValueError
        If the file is not a model file, is truncated or modified, was written by a newer version
        in another format, is not a valid model, or has a vectorizer that needs `trusted`. The
        message names the file.
    OSError
        If the file can't be read.
    """
    loaded = load_saved(path)
    model = as_classifier(loaded.learner)
    if predict_only:
        model.fitted.keep_predictions()
    if loaded.steps is not None:
        model = as_pipeline(path, model, loaded.steps, trusted)
    return as_wrapped(path, model, loaded.wrappers, _WRAPPERS)
