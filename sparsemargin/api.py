"""Functions that fit a model to a sparse matrix, texts, cells or files in one call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any, Literal

import numpy as np

from sparsemargin.estimators.auto import fit_rows
from sparsemargin.estimators.classifiers import Classifier, as_classifier
from sparsemargin.files.kinds import TextForm
from sparsemargin.files.sources import File
from sparsemargin.models import Algorithm
from sparsemargin.readers.text_forms import Missing
from sparsemargin.streaming.options import WEIGHT_MEMORY
from sparsemargin.streaming.report import ProgressLines
from sparsemargin.streaming.stream import learn_svmlight
from sparsemargin.streaming.text_arguments import check_arguments, split_options
from sparsemargin.tasks.cell_classifier import CellClassifier
from sparsemargin.tasks.text_classifier import TextClassifier


def fit_csr(
    X: Any, y: Any, algo: Algorithm | None = None, *, sample_weight: Any = None, **params: Any
) -> Classifier:
    """Fit a classifier to a CSR matrix.

    Parameters
    ----------
    X : CSR matrix or array of shape (n_samples, n_features)
        Or any other input that the estimators accept.
    y : array-like of shape (n_samples,), or multilabel targets
        Class labels, numbers or strings, or several labels per row, as for the estimators.
    algo : {"perceptron", "pnorm", "alma", "arow", "ho", "so", "margin", "cramma", \
"romma", "maxmargin"}, default=None
        Name of the classifier. ``"perceptron"`` is `PNormPerceptron` with ``p=2`` and without
        normalisation of the rows. None: the classifier that `AutoClassifier` selects, or AROW if a
        parameter is passed that an alternative lacks. Passing a default value has no effect, but
        ``prior=None`` selects AROW without a prior.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows. None: all rows have weight 1. ``"cramma"``, ``"romma"`` and
        ``"maxmargin"`` do not support sample weights and raise a ValueError.
    **params
        Parameters of the estimator, such as those of `ALMAClassifier` for ``algo="alma"``. Without
        `algo`, the parameters of `AROWClassifier`; a parameter never selects an algorithm.

    Returns
    -------
    estimator : Classifier
        The fitted estimator.

    Raises
    ------
    ValueError
        If `algo` is unknown, or the algorithm does not have a parameter; the message names the
        algorithms that have it. Invalid data and parameter values raise the errors of the
        estimators.

    Examples
    --------
    >>> import sparsemargin
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(2000, 1000, random_state=0)
    >>> model = sparsemargin.fit_csr(X, y, algo="pnorm", p=6, random_state=0)
    >>> model.n_features_in_
    300
    """
    return fit_rows(X, y, algo, sample_weight, params)


def fit_svmlight(
    path: File | Iterable[File],
    algo: Algorithm | None = None,
    *,
    max_iter: int | None = 1,
    classes: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    n_features: int | None = None,
    hash_bits: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = np.float64,
    cache: bool | str | os.PathLike[str] = False,
    memory_limit: int = WEIGHT_MEMORY,
    init_model: Any = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    **params: Any,
) -> Classifier:
    """Fit a classifier to svmlight files while they are read.

    One epoch needs memory for the weights and a few blocks of text, for files of any length. If
    `algo` is given, the model is bit-identical to that of ``fit_csr(*load_svmlight(path), algo,
    max_iter=1, shuffle=False, ...)``. The models agree only up to rounding error for the Higher-
    and Second-order Perceptrons, and for so many epochs that `fit_csr` uses a matrix of dot
    products. ``"cramma"`` then needs `radius`.

    Rows that are sorted by their labels are shuffled, because the last rows would otherwise have
    too much influence. Rows count as sorted if, in the first epoch, the label changes less than
    10 % as often as in random order. Training then starts again in random order, and a warning
    reports it. Rows are shuffled in groups of about 64 MB, which come from all parts of a row
    cache. Rows with several labels (`multilabel`) are not checked.

    Parameters
    ----------
    path : path, open binary file or descriptor of one, or list of these
        Files to read, as for `load_svmlight`. Standard input and open files are read only once.
    algo : str, default=None
        Name of the classifier, as for `fit_csr`. None: the classifier is selected on the first
        10,000 rows, which are then read again. Input that can be read only once is fitted with
        ``"arow"``.
    max_iter : int or None, default=1
        Number of epochs. The first epoch uses the rows in the order of the files. Further epochs
        read the rows from a cache, in a new random order of its blocks (some thousand rows each)
        and of the rows within each block. None: train until an epoch makes no correction.
        ``shuffle=False`` always keeps the order of the files. A warning then reports rows that are
        sorted by their labels. The order is also kept, with the same warning, if the files can be
        read only once and there is no cache.
    classes : array-like, default=None
        All classes. None: the labels that occur in the files. If a new label occurs after the
        first block (about 1 MB), training starts again with all labels of the files. Input that
        can be read only once then needs `classes`.
    positive : str or number, default=None
        Label of the positive class, for rows with one label or with several, separated by commas.
        The classes are then 1 (rows with this label) and -1 (all other rows). None: every label is
        a class.
    multilabel : bool, default=False
        Whether rows have any number of labels, separated by commas. The model then predicts tuples
        of labels.
    n_features, hash_bits, zero_based, dtype
        As for `load_svmlight`. `hash_bits` limits the memory. `dtype` is also the type of the
        weights for p = 2.
    cache : bool or path, default=False
        File for the rows in binary form, about 12 bytes per nonzero. It is used for further epochs,
        and for further runs as long as the files are unchanged. It may be deleted at any time.
        True: ``FILE.smcache`` next to the first file. False: no file is kept. Several epochs, or
        rows sorted by their labels, then use a temporary file, which is deleted at the end. It is
        in the folder for temporary files (TMPDIR).
    memory_limit : int, default=2**30
        Largest memory of the weights, or of the support rows of a kernel, in bytes. An index that
        needs more memory raises a ValueError before the memory is allocated. The memory of support
        rows and of sparse weights, which grows with the corrections, is checked after each block.
    init_model : estimator, default=None
        Fitted model from which training continues, with its algorithm and parameters. The model
        itself is not changed. None: training starts with a new model.
    n_jobs : int or None, default=None
        Number of threads that scan text while the calling thread reads and trains. With more than
        two classes, half as many threads share the training. None: 1 thread trains, and 1 scans, or
        2 on at least three cores. The model does not depend on it.
    verbose : int, default=0
        If not 0, the progress is printed to standard error.
    **params
        Parameters of the estimator. ``class_weight="balanced"`` needs one more pass, which counts
        the rows of each class before training. Parameters that need memory for all rows raise an
        error that names an alternative: ``hypothesis="vote"`` or ``"random"``, `soft_margin`,
        `tol`, Higher- and Second-order Perceptrons with ``max_updates=None``, and a kernel without
        `max_support`. Support rows of a kernel are stored sparsely unless `n_features` or
        `hash_bits` is given. On dense data, training is faster with one of them.

    Returns
    -------
    estimator : Classifier
        The fitted estimator.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If an argument or a file is invalid. For a file, the message names the file, the line, the
        column and the text.

    See Also
    --------
    load_svmlight : Load all rows as a matrix.

    Examples
    --------
    >>> import sparsemargin
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "tiny.svm")
    >>> _ = path.write_text("spam 1:0.8 7:0.6\\nham 2:1 # a comment\\nspam 1:1\\n")
    >>> model = sparsemargin.fit_svmlight(path, algo="pnorm", p=4)
    >>> model.classes_.tolist(), model.n_features_in_, model.n_corrections_
    (['ham', 'spam'], 7, 2)
    """
    learner = learn_svmlight(
        path, algo, max_iter=max_iter, classes=classes, positive=positive, multilabel=multilabel,
        n_features=n_features, hash_bits=hash_bits, zero_based=zero_based, dtype=dtype,
        cache=cache, memory_limit=memory_limit,
        init_model=init_model, n_jobs=n_jobs, report=ProgressLines() if verbose else None, **params,
    )  # fmt: skip
    return as_classifier(learner)


def fit_text(
    texts: Any,
    y: Any = None,
    algo: Algorithm | None = None,
    *,
    features: Any = "auto",
    sample_weight: Any = None,
    format: TextForm | None = None,
    text: str | Sequence[str] | None = None,
    label: str | None = None,
    missing: Missing = "error",
    encoding: str = "utf-8",
    verbose: int = 0,
    **params: Any,
) -> TextClassifier:
    """Fit a `TextClassifier` to texts, in memory or in files.

    The features are words, word pairs and character n-grams within words: `WordCharVectorizer` for
    texts in memory, `WordCharHashingVectorizer` for files. N-grams have 2 to 5 characters, or 4 if
    there are more than 20 million characters. More than 256 MB, and input of unknown size, have
    only words and word pairs. The classifier is AROW with ``prior="naive_bayes"`` and at least two
    epochs; without character n-grams it is selected as by `fit_csr`. With several labels per text,
    AROW has no prior. Files are read in memory that does not depend on their length.

    Parameters
    ----------
    texts : iterable of str, table, or path, open binary file or list of these
        The texts, or a DataFrame with the columns `text`, if y is given. Otherwise files of texts
        and their labels, as for `fit_svmlight`:

        ==================== =============================================================
        ``.txt``, ``.ft``    lines ``__label__LABEL text`` (fastText)
        ``.tsv``             lines ``LABEL<tab>text``
        ``.vw``              lines ``LABEL | word word:2`` (Vowpal Wabbit)
        ``.jsonl``           lines ``{"text": "...", "label": "..."}``
        ``.csv``             tables with a column for the text and one for the label, read by
        ``.parquet``         pyarrow
        ==================== =============================================================

        Compressed files (``.tsv.gz``) are recognised by their contents.
    y : array-like of shape (n_samples,), multilabel targets, or str, default=None
        Class labels, as for `fit_csr`. A str names the column of the DataFrame that holds them.
        None: the labels are in the files.
    algo, sample_weight
        As for `fit_csr` and `fit_svmlight`. Files have no weights.
    features : {"auto", "words", "hashed"} or vectorizer, default="auto"
        As for `TextClassifier`: an unfitted vectorizer is, for example,
        ``sparsemargin.text.TfidfVectorizer(ngram_range=(1, 2))``. Files need "auto", "hashed" or a
        vectorizer that hashes.
    format : {"fasttext", "tsv", "vw", "csv", "jsonl", "parquet"}, default=None
        Format of the files. None: it follows from the extension of each file.
    text : str or list of str, default=None
        Column of the texts in a DataFrame, or in the tables among the files (by default that of
        `init_model`, or "text"). The texts of several columns are joined.
    label : str, default=None
        Column of the labels in files. None: that of `init_model`, or "label". A ``.tsv`` file is a
        table if its first line contains both names.
    missing : {"error", "empty", "drop"}, default="error"
        Treatment of missing texts, as for `TextClassifier`.
    encoding : str, default="utf-8"
        Encoding of files, such as "latin-1", "cp1252" or "utf-16". Parquet files are always UTF-8.
    verbose : int, default=0
        If not 0, the vectorizer and the classifier are printed, and the progress of a fit to files
        to standard error. For texts in memory, it is also the parameter of the classifier.
    **params
        Parameters of the classifier. For files also `max_iter`, `classes`, `positive`,
        `multilabel`, `cache`, `memory_limit` and `n_jobs`, as for `fit_svmlight`. By default, the
        first 10,000 texts determine `max_iter`, which is at least 2. It is 1 for more than 256 MB
        of text, for input that can be read only once, and with `algo`. `init_model` is a
        fitted `TextClassifier`: training continues on a copy of it, with its settings, for one
        epoch. Words that are not in the vocabulary of its vectorizer are ignored; a hashing
        vectorizer has no vocabulary and uses all words.

    Returns
    -------
    model : TextClassifier
        The fitted model: ``model.predict(["a text"])``.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If an argument or a file is invalid. For a file, the message names the file and the line.
        Errors of the vectorizer and the classifier are raised unchanged.
    ModuleNotFoundError
        If a file is a table and pyarrow is not installed.

    Examples
    --------
    >>> import sparsemargin
    >>> texts = ["cheap pills", "lunch at noon?", "cheap watches", "see you at noon"]
    >>> model = sparsemargin.fit_text(texts, ["spam", "ham", "spam", "ham"], random_state=0)
    >>> model.predict(["cheap lunch pills"]).tolist()
    ['spam']
    """
    init_model = params.get("init_model")
    if y is not None and init_model is not None:
        given = algo, text, verbose, format, missing != "error", encoding != "utf-8"
        if not isinstance(init_model, TextClassifier):
            raise ValueError(
                f"init_model must be a fitted TextClassifier, got {type(init_model).__name__}. Fit "
                "one by fit_text."
            )
        if any(given) or len(params) > 1 or not isinstance(features, str) or features != "auto":
            raise ValueError(
                "A fit with init_model has the features, columns, algorithm and parameters of "
                "init_model. Pass no others."
            )
        return deepcopy(init_model).partial_fit(texts, y, sample_weight=sample_weight)
    check_arguments(texts, y, params)
    if y is None and text is None:
        text = getattr(init_model, "text", None) or "text"
    own, options, params = split_options(params, in_files=y is None)
    model = TextClassifier(
        text=text, algo=algo, features=features, missing=missing, verbose=verbose,
        params=params or None, **own,
    )  # fmt: skip
    if y is not None:
        if encoding != "utf-8":
            raise ValueError("encoding is for files. Leave it out, or leave y out to read files.")
        return model.fit(texts, y, sample_weight)
    if sample_weight is not None:
        raise ValueError("sample_weight is for texts in memory. Pass y, too, or leave it out.")
    return model.fit_files(texts, format=format, label=label, encoding=encoding, **options)


def fit_anndata(
    adata: Any, label: Any, algo: Algorithm | None = None, **params: Any
) -> CellClassifier:
    """Fit a `CellClassifier` to cells, in memory or in files.

    ``fit_anndata(adata, "cell_type")`` is short for ``CellClassifier("cell_type").fit(adata)``.

    Parameters
    ----------
    adata : AnnData, path, or list of these
        As X of `CellClassifier.fit`.
    label, algo
        As for `CellClassifier`.
    **params
        Parameters of `CellClassifier`. Others become its `params`: parameters of the classifier,
        and `positive`, `shuffle`, `cache`, `memory_limit` and `init_model`.

    Returns
    -------
    model : CellClassifier
        The fitted estimator.

    Raises
    ------
    OSError, ModuleNotFoundError, ValueError
        As `CellClassifier.fit`.
    """
    names = CellClassifier().get_params(deep=False).keys() - {"label", "algo", "params"}
    own = {name: params.pop(name) for name in names & params.keys()}
    return CellClassifier(label, algo=algo, params=params or None, **own).fit(adata)
