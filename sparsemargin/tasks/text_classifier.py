"""`TextClassifier`, from texts or DataFrames to labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, get_args

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsemargin._checks import check_choice
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.state import require
from sparsemargin.estimators.auto import fit_rows
from sparsemargin.estimators.classifiers import CLASSIFIERS, as_classifier
from sparsemargin.estimators.validation import check_labels
from sparsemargin.files.sources import open_sources
from sparsemargin.models import find_algorithm
from sparsemargin.models.fitted.in_use import learns
from sparsemargin.models.fitted.new_classes import joined_classes, warn_of_only_new, with_classes
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.models.pipelines import parts_of
from sparsemargin.readers.text_forms import DocumentForm, Missing
from sparsemargin.streaming.learn_texts import learn_documents, vectorizer_for
from sparsemargin.streaming.report import ProgressLines
from sparsemargin.streaming.text_arguments import CLASSIFIER_ARGUMENTS
from sparsemargin.tasks.insights import TextInsights, name_columns
from sparsemargin.tasks.saved import SavedEstimator, has_probabilities
from sparsemargin.tasks.tables import columns_named, labels_in, texts_in, training_set
from sparsemargin.text.analysis import sizes_of
from sparsemargin.text.defaults import (
    default_hashing,
    default_vectorizer,
    has_default_terms,
    hashing_for_batches,
    norm_of_own_terms,
    words_and_pairs,
)

_FEATURES = ("auto", "words", "hashed")

# Number of named hashed columns at which `partial_fit` stops naming columns. They take 50 MB.
_MOST_NAMES = 1 << 19


class TextClassifier(ClassifierMixin, TextInsights, SavedEstimator):
    """A classifier of texts: a vectorizer and a linear classifier that is chosen for its rows.

    By default, the features are words, word pairs and character n-grams, and the classifier is AROW
    with ``prior="naive_bayes"``, as described in `fit_text`. The texts are a list, a Series, or
    columns of a DataFrame.

    Parameters
    ----------
    text : str or list of str, default=None
        Column of a table that holds the texts, for a pandas or polars DataFrame, a pyarrow Table or
        a Hugging Face Dataset. The texts of several columns are joined by line ends. Other columns
        have no effect. None: X is a collection of texts. A list or Series of texts is accepted in
        any case.
    algo : str, default=None
        Name of the algorithm, as for `fit_csr`. None: the default for the features.
    features : {"auto", "words", "hashed"} or vectorizer, default="auto"
        "auto": words, word pairs and character n-grams. "words": words and word pairs. "hashed":
        as "auto", but without a vocabulary, so that later texts may have new words. Or an unfitted
        vectorizer, such as ``sparsemargin.text.TfidfVectorizer(ngram_range=(1, 3))``.
    missing : {"error", "empty", "drop"}, default="error"
        Treatment of missing texts (None, NaN, NA). "error": a ValueError names the first. "empty":
        they count as "". "drop": rows without any text are left out of training, and count as ""
        in predictions.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as for `AROWClassifier`.
    r : float, default=None
        Regularization of AROW, as for `AROWClassifier`. None: its default.
    max_iter : int, None or "auto", default="auto"
        Number of epochs. "auto": chosen by the number of texts, at least 2 for the default `algo`.
        None: train until an epoch makes no correction, which may never happen.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling.
    n_jobs : int, default=None
        Number of threads. The model does not depend on it.
    verbose : int, default=0
        If not 0, the vectorizer, the classifier and the progress are printed.
    params : dict, default=None
        Further parameters of the classifier, such as ``{"p": 4}`` for ``algo="pnorm"``.

    Attributes
    ----------
    pipeline_ : sparsemargin.text.pipeline.Pipeline
        The fitted steps "vectorizer" and "classifier".
    vectorizer_ : vectorizer
    classifier_ : classifier
    classes_ : ndarray of shape (n_classes,)
    label_ : str or None
        Column of the training labels, which commands read by default. None: they had no name.

    See Also
    --------
    fit_text : Fit one in a single call, to texts or to files.
    CellClassifier : The same for cells.

    Examples
    --------
    >>> from sparsemargin import TextClassifier
    >>> texts = ["cheap pills", "lunch at noon?", "cheap watches", "see you at noon"]
    >>> model = TextClassifier(random_state=0).fit(texts, ["spam", "ham", "spam", "ham"])
    >>> model.predict(["cheap lunch pills"]).tolist()
    ['spam']
    """

    _first = "vectorizer"
    label_: str | None = None

    vectorizer_ = property(lambda self: self.pipeline_.steps[0][1], doc="The fitted vectorizer.")

    def __init__(
        self,
        *,
        text: str | Sequence[str] | None = None,
        algo: str | None = None,
        features: Any = "auto",
        missing: Missing = "error",
        class_weight: Any = None,
        r: float | None = None,
        max_iter: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self.text = text
        self.algo = algo
        self.features = features
        self.missing = missing
        self.class_weight = class_weight
        self.r = r
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.params = params

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the vectorizer and the classifier.

        Parameters
        ----------
        X : iterable of str, or table of shape (n_samples, n_columns)
            The texts, or a table with the columns `text`.
        y : array-like of shape (n_samples,), multilabel targets, or str
            Class labels, as for `fit_csr`. A str names the column of the table that holds them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the texts, as for `fit_csr`.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, a text is missing, or a table is given without
            `text`. The message names the columns or the row. The model is then unchanged.
        """
        label = y if isinstance(y, str) else None
        texts, y, sample_weight = training_set(X, y, sample_weight, self.text, self.missing)
        vectorizer = self._vectorizer_for(texts)
        rows = vectorizer.fit_transform(texts)
        classifier = fit_rows(
            rows, y, self.algo, sample_weight, self._classifier_params(),
            of_texts=has_default_terms(vectorizer), norm=norm_of_own_terms(vectorizer),
        )  # fmt: skip
        self.label_ = label
        return self._keep_named(vectorizer, classifier, texts)

    @learns
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on some texts once, in their order.

        The first call on an unfitted model uses hashed features, AROW without a prior, or `algo`.
        After `fit`, words that are not in the vocabulary are ignored, unless features are hashed.
        With hashed features, labels may be new classes: earlier rows count as negative for them.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like of shape (n_classes,), default=None
            All known classes. Required in the first call on an unfitted model.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As for `fit`, or if a label is new and features are not hashed, or the features of an
            unfitted model need all texts at once.
        """
        label = y if isinstance(y, str) else self.label_
        texts, y, sample_weight = training_set(X, y, sample_weight, self.text, self.missing)
        if hasattr(self, "pipeline_"):
            rows, before = self.vectorizer_.transform(texts), self.classifier_.fitted
            had_probabilities = before.tells_probabilities
            classes = self._take_new_classes(y, classes)
            try:
                self.classifier_.partial_fit(rows, y, classes, sample_weight)
            except BaseException:
                if self.classifier_.fitted.classes is not before.classes:
                    self.classifier_.restore(before)
                raise
            self.label_ = label
            after = self.classifier_.fitted
            if had_probabilities and not after.tells_probabilities:
                warn_user(after.why_no_probabilities(type(self).__name__))
            terms = getattr(self.vectorizer_, "terms_", None)
            if terms is not None and len(terms) < _MOST_NAMES:
                name_columns(self.vectorizer_, texts)
            return self
        vectorizer = self._named_vectorizer()
        vectorizer = hashing_for_batches() if vectorizer is None else vectorizer
        if not hasattr(vectorizer, "n_features"):
            raise ValueError(
                f"features={self.features!r} has to read all texts first. For partial_fit, pass "
                "features='hashed', or call fit before."
            )
        learner, params = find_algorithm(self.algo, self._classifier_params())
        classifier = CLASSIFIERS[learner.classifier](**params)
        classifier.partial_fit(vectorizer.transform(texts), y, classes, sample_weight)
        self.label_ = label
        return self._keep_named(vectorizer, classifier, texts)

    def fit_files(
        self, paths: Any, *, format: Any = None, label: str | None = None, encoding: str = "utf-8",
        **options: Any,
    ) -> Self:  # fmt: skip
        """Fit to files of texts and labels, which are read block by block.

        Features are hashed: words, word pairs and character n-grams, in as many columns as the size
        of the files suggests.

        Parameters
        ----------
        paths : path, open binary file, or list of these
            As for `fit_text`.
        format : {"fasttext", "tsv", "vw", "csv", "jsonl", "parquet"}, default=None
            Format of the files. None: it follows from the extension of each file.
        label : str, default=None
            Column of tables with the label. None: `label_` of `init_model`, or "label". The column
            of the text is `text`, "text" by default.
        encoding : str, default="utf-8"
            Encoding of the files, as for `fit_text`.
        **options
            `classes`, `positive`, `multilabel`, `cache`, `memory_limit`, and `init_model`, as for
            `fit_svmlight`.

        Returns
        -------
        self : object

        Raises
        ------
        OSError
            If a file is missing or can't be read.
        ValueError
            If an argument or a file is invalid. The message names the file and the line.
        ModuleNotFoundError
            If a file is a table and pyarrow is not installed.
        """
        columns = tuple(columns_named(self.text)) or ("text",)
        before, first = parts_of(options.get("init_model"))
        label = label or getattr(options.get("init_model"), "label_", None) or "label"
        form = DocumentForm(format, columns, label, missing=self.missing, encoding=encoding)
        vectorizer = self._named_vectorizer()
        if before is not None:
            options["init_model"] = first
            vectorizer = vectorizer or before[-1]
            if not hasattr(before[-1], "n_features"):
                raise ValueError(
                    "init_model has a vocabulary, and training on files needs hashed features. "
                    "Pass texts and y, or fit init_model with features='hashed'."
                )
        if vectorizer is not None and not hasattr(vectorizer, "n_features"):
            raise ValueError(
                f"{vectorizer!r} has to read all texts first, and files are read once. Pass a "
                "HashingVectorizer, or the texts themselves and y."
            )
        try:
            files = open_sources(paths)
            vectorizer = vectorizer_for(files) if vectorizer is None else clone(vectorizer)
            learner = learn_documents(
                files, vectorizer, form, algo=self.algo,
                report=ProgressLines() if self.verbose else None,
                **self._classifier_params(in_files=True), **options,
            )  # fmt: skip
        except FileNotFoundError as error:
            if options.get("resume"):
                raise
            raise FileNotFoundError(f"{error} Texts in memory need y, their labels.") from None
        self.label_ = label
        return self.keep(vectorizer, as_classifier(learner))

    def predict(self, X: Any) -> Any:
        """Predict the class, or the labels, of each text. See `AROWClassifier.predict`."""
        if "pipeline_" not in vars(self):
            check_is_fitted(self)
        return self.pipeline_.predict(self.texts_of(X))

    def decision_function(self, X: Any) -> np.ndarray:
        """Return the outputs for each text. See `AROWClassifier.decision_function`."""
        rows, classifier = self._rows(X)
        return classifier.decision_function(rows)

    @available_if(has_probabilities)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict the probabilities of the classes, shape (n_samples, n_classes)."""
        rows, classifier = self._rows(X)
        return classifier.predict_proba(rows)

    @available_if(has_probabilities)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Return the logarithms of the probabilities, shape (n_samples, n_classes)."""
        rows, classifier = self._rows(X)
        return classifier.predict_log_proba(rows)

    def predict_labels(self, X: Any, *, threshold: Any = None, top_k: int | None = None) -> Any:
        """Predict labels with a threshold, or the `top_k` most likely classes. See
        `AROWClassifier.predict_labels`."""
        rows, classifier = self._rows(X)
        return classifier.predict_labels(rows, threshold=threshold, top_k=top_k)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy. `y` may name a column of the table, as in `fit`."""
        rows, classifier = self._rows(X)
        return classifier.score(rows, self.labels_of(X, y), sample_weight)

    def labels_of(self, X: Any, y: Any) -> Any:
        """Return the labels: those of a column of the table if `y` is its name, otherwise `y`."""
        return labels_in(X, y)

    def _values_for_file(self) -> dict[str, Any]:
        return {**super()._values_for_file(), "label": self.label_}

    @classmethod
    def restored(cls, inner: Any, values: dict[str, Any]) -> Self:
        label = values.get("label")
        require(isinstance(label, str | None), f"the label of a {cls.__name__} is no column")
        model = super().restored(inner, {name: values[name] for name in values.keys() - {"label"}})
        model.label_ = label
        return model

    def check_restored(self, first: Any) -> None:
        columns_named(self.text)
        require(hasattr(first, "transform"), "a TextClassifier has no vectorizer")
        check_choice("missing", self.missing, get_args(Missing))
        if self.features is None:
            self.features = clone(first)
        else:
            check_choice("features", self.features, _FEATURES)

    def _plain(self, name: str, value: Any) -> Any:
        if name == "features" and not isinstance(value, str):
            # None stands for the vectorizer of the pipeline.
            return None
        if name == "text" and value is not None and not isinstance(value, str):
            return columns_named(value)
        return value

    def keep(self, first: Any, classifier: Any) -> Self:
        if self.verbose:
            print(f"TextClassifier has used {first!r} and {classifier!r}")
        return super().keep(first, classifier)

    def _keep_named(self, vectorizer: Any, classifier: Any, texts: list[str]) -> Self:
        """Name hashed columns by the terms of these texts, and set the fitted steps."""
        if hasattr(vectorizer, "remember_terms"):
            name_columns(vectorizer, texts)
        return self.keep(vectorizer, classifier)

    def texts_of(self, X: Any, argument: str = "X") -> Any:
        """Return the texts of `X` for a prediction. Errors name the argument."""
        return texts_in(X, self.text, self.missing, argument=argument)[0]

    def _rows(self, X: Any) -> tuple[Any, Any]:
        vectorizer, classifier = self._fitted_steps()
        return vectorizer.transform(self.texts_of(X)), classifier

    def _take_new_classes(self, y: Any, classes: Any) -> Any:
        """Add the classes that the model does not know yet. Return the argument `classes` for
        `partial_fit` of the classifier."""
        fitted = self.classifier_.fitted
        if fitted.many:
            return classes
        fitted.require_all("trained")
        wanted = fitted.classes
        for labels in (y,) if classes is None else (y, classes):
            wanted = joined_classes(wanted, check_labels(labels))
        if wanted is fitted.classes:
            return classes
        if not hasattr(self.vectorizer_, "n_features"):
            new = label_text(np.setdiff1d(wanted, fitted.classes).tolist()[0])
            raise ValueError(
                f"The label {new!r} is new. Only a model with features='hashed' takes new classes. "
                "Fit anew, to all texts."
            )
        warn_of_only_new(fitted.classes, np.unique(check_labels(y)).tolist())
        self.classifier_.restore(with_classes(fitted, wanted))
        return None

    def _named_vectorizer(self) -> Any:
        """Return a new vectorizer for `features`, or None if it depends on the texts."""
        if not isinstance(self.features, str):
            if not hasattr(self.features, "transform"):
                raise ValueError(
                    f"features must be one of {', '.join(map(repr, _FEATURES))}, or a vectorizer, "
                    f"got {self.features!r}."
                )
            return clone(self.features)
        check_choice("features", self.features, _FEATURES)
        return words_and_pairs() if self.features == "words" else None

    def _vectorizer_for(self, texts: list[str]) -> Any:
        if (vectorizer := self._named_vectorizer()) is not None:
            return vectorizer
        every, sizes = sizes_of(texts)
        make = default_vectorizer if self.features == "auto" else default_hashing
        return make(every * sum(sizes))

    def _classifier_params(self, *, in_files: bool = False) -> dict[str, Any]:
        """Return the parameters of the classifier that differ from the defaults."""
        own = {name: getattr(self, name) for name in (*CLASSIFIER_ARGUMENTS, "verbose")}
        own = {name: each for name, each in own.items() if each is not None or name == "max_iter"}
        if in_files or not self.verbose:
            del own["verbose"]
        if isinstance(self.max_iter, str) and self.max_iter == "auto":
            del own["max_iter"]
        if not isinstance(self.params, Mapping | None):
            raise ValueError(f"params must be a dict of parameters, got {self.params!r}.")
        params = dict(self.params or {})
        if twice := sorted(own.keys() & params):
            raise ValueError(f"{twice[0]} is an argument and in params. Leave it out of params.")
        return {**own, **params}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_label = True
        return tags
