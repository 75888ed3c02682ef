"""Explanations of a model of texts, its wrong predictions, and words that it has not met."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import murmurhash3_32
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from sparsemargin._checks import check_count
from sparsemargin.estimators.classifiers import Classifier
from sparsemargin.estimators.validation import check_labels
from sparsemargin.evaluation.explainer import Explanation
from sparsemargin.evaluation.explanations import explain_row
from sparsemargin.evaluation.weights import top_features
from sparsemargin.readers.texts import ENOUGH_CHARACTERS
from sparsemargin.tasks.tables import check_lengths, labels_in
from sparsemargin.text import CountVectorizer
from sparsemargin.text.analysis import sizes_of

# Parameters by which a vectorizer splits texts into words.
_SPLITTING = "token_pattern", "lowercase", "strip_accents", "stop_words", "encoding", "decode_error"


class ConfidentError(NamedTuple):
    """A text with a wrong prediction, as returned by `TextClassifier.most_confident_errors`.

    Attributes
    ----------
    position : int
        Position of the text in X, from 0: ``df.iloc[position]``.
    text : str
    label : object
        The true class.
    predicted : object
    confidence : float
        Probability of the predicted class, or its output if the model has no probabilities.
    """

    position: int
    text: str
    label: Any
    predicted: Any
    confidence: float


class TextInsights:
    """The methods of `TextClassifier` that show what it has learned."""

    pipeline_: Any
    texts_of: Any
    _fitted_steps: Any

    def explain(self, text: Any, *, labels: Any = None) -> list[Explanation]:
        """Compute the contribution of each term of a text to the output of its predicted class.

        Parameters
        ----------
        text : str, or table of one row
        labels : class, or sequence of classes, default=None
            Classes to explain. None: the predicted class or labels.

        Returns
        -------
        list of Explanation
            One for each class. ``print`` shows it as a table, `Explanation.to_frame` returns a
            DataFrame, and notebooks show the text with its words marked.
        """
        check_is_fitted(self)
        pipeline = self.pipeline_  # another thread may replace it
        texts = [text] if isinstance(text, str) else self.texts_of(text, "text")
        if len(texts) != 1:
            raise ValueError(f"text must be a single text, got {len(texts)}. Pass one of them.")
        vectorizer = pipeline.steps[0][1]
        names = vectorizer.names_in(texts) if hasattr(vectorizer, "names_in") else None
        found = explain_row(pipeline, texts[0], labels=labels, feature_names=names)
        return [each._replace(text=texts[0]) for each in found]

    def top_features(self, top: int = 10) -> dict[Any, list[tuple[str, float]]]:
        """Find the terms with the largest weights for each class. See
        `sparsemargin.evaluation.top_features`."""
        check_is_fitted(self)
        return top_features(self.pipeline_, top)

    def most_confident_errors(self, X: Any, y: Any, n: int = 10) -> list[ConfidentError]:
        """Find the wrong predictions of which the model is most confident.

        These are often wrong labels.

        Parameters
        ----------
        X, y
            Texts and their classes, as for `fit`. They should not have been used in training.
        n : int, default=10
            Largest number of errors to return.

        Returns
        -------
        list of ConfidentError
            The most confident error first. ``pandas.DataFrame(errors)`` makes a table of it.

        Raises
        ------
        ValueError
            If y does not have one class for each text, or the model predicts several labels.
        """
        vectorizer, classifier = self._fitted_steps()
        n = check_count("n", n, 0, sys.maxsize)
        labels = check_labels(labels_in(X, y))
        texts = self.texts_of(X)
        check_lengths(texts, y=labels)
        if labels.ndim != 1 or classifier.fitted.many:
            raise ValueError("Only models with one class for each text have such errors.")
        if not len(texts):
            return []
        unique_labels(classifier.classes_, labels)  # raises an error if the types differ
        rows = vectorizer.transform(texts)
        predicted = classifier.predict(rows)
        wrong = np.flatnonzero(predicted != labels)
        if not len(wrong):
            return []
        outputs = getattr(classifier, "predict_proba", classifier.decision_function)(rows[wrong])
        confidence = np.abs(outputs) if outputs.ndim == 1 else outputs.max(axis=1)
        order = np.argsort(-confidence, kind="stable")[:n]
        at = wrong[order]
        names = zip(labels[at].tolist(), predicted[at].tolist(), strict=True)
        return [
            ConfidentError(int(i), texts[i], label, guess, float(sure))
            for i, (label, guess), sure in zip(at, names, confidence[order], strict=True)
        ]

    def unknown_share(self, X: Any) -> np.ndarray:
        """Return the share of the words of each text that are not among the model's features.

        A mean that rises over time shows that the texts have changed.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            From 0 to 1; 0 for a text without words.
        """
        vectorizer, classifier = self._fitted_steps()
        return unknown_shares(vectorizer, classifier, self.texts_of(X))


def name_columns(vectorizer: Any, texts: list[str]) -> None:
    """Name the hashed columns of a vectorizer by the terms of some texts. Existing names stay."""
    known = getattr(vectorizer, "terms_", {})
    every, sizes = sizes_of(texts)
    vectorizer.remember_terms(texts[:: 1 + every * sum(sizes) // ENOUGH_CHARACTERS])
    vectorizer.terms_ = {**vectorizer.terms_, **known}


def unknown_shares(vectorizer: Any, classifier: Classifier, texts: Any) -> np.ndarray:
    """Return the share of unknown words of each text, shape (n_texts,), float64.

    A word is known if it is in the vocabulary, or if its hashed column has a weight.
    """
    words = vectorizer
    if hasattr(vectorizer, "fitted_vectorizers"):
        words = vectorizer.fitted_vectorizers()[0]
    if getattr(words, "analyzer", None) != "word" or words.ngram_range[0] != 1:
        raise ValueError("unknown_share needs features of single words.")
    splitting = {name: getattr(words, name) for name in _SPLITTING}
    counter = CountVectorizer(**splitting, preprocessor=words.preprocessor,
                              tokenizer=words.tokenizer, dtype=np.float64)  # fmt: skip
    if not len(texts):
        return np.zeros(0)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:
        # There are no words, or the vectorizer raises the same error.
        words.transform(texts)
        return np.zeros(len(texts))
    terms = counter.get_feature_names_out()
    if hasattr(words, "n_features"):
        hashes = [murmurhash3_32(term) for term in terms.tolist()]
        columns = np.abs(np.array(hashes, dtype=np.int64)) % words.n_features
        weights = abs(classifier.fitted.weights_of(columns))
        known = np.asarray(weights.sum(axis=0)).ravel() > 0
    else:
        known = np.array([term in words.vocabulary_ for term in terms.tolist()])
    total = np.asarray(counts.sum(axis=1)).ravel()
    return (counts @ ~known) / np.maximum(total, 1)
