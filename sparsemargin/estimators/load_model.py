"""Loading of saved classifiers and pipelines."""

from __future__ import annotations

import os

from sparsemargin.estimators.classifiers import Classifier, as_classifier
from sparsemargin.saving.model_files import as_pipeline, load_saved


def load_model(path: str | os.PathLike[str], *, trusted: bool = False) -> Classifier:
    """Load a classifier, or a pipeline, that `save_model` saved.

    Nothing in the file is run. It is safe to load one from anywhere: what it holds is checked, so
    that no file can make the library read or write where it should not. What the model predicts
    is, of course, as good as where it comes from.

    Parameters
    ----------
    path : path
    trusted : bool, default=False
        Whether to accept a vectorizer that may take very long, or all memory, on some texts: one
        with a `token_pattern` other than scikit-learn's default and the usual ones (``\\w+``,
        ``\\S+``), or with n-grams of more than 64. Such a file is refused otherwise.

    Returns
    -------
    classifier or pipeline
        Of the class, with the parameters and at the point where it was saved.

    Raises
    ------
    ValueError
        If the file is no model file, was cut short or changed, was written by a newer version
        in another format, holds what no model does, or a vectorizer that needs `trusted`. Names
        the file.
    OSError
        If the file can't be read.
    """
    loaded = load_saved(path)
    model = as_classifier(loaded.learner)
    return model if loaded.steps is None else as_pipeline(path, model, loaded.steps, trusted)
