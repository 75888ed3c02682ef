"""`fit_distributed`: from shards of data to a fitted model."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from sparsemargin._checks import check_count
from sparsemargin._engine.rows.csr import Csr
from sparsemargin._engine.rows.parts import pointers_of
from sparsemargin._version import __version__
from sparsemargin.distributed._backends import backend_of
from sparsemargin.distributed._making import CellRows, in_order, making_of
from sparsemargin.distributed._mixing import Mixing
from sparsemargin.distributed._rounds import Round, Rounds, ShardOptions, survey
from sparsemargin.distributed._schema import (
    Mixture,
    Schema,
    check_rows_there,
    schema_of_files,
    schema_of_matrices,
)
from sparsemargin.distributed._shards import FileShard, sampled, shards_of
from sparsemargin.files.atomic import check_replaceable
from sparsemargin.files.distinct import Named, check_distinct
from sparsemargin.models import Algorithm, Learner, find_algorithm, without_defaults
from sparsemargin.models.inputs.rows import intercept_scale
from sparsemargin.models.selection import AROW, MOST_ROWS, Candidate, select, settled
from sparsemargin.readers.text_forms import DocumentForm, TextForm
from sparsemargin.streaming.options import WEIGHT_MEMORY
from sparsemargin.streaming.report import Lines

if TYPE_CHECKING:
    from dask.distributed import Client


# Default number of epochs of named algorithms.
_EPOCHS = 5

# Parameters for files only.
_OF_FILES = (
    "classes", "positive", "multilabel", "n_features", "hash_bits", "zero_based", "dtype",
    "cache_dir",
)  # fmt: skip

_NOT_OF_CELLS = [name for name in _OF_FILES if name not in ("positive", "cache_dir")]

# Classifiers that cannot be mixed, and the reasons.
_NOT_MIXED = {
    "CRAMMAClassifier": "its vector has norm 1 throughout, which a mixture has not",
    "ROMMAClassifier": "its weights satisfy constraints of its rows, which a mixture does not",
    "MaxMarginClassifier": "it keeps a multiplier for each row",
}

# Parameters that need all rows in one process, and the values that disable them.
_NEED_ALL_ROWS = {
    "kernel": "linear", "soft_margin": 0, "tol": None, "max_corrections": None,
    "solver": "auto", "normalize": "running",
}  # fmt: skip
# For these parameters, only this value needs all rows.
_ONE_VALUE = {"solver": "dual", "normalize": "max"}


def fit_distributed(
    shards: Any,
    y: Any = None,
    *,
    client: Client | str | None = None,
    algo: Algorithm | None = None,
    max_iter: int | Literal["auto"] | None = "auto",
    mixing: Mixing = "auto",
    mixes_per_epoch: int = 16,
    classes: Any = None,
    positive: Any = None,
    multilabel: bool = False,
    n_features: int | None = None,
    hash_bits: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: Any = np.float64,
    cache_dir: str | os.PathLike[str] | None = None,
    vectorizer: Any = None,
    format: TextForm | None = None,
    text: str = "text",
    label: str = "label",
    memory_limit: int = WEIGHT_MEMORY,
    checkpoint: str | os.PathLike[str] | None = None,
    resume: bool = False,
    on_round: Callable[[Round], None] | None = None,
    verbose: int = 0,
    **params: Any,
) -> Any:
    """Fit a classifier to shards of the data on several machines.

    All shards start from the same vectors and train on a part of their rows. Their results are
    averaged, and the next part starts from this mixture [1]_. If one-vs-rest vectors are at least
    as many as the shards, the vectors visit the shards in a ring instead, without averaging.
    The model depends on the shards and their order. It does not depend on the number of workers, on
    the loss of workers, or on interruptions that are resumed: the results are bitwise equal. With
    one shard the model equals that of `fit_csr`, `fit_svmlight` or `fit_text`, with two exceptions:
    `fit_csr` with so many epochs that it uses a matrix of dot products, and files sorted by label.
    Shards with sorted rows cause a warning, and are used in their order.

    First-order algorithms average the dual vectors theta, not the weights, and the sums of the
    hypotheses. The count of corrections, which ALMA's rate and margin depend on, continues from the
    largest count of the shards, and so does the norm of ``normalize="running"``. `n_corrections_`
    is that count; the sum over the shards is passed to `on_round`. For AROW, the shards' results
    are multiplied as tempered posteriors with the same prior. The Second- and the Higher-order
    Perceptron are built exactly from the mistakes of all shards.

    Parameters
    ----------
    shards : Dask collection, list of pairs, or list of paths
        One or more for each worker. The model depends on how the rows are divided into shards.

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
    y : Dask collection or array-like of shape (n_samples,), default=None
        The labels for a Dask array, column or bag, with the same blocks as `shards`.
    client : dask.distributed.Client, str or None, default=None
        A client, or the address of a scheduler. None: this process trains on the shards one after
        the other, which gives the same model and does not need Dask.
    algo : {"perceptron", "pnorm", "alma", "arow", "margin", "ho", "so"}, default=None
        See `fit_csr`. None: the choice of `fit_csr`, based on 10,000 rows of all shards.
    max_iter : int, None or "auto", default="auto"
        Number of epochs. None: until an epoch makes no correction on any shard. "auto": five for
        a named algorithm. Otherwise one, or more if there are few rows, as in `AutoClassifier`;
        for cells as in `fit_anndata`.
    mixing : {"auto", "ring", "uniform", "errors"}, default="auto"
        "uniform": all shards have the same weight. "errors": for each vector, the weight of a shard
        is proportional to its corrections. "ring": each vector visits one shard after the other,
        and equals that of one machine with all rows, starting with the shard where the vector
        begins. "auto": a ring if there are at least as many vectors as shards, else "uniform". No
        effect for "ho" and "so".
    mixes_per_epoch : int, default=16
        Number of mixtures per epoch. Before each mixture, every shard trains on an equal part of
        its rows. No effect for a ring, "ho" and "so".
    classes, positive, multilabel, n_features, hash_bits, zero_based, dtype
        Parameters for files, see `fit_svmlight`. For row caches and files of texts, only
        `classes`, `positive` and `multilabel` can be used.
    cache_dir : path, default=None
        Folder for row caches of files on each worker. None: next to the files, or for URLs in the
        user's cache folder.
    vectorizer : estimator, default=None
        Converts texts to rows: a `HashingVectorizer`, or a fitted vectorizer. None: hashed words
        and word pairs, as `fit_text` uses for files.
    format, text, label
        Parameters for texts, see `fit_text`; `label` also for cells, see `fit_anndata`.
    memory_limit : int, default=2**30
        Largest size of the weights in bytes.
    checkpoint : path, default=None
        A model file, or its URL, that is written atomically after each epoch. For texts and cells
        it contains the pipeline; the confidence of cells is available only at the end.
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
        error with a remedy: `tol`, `soft_margin`, `max_corrections`,
        ``normalize="max"``, ``hypothesis="vote"`` or ``"random"``, and `sample_weight`.

    Returns
    -------
    estimator : Classifier or sklearn.pipeline.Pipeline
        The fitted estimator; for texts and cells a pipeline, as in `fit_text` and `fit_anndata`.

    Raises
    ------
    ValueError
        If an argument or a shard is invalid. The message names it and suggests a remedy.
    OSError
        If a file cannot be read on the worker. `ConnectionError` if no scheduler or worker answers,
        if workers have another version of the library, or if they repeatedly die of a shard.
        `LostScheduler`, a `ConnectionError`, if the connection to the scheduler is lost; its
        message says where the last mixture is stored.
    ImportError
        If `client` is given and Dask is not installed, or for URLs if fsspec is not installed.

    Warns
    -----
    Interruption
        After Ctrl-C, which ends the fit. The model is the last mixture.

    Notes
    -----
    The changes of the mixture are sent to each worker, and the worker sends the changes made by its
    rows, both as indices and values. For the matrix Perceptrons, the full state is sent to workers,
    and the rows of mistakes are sent back.

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
    from sparsemargin.estimators.classifiers import as_classifier

    making = making_of(shards, vectorizer, DocumentForm(format, text, label), params)
    options = ShardOptions(
        algo=algo, max_iter=max_iter, classes=classes, positive=positive, multilabel=multilabel,
        n_features=n_features, hash_bits=hash_bits, zero_based=zero_based, dtype=dtype,
        memory_limit=memory_limit, checkpoint=checkpoint, resume=resume,
        report=Lines() if verbose else None, client=client, mixing=mixing,
        mixes_per_epoch=mixes_per_epoch, cache_dir=cache_dir,
        on_round=on_round, params={"verbose": verbose, **params},
        making=making,
    )  # fmt: skip
    model = as_classifier(learn_shards(shards, y, options))
    if making is None:
        return model
    from sklearn.pipeline import Pipeline

    return Pipeline([(making.name, making.step), ("classifier", model)])


