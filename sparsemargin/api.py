"""One call from a sparse matrix, or from files, to a fitted model."""

from __future__ import annotations

import os
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, Literal

import numpy as np

from sparsemargin.cells.genes import CellForm, Match
from sparsemargin.cells.learn import learn_cells
from sparsemargin.estimators.auto import fit_default
from sparsemargin.estimators.classifiers import CLASSIFIERS, Classifier, as_classifier
from sparsemargin.files.sources import File
from sparsemargin.genomes.cells import CellNormalizer, Values
from sparsemargin.models import Algorithm, find_algorithm
from sparsemargin.models.pipelines import parts_of
from sparsemargin.readers.text_forms import DocumentForm, TextForm
from sparsemargin.streaming.learn_texts import HASHED_BITS, hashed_pairs, learn_documents
from sparsemargin.streaming.options import WEIGHT_MEMORY
from sparsemargin.streaming.report import Lines
from sparsemargin.streaming.stream import learn_svmlight
from sparsemargin.streaming.text_arguments import check_arguments


def fit_csr(
    X: Any, y: Any, algo: Algorithm | None = None, *, sample_weight: Any = None, **params: Any
) -> Classifier:
    """Fit a classifier to a CSR matrix.

    Parameters
    ----------
    X : CSR matrix or array of shape (n_samples, n_features)
        float32 or float64, int32 or int64 indices: used where it lies. Whatever the estimators
        take is taken here too.
    y : array-like of shape (n_samples,), or of labels a row
        Class labels, numbers or strings; or any number of labels a row, as for the estimators.
    algo : {"perceptron", "pnorm", "alma", "arow", "ho", "so", "margin", "cramma", \
"romma", "maxmargin"}, default=None
        The classifier of that name, with its defaults. ``"perceptron"`` is `PNormPerceptron` with
        ``p=2`` on rows as they are. None: the one that `AutoClassifier` selects, which is AROW
        unless another has a lower error in progressive validation; AROW if a parameter of AROW
        is passed that the others lack. Passing a parameter's default value has no effect.
    sample_weight : array-like of shape (n_samples,), default=None
        Refused by ``"cramma"``, ``"romma"`` and ``"maxmargin"``, whose steps can't be weighted.
    **params
        Parameters of the estimator, such as `p`, `alpha`, `max_iter` and `random_state` of
        `ALMAClassifier` for ``algo="alma"``; its page, or ``help(ALMAClassifier)``, has them all.
        A parameter never selects an algorithm: without `algo` those of `AROWClassifier` are
        accepted.

    Returns
    -------
    estimator : Classifier
        The fitted estimator. Unfitted copies of it, as `GridSearchCV` and `cross_val_score` make
        them, learn with the same parameters.

    Raises
    ------
    ValueError
        If `algo` is unknown, or a parameter is not one of the algorithm; the message names the
        algorithms that have it. Whatever the estimators raise.

    Examples
    --------
    >>> import sparsemargin
    >>> from sparsemargin.datasets import make_alma_target
    >>> X, y, X_test, y_test, _ = make_alma_target(2000, 1000, random_state=0)
    >>> model = sparsemargin.fit_csr(X, y, algo="pnorm", p=6, random_state=0)
    >>> model.n_features_in_
    300
    """
    if algo is None:
        return fit_default(X, y, sample_weight, params)
    learner, params = find_algorithm(algo, params)
    model = CLASSIFIERS[learner.classifier](**params)
    if sample_weight is None:
        return model.fit(X, y)
    if not model.weighs_steps():
        raise ValueError(
            f"algo={algo!r} can't weight its steps. Leave sample_weight out, or choose another."
        )
    return model.fit(X, y, sample_weight)


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
    """Fit a classifier to svmlight files as they are read.

    One epoch takes memory for the weights and a few blocks of text, whatever the files' length.
    With an algorithm named the model is, to the bit, that of ``fit_csr(*load_svmlight(path), algo,
    max_iter=1, shuffle=False, ...)``. It is but for rounding for the Higher- and Second-order
    Perceptrons, and for epochs so many that `fit_csr` goes over to a matrix of dot products.
    Ctrl-C ends learning with a warning; what has been learned by then is kept.

    Rows sorted by their labels are the exception: learned in that order, the last ones outweigh the
    others. Where the first epoch shows that the label changes less than a tenth as often as in
    random order, learning begins again in random order by way of a row cache, some 64 MB of which
    are mixed at a time, and a warning says so. Of rows with `multilabel` no order is looked at.

    Parameters
    ----------
    path : path, open binary file or descriptor of one, or list of these
        As for `load_svmlight`. Standard input, and what is open already, is read once.
    algo : str, default=None
        As for `fit_csr`; where it is None, the first 10,000 rows choose, which are read once more.
        What can't be read twice is learned by ``"arow"``.
    max_iter : int or None, default=1
        Epochs. The first takes the rows in their order. Further ones read them from a cache, its
        blocks of some thousand rows and the rows of each in a new random order. None: until an
        epoch makes no correction. ``shuffle=False`` keeps the order of the files, also of rows that
        are sorted by their labels, which are then only warned of, as where the files can't be read
        twice and there is no cache.
    classes : array-like, default=None
        All classes. None: the labels there are; where one turns up after the first block (about
        1 MB), learning starts again with all labels of the files. What can't be read twice needs
        `classes` then.
    positive : str or number, default=None
        A label to be told from all others, for rows with one label or, separated by commas, many:
        the classes are then 1 and -1.
    multilabel : bool, default=False
        Whether rows have any number of labels, separated by commas, each of which is learned. The
        model predicts tuples of them.
    n_features : int, default=None
        Indices beyond are refused. None: features are taken in as they turn up.
    hash_bits : int, default=None
        From 1 to 31: indices, or names such as ``goal:1`` has, are hashed to ``2**hash_bits``
        features, as for `load_svmlight`, which bounds the memory.
    zero_based : bool or "auto", default="auto"
        Whether indices count from 0 or from 1. "auto": from 0 if index 0 occurs anywhere.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float64
        Type of the values, and of the weights where p = 2.
    cache : bool or path, default=False
        Where the rows are kept in binary, at some 12 bytes a nonzero, for further epochs, and for
        further runs while the files stay as they are, until it is deleted, which may be done at
        any time. True: beside the first file, as ``FILE.smcache``. False: nowhere; for more than
        one epoch, or rows sorted by their labels, in a file that is gone in the end, in the folder
        for temporary files, which the environment's TMPDIR names.
    memory_limit : int, default=2**30
        Bytes the weights, or a kernel's pool, may take. An index that asks for more is refused
        before anything is allocated for it; of the pool, and of weights that are held sparsely,
        what corrections make is counted after each block of rows.
    init_model : estimator, default=None
        A fitted model to go on from, which stays as it is; algorithm and parameters are its own.
    n_jobs : int or None, default=None
        Threads that scan text while this one reads and learns; None: one, or two where there are
        three cores. The model is the same for any number.
    verbose : int, default=0
        Whether lines on standard error tell how far it has come.
    **params
        Parameters of the estimator. ``class_weight="balanced"`` counts the rows of each class in a
        pass before the first. Refused, with what to do instead, are those that would need
        memory for all rows: ``hypothesis="vote"`` or ``"random"``, `soft_margin`, `tol`,
        Higher- and Second-order Perceptrons with ``max_updates=None``, and a kernel without
        `max_support`. A kernel's rows are kept sparse unless `n_features` or `hash_bits` tells how
        many features there are: dense data are faster with it.

    Returns
    -------
    estimator : Classifier
        The fitted estimator.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If an argument is wrong, or a file: names the file, the line, the column and the text.

    See Also
    --------
    load_svmlight : The rows as a matrix, for everything that needs them all.

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
        init_model=init_model, n_jobs=n_jobs, report=Lines() if verbose else None, **params,
    )  # fmt: skip
    return as_classifier(learner)


def fit_text(
    texts: Iterable[str] | File | Iterable[File],
    y: Any = None,
    algo: Algorithm | None = None,
    *,
    vectorizer: Any = None,
    sample_weight: Any = None,
    format: TextForm | None = None,
    text: str = "text",
    label: str = "label",
    verbose: int = 0,
    **params: Any,
) -> Any:
    """Fit a pipeline of a vectorizer and a classifier to texts, in memory or in files.

    Texts in memory become the TF-IDF of words and of pairs of neighbours, with logarithms of their
    counts; texts of files, which are read once and in memory that does not depend on their length,
    hashed words and pairs, present or not.

    Parameters
    ----------
    texts : iterable of str, or path, open binary file or list of these
        Where there is a y, the texts; else files of texts with their labels, as for `fit_svmlight`:

        ==================== =============================================================
        ``.txt``, ``.ft``    lines ``__label__LABEL text``, as fastText has them
        ``.tsv``             lines ``LABEL<tab>text``
        ``.vw``              lines ``LABEL | word word:2``, as Vowpal Wabbit has them
        ``.csv``, ``.jsonl`` tables with a column for the text and one for the label, which
        ``.parquet``         pyarrow reads
        ==================== =============================================================

        Compressed ones (``.tsv.gz``) are known by their bytes.
    y : array-like of shape (n_samples,), or of labels a text, default=None
        As for `fit_csr`; None: the labels are in the files.
    algo : str, default=None
        As for `fit_csr` and `fit_svmlight`.
    vectorizer : estimator, default=None
        Another vectorizer, such as ``sparsemargin.text.TfidfVectorizer(analyzer="char_wb",
        ngram_range=(3, 5))``, unfitted. For files, a `HashingVectorizer`.
    sample_weight : array-like of shape (n_samples,), default=None
        As for `fit_csr`; for texts in memory.
    format : {"fasttext", "tsv", "vw", "csv", "jsonl", "parquet"}, default=None
        Form of the files; None: as their names end.
    text, label : str, default="text", "label"
        Columns of tables; a ``.tsv`` is a table if its first line holds both names.
    verbose : int, default=0
        Whether lines on standard error tell how far a fit of files has come.
    **params
        Parameters of the classifier; for files also `max_iter`, `classes`, `positive`,
        `multilabel`, `cache`, `memory_limit` and `n_jobs`, as for `fit_svmlight`. With
        `init_model`, a pipeline, a copy of it goes on with these texts, once through them and by
        its own settings; words that its vectorizer has not met are left out, hashed ones never are.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        Of steps "vectorizer" and "classifier", fitted: ``pipeline.predict(["a text"])``.

    Raises
    ------
    OSError
        If a file is missing or can't be read.
    ValueError
        If an argument is wrong, or a file: names the file and the line. Whatever the vectorizer
        and the classifier raise.
    ModuleNotFoundError
        If a table is to be read, and pyarrow is not installed.

    Examples
    --------
    >>> import sparsemargin
    >>> texts = ["cheap pills", "lunch at noon?", "cheap watches", "see you at noon"]
    >>> model = sparsemargin.fit_text(texts, ["spam", "ham", "spam", "ham"], random_state=0)
    >>> model.predict(["cheap lunch pills"]).tolist()
    ['spam']
    """
    from sklearn.base import clone

    from sparsemargin.text import TfidfVectorizer
    from sparsemargin.text.pipeline import Pipeline

    check_arguments(texts, y, params)
    if y is None:
        if sample_weight is not None:
            raise ValueError("sample_weight is for texts in memory. Pass y, too, or leave it out.")
        before, first = parts_of(params.get("init_model"))
        if before is not None:
            params["init_model"] = first
            vectorizer = before[-1] if vectorizer is None else vectorizer
        if vectorizer is None:
            vectorizer = hashed_pairs(HASHED_BITS)
        elif not hasattr(vectorizer, "n_features"):
            raise ValueError(
                f"vectorizer={vectorizer!r} has to read all texts first, and files are read once. "
                "Pass a HashingVectorizer, or the texts themselves and y."
            )
        vectorizer = clone(vectorizer)
        how = DocumentForm(format, text, label)
        report = Lines() if verbose else None
        try:
            learner = learn_documents(texts, vectorizer, how, algo=algo, report=report, **params)
        except FileNotFoundError as error:
            if params.get("resume"):
                raise
            raise FileNotFoundError(f"{error} Texts in memory need y, their labels.") from None
        return Pipeline([("vectorizer", vectorizer), ("classifier", as_classifier(learner))])
    if params.get("init_model") is not None:
        return _gone_on(texts, y, sample_weight, vectorizer, algo, verbose, **params)
    if vectorizer is None:
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, dtype=np.float32)
    vectorizer = clone(vectorizer)
    X = vectorizer.fit_transform(texts)
    model = fit_csr(X, y, algo, sample_weight=sample_weight, verbose=verbose, **params)
    return Pipeline([("vectorizer", vectorizer), ("classifier", model)])


def _gone_on(
    texts: Any, y: Any, sample_weight: Any, *changed: Any, init_model: Any, **params: Any
) -> Any:
    """A copy of a pipeline that has learned from further texts."""
    from sparsemargin.text.pipeline import Pipeline

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


def fit_anndata(
    adata: Any,
    label: Any,
    algo: Algorithm | None = None,
    *,
    layer: str | None = None,
    normalize: Literal["log1p", "counts"] | None = "log1p",
    target_sum: float = 1e4,
    genes: Any = None,
    var: str | None = None,
    match: Match = "exact",
    batch: Any = None,
    verbose: int = 0,
    **params: Any,
) -> Any:
    """Fit a pipeline of a normalizer and a classifier to cells, in memory or in files.

    Counts become logarithms cell by cell as they are read; memory is for the weights and a few
    thousand cells, whatever the length of the files. Cells are mixed on the way, so that files may
    be sorted by type or by batch. It is ALMA's joint classifier, with the types weighing the same,
    for ten epochs, or as many as make a million trials, unless `algo` is given.

    Parameters
    ----------
    adata : AnnData, path, or list of these
        In memory or backed. ``.h5ad``, ``.zarr`` (cells as rows, CSR or dense) and 10x's ``.h5`` of
        Cell Ranger 3 or later are read block by block, by h5py or zarr: ``pip install
        "sparsemargin[cells,zarr]"``; 10x's folder of ``matrix.mtx`` at once.
    label : str, path or mapping
        The column of `obs` with the types. For 10x files, which have none, a table of barcodes and
        labels: a ``.tsv`` or ``.csv`` file, a dict or a pandas Series. Of a file of several columns
        name one after the path: ``"obs.csv:cell_type"``. Cells that are not in the table are left
        out.
    algo : str, default=None
        As for `fit_csr`.
    layer : str, default=None
        A layer in place of ``X``; "raw" is ``adata.raw``.
    normalize : {"log1p", "counts", None}, default="log1p"
        As of `CellNormalizer`. "log1p": counts are normalised. Other values are taken as logarithms
        and stay as they are, with a warning that says of what. "counts": values are counts, whole
        or not, such as estimated ones. None: values stay as they are. The model keeps the scale;
        `annotate` converts other cells to it, or refuses them.
    target_sum : float, default=1e4
        Total of a cell, all genes of its file together, before logarithms are taken.
    genes : list of str, "union" or None, default=None
        Which genes; None: those that all files have. A warning tells how many these are, where
        files differ. A gene that a file lacks is 0 there.
    var : str, default=None
        The column of `var` with the names of genes; None: ``var_names``. For 10x "id" or "name".
    match : {"exact", "case", "version"}, default="exact"
        How names of genes are compared: as they are, in capitals, or without the versions of
        Ensembl's names (ENSG00000141510.18). Where a file has several genes that compare equal,
        one of exactly the same name is preferred, then the first. The others count for the totals
        of cells only, with a warning.
    batch : str, path or mapping, default=None
        The column of `obs` with the batches (donors, studies), or a table, as for `label`:
        probabilities are then those for cells of another batch, by models tested on some of the
        batches that have learned the others.
    verbose : int, default=0
        Whether lines on standard error tell how far it has come.
    **params
        Parameters of the classifier; also `max_iter`, `positive`, `cache`, `memory_limit` and
        `init_model`, which may be a pipeline, as for `fit_svmlight`. ``shuffle=False`` reads
        cells as they lie; `random_state` (0 unless a number) says how they are mixed.

    Returns
    -------
    pipeline : sklearn.pipeline.Pipeline
        Of steps "normalizer" and "classifier", fitted: ``pipeline.predict(adata.X)``. The genes are
        ``pipeline.feature_names_in_``.

    Raises
    ------
    OSError
        If a file is missing.
    ValueError
        If an argument is wrong, or a file, or what it has: names the file and the cell.
    ModuleNotFoundError
        If a file is to be read, and h5py is not installed.

    See Also
    --------
    annotate : Types of other cells, whatever the order of their genes.
    marker_genes : What tells the types.

    Examples
    --------
    >>> import sparsemargin
    >>> from anndata import AnnData  # doctest: +SKIP
    >>> adata = AnnData(counts, obs, var)  # doctest: +SKIP
    >>> model = sparsemargin.fit_anndata(adata, "cell_type")  # doctest: +SKIP
    >>> sparsemargin.annotate(model, others)  # doctest: +SKIP
    """
    from sklearn.pipeline import Pipeline

    before, first = parts_of(params.get("init_model"))
    normalizer = CellNormalizer(normalize=normalize, target_sum=target_sum)
    values: Values = "auto"
    if first is not None:
        if before is None:
            raise ValueError("init_model must be a pipeline that fit_anndata has made.")
        params["init_model"], normalizer = first, before[-1]
        values = "auto" if normalize == "log1p" else normalize
    normalizer = deepcopy(normalizer)
    learner = learn_cells(
        adata, label, CellForm(layer, var, match, values), normalizer, genes=genes, batch=batch,
        algo=algo, report=Lines() if verbose else None, **params,
    )  # fmt: skip
    return Pipeline([("normalizer", normalizer), ("classifier", as_classifier(learner))])
