"""Pipelines of a vectorizer and a classifier, fitted to texts in memory or in files."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sklearn.base import clone

from sparsemargin.estimators.auto import fit_default
from sparsemargin.estimators.classifiers import CLASSIFIERS, Classifier, as_classifier
from sparsemargin.files.sources import open_sources
from sparsemargin.models import find_algorithm
from sparsemargin.models.pipelines import parts_of
from sparsemargin.readers.text_forms import DocumentForm
from sparsemargin.streaming.learn_texts import learn_documents, vectorizer_for
from sparsemargin.streaming.report import ProgressLines
from sparsemargin.text.analysis import sizes_of, without_arrow
from sparsemargin.text.defaults import default_vectorizer, has_default_terms
from sparsemargin.text.pipeline import Pipeline


def fit_rows(
    X: Any, y: Any, algo: Any, sample_weight: Any, params: dict[str, Any], *, of_texts: bool = False
) -> Classifier:
    """Fit the classifier of an algorithm, or the default one, as `sparsemargin.fit_csr` does.
    If rows have the default features of texts (`of_texts`), another classifier is the default."""
    if algo is None:
        return fit_default(X, y, sample_weight, params, of_texts=of_texts)
    learner, params = find_algorithm(algo, params)
    model = CLASSIFIERS[learner.classifier](**params)
    if sample_weight is None:
        return model.fit(X, y)
    if not model.weighs_steps():
        raise ValueError(
            f"algo={algo!r} can't weight its steps. Leave sample_weight out, or choose another."
        )
    return model.fit(X, y, sample_weight)


def fit_texts(
    texts: Any, y: Any, algo: Any, sample_weight: Any, vectorizer: Any, params: dict[str, Any]
) -> Pipeline:
    """Fit a pipeline of a copy of `vectorizer` to texts in memory. None: the default vectorizer."""
    if vectorizer is None:
        texts = list(without_arrow(texts))
        every, sizes = sizes_of(texts)
        vectorizer = default_vectorizer(every * sum(sizes))
    vectorizer = clone(vectorizer)
    X = vectorizer.fit_transform(texts)
    of_texts = has_default_terms(vectorizer)
    return _pipeline(vectorizer, fit_rows(X, y, algo, sample_weight, params, of_texts=of_texts))


def fit_text_files(
    paths: Any, how: DocumentForm, algo: Any, vectorizer: Any, params: dict[str, Any], *,
    verbose: int,
) -> Pipeline:  # fmt: skip
    """Fit a pipeline to files of texts. `params` include those of the stream, and `init_model`."""
    before, first = parts_of(params.get("init_model"))
    if before is not None:
        params = {**params, "init_model": first}
        vectorizer = before[-1] if vectorizer is None else vectorizer
    if vectorizer is not None and not hasattr(vectorizer, "n_features"):
        raise ValueError(
            f"vectorizer={vectorizer!r} has to read all texts first, and files are read once. "
            "Pass a HashingVectorizer, or the texts themselves and y."
        )
    report = ProgressLines() if verbose else None
    try:
        files = open_sources(paths)
        vectorizer = vectorizer_for(files) if vectorizer is None else clone(vectorizer)
        learner = learn_documents(files, vectorizer, how, algo=algo, report=report, **params)
    except FileNotFoundError as error:
        if params.get("resume"):
            raise
        raise FileNotFoundError(f"{error} Texts in memory need y, their labels.") from None
    return _pipeline(vectorizer, as_classifier(learner))


def continue_fit(
    texts: Any, y: Any, sample_weight: Any, *changed: Any, init_model: Any, **params: Any
) -> Pipeline:
    """Return a copy of the pipeline `init_model` after one epoch on further texts."""
    before, _ = parts_of(init_model)
    if any(changed) or params or before is None:
        raise ValueError(
            "init_model is a pipeline that learning goes on with, by its own vectorizer, algorithm "
            "and parameters: pass none beside it."
        )
    *steps, (name, classifier) = init_model.steps
    classifier = deepcopy(classifier)
    classifier.partial_fit(before.transform(texts), y, sample_weight=sample_weight)
    return Pipeline([*steps, (name, classifier)])


def _pipeline(vectorizer: Any, classifier: Classifier) -> Pipeline:
    return Pipeline([("vectorizer", vectorizer), ("classifier", classifier)])