def learn_distributed(shards: Any, **given: Any) -> Learner:
    """`fit_distributed` for files without scikit-learn. Returns a learner, and passes `Progress` to
    `report` whenever training on a shard is complete."""
    return learn_shards(shards, None, ShardOptions.of(given))


def learn_shards(shards: Any, y: Any, options: ShardOptions) -> Learner:
    """Train on shards of files, or of a matrix with its labels."""
    make = _maker_of(options)
    making = options.making
    given = shards_of(shards, y, options.reading(), options.cache_dir, options.max_index, making)
    files = [shard for shard in given if isinstance(shard, FileShard)]
    if not files:
        _refuse(options, _OF_FILES, "is of files, and these shards are matrices")
    if isinstance(making, CellRows):
        _refuse(options, _NOT_OF_CELLS, "is not of cells")
    read = [name for shard in files for name in shard.files]
    _check_writable(options.checkpoint, read)
    options = replace(options, made_from=(*read, *options.made_from))
    with backend_of(options.client, given, making) as backend:
        if making is not None:
            options = making.meet(backend, options)
        # The terms are taken from the first shard.
        steps = [making.step if making and making.asks else None, *[None] * (len(given) - 1)]
        found = in_order(backend.each(survey, __version__, len(given) > 1, starts=steps))
        surveys = [each for each, _ in found]
        if steps[0] is not None:
            steps[0].terms_ = pickle.loads(found[0][1])
        check_rows_there(surveys)
        if making is not None:
            options = making.settle(options, sum(each.n_rows for each in surveys))
            make = _maker_of(options)
        if files:
            names = [file.name for file in files]
            schema = schema_of_files(names, surveys, options.classes, options.positive)
        else:
            schema = schema_of_matrices(surveys)
        learner = make(None) if make.is_settled else None
        if learner is None or options.balanced:
            n_rows = 0 if learner else -(-MOST_ROWS // len(given))
            counts, parts = zip(*in_order(backend.each(sampled, schema, n_rows)), strict=True)
            schema = replace(schema, counts=sum(counts))
            learner = learner or make(_Rows(schema, list(chain.from_iterable(parts))))
        if learner.intercept_scaling == "auto":
            p = learner.p_for(schema.n_columns)
            learner.intercept_scaling = intercept_scale(surveys[0].beginning, p)
        mixture = Mixture(learner, schema, len(given), options.memory_limit)
        return Rounds(backend, surveys, mixture, options).run()


@dataclass(frozen=True)
class _Rows:
    """Some rows of all shards, from which a learner is selected."""

    schema: Schema
    parts: list[tuple[Csr, np.ndarray]]

    def candidate(self, params: dict[str, Any]) -> Candidate:
        """The candidate selected for rows like these."""
        schema = self.schema
        if schema.form is not None:
            return AROW
        data, indices = (
            np.concatenate([getattr(rows, name) for rows, _ in self.parts])
            for name in ("data", "indices")
        )
        lengths = np.concatenate([np.diff(rows.indptr) for rows, _ in self.parts])
        rows = Csr(data, indices, pointers_of(lengths, indices.dtype), schema.n_columns)
        codes = np.concatenate([codes for _, codes in self.parts])
        return select(rows, codes, schema.classes, params)


@dataclass(frozen=True)
class _Maker:
    """Makes the learner that the options specify, or the one selected for the rows."""

    options: ShardOptions
    chosen: Candidate | None  # None: an algorithm is named, or selected from the rows
    params: dict[str, Any]

    @property
    def is_settled(self) -> bool:
        return self.options.algo is not None or (
            self.chosen is not None and self.options.max_iter != "auto"
        )

    def __call__(self, rows: _Rows | None) -> Learner:
        max_iter, params = self.options.max_iter, self.params
        if self.options.algo is not None:
            named = {**params, "max_iter": _EPOCHS if max_iter == "auto" else max_iter}
            kind, known = find_algorithm(self.options.algo, named)
            learner = kind(**known)
        else:
            chosen = self.chosen or rows.candidate(params)  # type: ignore[union-attr]
            if max_iter == "auto":
                without, having = rows.schema.counts  # type: ignore[union-attr,misc]
                form = rows.schema.form  # type: ignore[union-attr]
                max_iter = chosen.epochs_of(int(without[0] + having[0]), None if form else having)
            learner = chosen.learner({**params, "max_iter": max_iter})
        check_mixable(learner)
        return learner


def _maker_of(options: ShardOptions) -> _Maker:
    """The maker of the learner; raises an error for options that shards do not support."""
    if options.mixing not in get_args(Mixing):
        known = ", ".join(map(repr, get_args(Mixing)))
        raise ValueError(f"mixing must be one of {known}, got {options.mixing!r}.")
    check_count("mixes_per_epoch", options.mixes_per_epoch, 1, sys.maxsize)
    if options.resume and options.checkpoint is None:
        raise ValueError("resume=True goes on from a checkpoint: pass its path as checkpoint.")
    check_count("memory_limit", options.memory_limit, 1, sys.maxsize)
    if options.algo is not None:
        make = _Maker(options, None, options.params)
        make(None)
        return make
    params: dict[str, Any] = without_defaults(options.params)
    kind, filled = find_algorithm(None, params)
    check_mixable(kind(**filled))
    return _Maker(options, settled(params), params)


def _check_writable(path: str | os.PathLike[str] | None, read: Sequence[str]) -> None:
    """Find out before the work whether the mixture can be written there."""
    if path is None:
        return
    check_replaceable(path)
    check_distinct([Named("checkpoint", path)], [Named("the file", name) for name in read])


def check_mixable(learner: Learner) -> None:
    """Raise an error if the learner cannot be trained on shards."""
    if learner.classifier in _NOT_MIXED:
        raise ValueError(
            f"{learner.classifier} can't be mixed: {_NOT_MIXED[learner.classifier]}. Those that "
            "can are perceptron, pnorm, alma, arow, margin, so and ho."
        )
    for name, off in _NEED_ALL_ROWS.items():
        value = getattr(learner, name, off)
        if value != off and value == _ONE_VALUE.get(name, value):
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
        raise ValueError("warm_start is of fit. To go on with a fit over shards pass resume=True.")
    if learner.max_iter is not None and learner.max_iter % 1:
        raise ValueError(f"max_iter={learner.max_iter} must be a whole number of epochs.")


def _refuse(options: ShardOptions, names: Sequence[str], why: str) -> None:
    """Raise an error for options that do not apply to these shards."""
    for name in names:
        value, off = getattr(options, name), getattr(ShardOptions, name)
        # `!=` cannot be used for an array, which `classes` may be.
        if value is not off and (off is None or value != off):
            raise ValueError(f"{name}={value!r} {why}. Leave it out.")
