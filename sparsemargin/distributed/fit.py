"""`fit_distributed`: from shards of data to a fitted model."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.rows.parts import joined_rows
from sparsemargin._version import __version__
from sparsemargin.distributed.backends import Backend, backend_of
from sparsemargin.distributed.mixing import Mixing, Mixture
from sparsemargin.distributed.rounds import MIN_ROWS, Round, Rounds, ShardOptions, survey, terms_of
from sparsemargin.distributed.row_makers import Texts
from sparsemargin.distributed.schema import Schema, Survey, schema_of_files, schema_of_matrices
from sparsemargin.distributed.shard_forms import row_maker_of, shards_of
from sparsemargin.distributed.shards import FileShard, SampledRows, sampled
from sparsemargin.distributed.small_shards import runs_of
from sparsemargin.files.atomic import check_replaceable
from sparsemargin.files.distinct import Named, check_distinct
from sparsemargin.files.kinds import TextForm
from sparsemargin.models import ALGORITHMS, Algorithm, Learner, find_algorithm
from sparsemargin.models.candidates import AROW, Candidate
from sparsemargin.models.inputs.rows import intercept_scale
from sparsemargin.models.inputs.training_set import weights_by_class
from sparsemargin.models.selection import MOST_ROWS, DefaultAlgorithm
from sparsemargin.readers.text_forms import DocumentForm, Missing
from sparsemargin.streaming.learn_texts import classes_of_texts
from sparsemargin.streaming.options import WEIGHT_MEMORY
from sparsemargin.streaming.report import ProgressLines

if TYPE_CHECKING:
    from dask.distributed import Client


# Default number of epochs if an algorithm is named.
_EPOCHS = 5

# Parameters that apply only to shards of files.
_OF_FILES = (
    "classes", "positive", "multilabel", "n_features", "hash_bits", "zero_based", "dtype",
    "cache_dir",
)  # fmt: skip

_NOT_OF_CELLS = [name for name in _OF_FILES if name not in ("positive", "cache_dir")]

# Classifiers whose models cannot be mixed, and the reasons.
_NOT_MIXED = {
    "CRAMMAClassifier": "its vector has norm 1 throughout, which a mixture has not",
    "ROMMAClassifier": "its weights satisfy constraints of its rows, which a mixture does not",
    "MaxMarginClassifier": "it keeps a multiplier for each row",
}

# Parameters that need all rows in one process: a value that does not, and the only one that does,
# or None if all others do.
_NEED_ALL_ROWS = {
    "kernel": ("linear", None), "soft_margin": (0, None), "tol": (None, None),
    "max_corrections": (None, None), "prior": (None, None), "solver": ("auto", "dual"),
    "normalize": ("running", "max"),
}  # fmt: skip


def fit_distributed(
    shards: Any,
    y: Any = None,
    *,
    client: Client | str | None = None,
    algo: Algorithm | None = None,
    max_iter: int | Literal["auto"] | None = "auto",
    mixing: Mixing = "auto",
    min_rows: int = MIN_ROWS,
    classes: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    n_features: int | None = None,
    hash_bits: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = np.float64,
    cache_dir: str | os.PathLike[str] | None = None,
    features: Any = "auto",
    format: TextForm | None = None,
    text: str = "text",
    label: str = "label",
    missing: Missing = "error",
    encoding: str = "utf-8",
    memory_limit: int = WEIGHT_MEMORY,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_round: Callable[[Round], None] | None = None,
    verbose: int = 0,
    **params: Any,
) -> Any:
    """Fit a classifier to shards of the data on several machines.

    All shards start from the same vectors and train on a part of their rows. Their results are
    averaged, and the next part starts from this mixture [1]_. If there are many one-vs-rest
    vectors and few shards, the vectors visit the shards in a ring instead, without averaging. The
    guide to distributed training says what is averaged for each algorithm.

    The model depends on the shards and their order. It does not depend on the number of workers, on
    the loss of workers, or on interruptions that are resumed: the results are bitwise equal. With
    one shard the model equals that of `fit_csr`, `fit_svmlight` or `fit_text`, except for files
    sorted by label, and for `fit_csr` with so many epochs that it uses a matrix of dot products.

    Parameters
    ----------
    shards : Dask collection, list of pairs, or list of paths
        One or more shards per worker. The model depends on how the rows are divided into shards.

        - A Dask array of shape (n_samples, n_features) whose blocks are CSR matrices, or can be
          converted to them: each block of rows is a shard.
        - A Dask table with a column of texts and one of labels, or a Dask bag or column of texts:
          each partition is a shard.
        - Pairs (X, y) as in `fit_csr`, or lists of texts with their labels; each element may be a
          Dask ``Delayed`` or ``Future``.
        - Paths or URLs of files of svmlight text, texts or cells, as in `fit_svmlight`, `fit_text`
          and `fit_anndata`, or patterns. Each file is a shard; a list of paths within the list is
          one shard. Files are read on the worker once, and then replaced by their row caches. A
          row cache (``*.smcache``) may itself be passed.
        - An AnnData with a Dask array in ``.X`` or in a layer: each block of cells is a shard.

        Shards without rows are left out, and small ones are joined, see `min_rows`.
    y : Dask collection or array-like of shape (n_samples,), default=None
        The labels for a Dask array, column or bag, with the same blocks as `shards`.
    client : dask.distributed.Client, str or None, default=None
        A client, or the address of a scheduler. None: this process trains on the shards one after
        the other, which gives the same model and does not need Dask.
    algo : {"perceptron", "pnorm", "alma", "arow", "margin", "ho", "so"}, default=None
        See `fit_csr`. None: the choice of `fit_csr`, based on 10,000 rows of all shards.
    max_iter : int, None or "auto", default="auto"
        Number of epochs. None: until an epoch makes no correction on any shard. "auto": five for
        a named algorithm, and otherwise as many as `fit_csr` and `fit_anndata` make by default.
    mixing : {"auto", "ring", "uniform"}, default="auto"
        "uniform": the average, with equal weights for all shards. "ring": each vector visits one
        shard after the other, which gives the same vector as one machine that trains on the shards
        in this order. "auto": "ring" if there are at least n vectors for n shards, and at least
        n**2 / 8 vectors, else "uniform". No effect for "ho" and "so".
    min_rows : int, default=1000
        Consecutive shards with fewer rows are joined into shards with at least `min_rows` rows,
        because averages of models of few rows are less accurate. Small shards between large ones
        may keep fewer rows. Files that are joined are read again, and row caches are not joined. 1:
        no shards are joined.
    classes, positive, multilabel, n_features, hash_bits, zero_based, dtype
        Parameters for files, see `fit_svmlight`. For row caches and files of texts, only
        `classes`, `positive` and `multilabel` can be used.
    cache_dir : path, default=None
        Folder for row caches of files on each worker. None: next to the files, or for URLs in the
        user's cache folder.
    features : {"auto"}, `HashingVectorizer` or fitted vectorizer, default="auto"
        Converts texts to rows. "auto": words and word pairs, hashed to 4 million columns.
    format, text, label, missing, encoding
        Parameters for texts, see `fit_text`; `label` also for cells, see `fit_anndata`.
    memory_limit : int, default=2**30
        Largest size of the weights in bytes.
    checkpoint : path, default=None
        A model file, or its URL, that is written atomically after each epoch. The confidence of
        cells is available only at the end.
    resume : bool, default=False
        Whether to resume from the checkpoint, if it exists. The model is then bitwise equal to that
        of a fit without interruption.
    on_round : callable, default=None
        Called with each `Round`: its corrections, bytes and seconds, and the current model.
    verbose : int, default=0
        Whether to print progress to standard error; Dask's dashboard shows it in any case.
    **params
        Parameters of the estimator; for cells also `genes`, `layer`, `normalize`, `target_sum`,
        `var` and `match`, see `fit_anndata`. ``intercept_scaling="auto"`` measures the first rows
        of the first shard. Kernels, and parameters that need all rows in one process, raise an
        error with a remedy: `tol`, `soft_margin`, `max_corrections`, `prior`, ``solver="dual"``,
        ``normalize="max"``, ``hypothesis="vote"`` or ``"random"``, and `sample_weight`.

    Returns
    -------
    estimator : Classifier, TextClassifier or CellClassifier
        The fitted estimator, of the type that `fit_csr`, `fit_text` or `fit_anndata` returns.

    Raises
    ------
    ValueError
        If an argument or a shard is invalid. The message names it and suggests a remedy.
    OSError
        If a file cannot be read on the worker. `ConnectionError` if no scheduler or worker answers,
        if workers have another version of the library, or if they repeatedly die on one shard.
        `LostScheduler`, a `ConnectionError`, if the connection to the scheduler is lost; its
        message says where the last mixture is stored.
    ImportError
        If `client` is given and Dask is not installed, or for URLs if fsspec is not installed.

    Warns
    -----
    Interruption
        After Ctrl-C, which ends the fit. The model is the last mixture.
    UserWarning
        If shards have one class only, or far fewer classes than the data, or if rows are sorted by
        their labels. Sorted rows are shuffled within their shard, unless ``shuffle=False``.

    References
    ----------
    .. [1] R. McDonald, K. Hall and G. Mann, "Distributed training strategies for the structured
       perceptron", NAACL-HLT 2010, section 4.2, Figure 3.

    Examples
    --------
    >>> from sparsemargin.datasets import make_alma_target
    >>> from sparsemargin.distributed import fit_distributed
    >>> X, y, X_test, y_test, _ = make_alma_target(2000, 1000, random_state=0)
    >>> shards = [(X[i::4], y[i::4]) for i in range(4)]
    >>> model = fit_distributed(shards, algo="pnorm", p=6, random_state=0)
    >>> model.n_features_in_, model.n_iter_
    (300, 2.0)
    """
    # Most arguments are fields of `ShardOptions` with the same name.
    arguments = locals().copy()
    names = {each.name for each in fields(ShardOptions)} & arguments.keys()
    # Imported here because scikit-learn takes a second and 112 MB, and workers do not need it.
    from sparsemargin.estimators.classifiers import as_classifier

    how = DocumentForm(format, text, label, missing=missing, encoding=encoding)
    row_maker = row_maker_of(shards, features, how, params)
    more = {
        "row_maker": row_maker, "report": ProgressLines() if verbose else None,
        "params": {"verbose": verbose, **params},
    }  # fmt: skip
    options = ShardOptions(**{name: arguments[name] for name in names} | more)
    learner = learn_shards(shards, y, options)
    classifier = as_classifier(learner)
    return classifier if row_maker is None else row_maker.estimator(classifier)


def learn_distributed(shards: Any, **arguments: Any) -> Learner:
    """Train on files as `fit_distributed` does, without scikit-learn. Returns a learner, and passes
    `Progress` to `report` whenever training on a shard is complete."""
    return learn_shards(shards, None, ShardOptions.of(arguments))


def learn_shards(shards: Any, y: Any, options: ShardOptions) -> Learner:
    """Train on shards in any form that `fit_distributed` accepts."""
    _check_options(options)
    learner = _learner_of(options)
    row_maker: Any = options.row_maker
    found = shards_of(shards, y, options.reading(), options.cache_dir, options.max_index, row_maker)
    files = [shard for shard in found if isinstance(shard, FileShard)]
    are_cells = row_maker is not None and not isinstance(row_maker, Texts)
    if isinstance(row_maker, Texts):
        options = replace(options, classes=classes_of_texts(options.classes))
    if not files:
        _refuse(options, _OF_FILES, "is of files, and these shards are matrices")
    if are_cells:
        _refuse(options, _NOT_OF_CELLS, "does not apply to cells")
    read = [name for shard in files for name in shard.files]
    if options.checkpoint is not None:
        check_replaceable(options.checkpoint)
        named = [Named("the file", name) for name in read]
        check_distinct([Named("checkpoint", options.checkpoint)], named)
    options = replace(options, made_from=(*read, *options.made_from))
    with backend_of(options.client, found, row_maker) as backend:
        sample = None
        if are_cells:
            # Imported here because it imports scikit-learn, which svmlight text does not need.
            from sparsemargin.cells.learn import rename_classes, with_cell_defaults
            from sparsemargin.distributed import cell_shards

            options, sample = cell_shards.prepare(row_maker, backend, options)
        surveys, schema = _surveyed(backend, options)
        n_rows = sum(each.n_rows for each in surveys)
        if are_cells:
            options = with_cell_defaults(options, n_rows, has_max_iter=options.max_iter != "auto")
            learner = _learner_of(options)
        are_sorted = any(each.label_order.is_sorted for each in surveys)
        if are_sorted and options.params.get("shuffle", True):
            schema = replace(schema, mixed=0)  # a preliminary seed; the learner draws the final one
        if learner is None or options.balanced:
            learner, schema = _selected_over(backend, options, schema, learner)
        if files and isinstance(learner.class_weight, dict):
            learner.class_weight = weights_by_class(learner.class_weight, schema.classes)
        if learner.intercept_scaling == "auto":
            p = learner.p_for(schema.n_columns)
            learner.intercept_scaling = intercept_scale(surveys[0].beginning, p)
        mixture = Mixture(learner, schema, len(surveys), options.memory_limit)
        rounds = Rounds(backend, surveys, mixture, options)
        learner = rounds.run()
        if sample is not None and options.positive is None and len(sample[1]) >= n_rows:
            cell_shards.calibrate(learner, sample, row_maker.seed)
            rounds.write_checkpoint(learner)
        if are_cells and row_maker.of_truths:
            rename_classes(learner, learner.fitted.classes == "True", options.params)
        return learner


def _surveyed(backend: Backend, options: ShardOptions) -> tuple[list[Survey], Schema]:
    """The surveys of all shards with rows, after small shards were joined, and their common
    properties. A vectorizer that can remember terms is given the terms of the first shard."""
    found = backend.each(survey, __version__)
    backend.keep_rows([each.n_rows for each in found])
    surveys = [each for each in found if each.n_rows]
    # Shards are checked for consistency before some of them are joined, which does not change their
    # common properties.
    if surveys[0].reading is None:
        schema = schema_of_matrices(surveys, backend.titles)
    else:
        schema = schema_of_files(surveys, backend.titles, options.classes, options.positive)
    sizes = [sys.maxsize if each.is_row_cache else each.n_rows for each in surveys]
    runs = runs_of(sizes, options.min_rows)
    if len(runs) < len(surveys):
        backend.join(runs)
        changed = {i: (__version__,) for i, run in enumerate(runs) if len(run) > 1}
        new = iter(backend.results(backend.over_shards(survey, changed)))
        surveys = [surveys[run.start] if len(run) == 1 else next(new) for run in runs]
    checksums = [each.checksum for each in surveys]
    schema = replace(schema, checksums=dict(zip(backend.files, checksums, strict=True)))
    if not any(each.n_entries for each in surveys):
        raise ValueError("The data have labels but no features: nothing can be learned from them.")
    step = getattr(options.row_maker, "step", None)
    if hasattr(step, "remember_terms") and not hasattr(step, "terms_"):
        (terms,) = backend.results(backend.over_shards(terms_of, {0: (step,)}))
        step.terms_ = pickle.loads(terms)  # type: ignore[union-attr]
    return surveys, schema


def _check_options(options: ShardOptions) -> None:
    """Raise an error for options that are invalid for any shards."""
    if options.mixing not in get_args(Mixing):
        known = ", ".join(map(repr, get_args(Mixing)))
        raise ValueError(f"mixing must be one of {known}, got {options.mixing!r}.")
    if options.resume and options.checkpoint is None:
        raise ValueError("resume=True needs a checkpoint. Pass its path as checkpoint.")
    check_count("min_rows", options.min_rows, 1, sys.maxsize)
    check_count("memory_limit", options.memory_limit, 1, sys.maxsize)


def _selected_over(
    backend: Backend, options: ShardOptions, schema: Schema, learner: Learner | None
) -> tuple[Learner, Schema]:
    """The learner and the schema with the number of rows of each class. If `learner` is None, it is
    selected on a sample of the rows of all shards. This process does not receive these rows."""
    n_shards = len(backend.shards)
    default = _default_of(options) if learner is None else None
    n_rows = 0 if default is None else -(-MOST_ROWS // n_shards)
    found = backend.over_shards(sampled, dict.fromkeys(range(n_shards), (schema, n_rows)))
    call = backend.submit(_selected, schema, default, *found.values())
    for _ in backend.completed(found, [call]):
        pass
    ((counts, chosen),) = backend.gather([call])
    if default is not None:
        of_classes = None if schema.form is not None else counts[1]
        learner = default.learner(chosen, int(counts[:, 0].sum()), of_classes)
    assert learner is not None
    return check_mixable(learner), replace(schema, counts=counts)


def _default_of(options: ShardOptions) -> DefaultAlgorithm:
    return DefaultAlgorithm({**options.params, "max_iter": options.max_iter})


def _learner_of(options: ShardOptions) -> Learner | None:
    """The learner that the options specify; None if its choice depends on the rows."""
    if options.algo is not None:
        max_iter = _EPOCHS if options.max_iter == "auto" else options.max_iter
        kind, known = find_algorithm(options.algo, {**options.params, "max_iter": max_iter})
        return check_mixable(kind(**known))
    default = _default_of(options)
    check_mixable(AROW.learner(default.params))
    if default.settled is not None and "max_iter" in default.params:
        return check_mixable(default.settled.learner(default.params))
    return None


def _selected(
    schema: Schema, default: DefaultAlgorithm | None,
    *of_shards: tuple[np.ndarray, list[SampledRows]],
) -> tuple[np.ndarray, Candidate | None]:  # fmt: skip
    """The number of rows without and with each class, and the candidate that the default selects
    for the sampled rows."""
    counts = np.sum([each for each, _ in of_shards], axis=0)
    parts = [*chain.from_iterable(rows for _, rows in of_shards)]
    if default is None:
        return counts, None
    if schema.form is not None:
        return counts, AROW
    if default.settled is not None:
        return counts, default.settled
    rows = joined_rows([rows for rows, _ in parts])
    codes = np.concatenate([codes for _, codes in parts])
    return counts, default.candidate(rows, codes, schema.classes, prior=False, checked=True)


def check_mixable(learner: Learner) -> Learner:
    """Return the learner; raise an error if it cannot be trained on shards."""
    if learner.classifier in _NOT_MIXED:
        can = [name for name, (kind, _) in ALGORITHMS.items() if kind.classifier not in _NOT_MIXED]
        raise ValueError(
            f"{learner.classifier} can't be mixed: {_NOT_MIXED[learner.classifier]}. Those that "
            f"can are {', '.join(can)}."
        )
    for name, (off, only) in _NEED_ALL_ROWS.items():
        value = getattr(learner, name, off)
        if value != off if only is None else value == only:
            raise ValueError(
                f"{name}={value!r} needs all rows in one place, and these are in shards. Pass "
                f"{name}={off!r}."
            )
    learner.check_parameters()
    if learner.hypothesis in ("vote", "random"):
        raise ValueError(
            f"hypothesis={learner.hypothesis!r} is replayed from a log of corrections, which "
            "mixtures have not. Pass hypothesis='average'."
        )
    if learner.warm_start:
        raise ValueError(
            "warm_start is a parameter of fit. To continue a fit over shards, pass resume=True."
        )
    if learner.max_iter is not None and learner.max_iter % 1:
        raise ValueError(f"max_iter={learner.max_iter} must be a whole number of epochs.")
    return learner


def _refuse(options: ShardOptions, names: Sequence[str], why: str) -> None:
    """Raise an error for options that do not apply to these shards."""
    for name in names:
        value, off = getattr(options, name), getattr(ShardOptions, name)
        # `!=` cannot be used for an array, which `classes` may be.
        if value is not off and (off is None or value != off):
            raise ValueError(f"{name}={value!r} {why}. Leave it out.")
