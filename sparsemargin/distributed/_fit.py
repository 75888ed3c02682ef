"""One call from shards of data to a fitted model."""

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
from sparsemargin.io.distinct import Named, check_distinct
from sparsemargin.io.files import check_replaceable
from sparsemargin.io.forms import DocumentForm, TextForm
from sparsemargin.io.options import WEIGHT_MEMORY
from sparsemargin.io.report import Lines
from sparsemargin.models import Algorithm, Learner, find_algorithm, without_defaults
from sparsemargin.models.rows import intercept_scale
from sparsemargin.models.selection import AROW, MOST_ROWS, Candidate, select, settled

if TYPE_CHECKING:
    from dask.distributed import Client


# Of an algorithm that is named, unless told.
_EPOCHS = 5

# What is told of files only.
_OF_FILES = (
    "classes", "positive", "multilabel", "n_features", "hash_bits", "zero_based", "dtype",
    "cache_dir",
)  # fmt: skip

_NOT_OF_CELLS = [name for name in _OF_FILES if name not in ("positive", "cache_dir")]

# Those whose epochs on shards can't be mixed, and why.
_NOT_MIXED = {
    "CRAMMAClassifier": "its vector has norm 1 throughout, which a mixture has not",
    "ROMMAClassifier": "its weights satisfy constraints of its rows, which a mixture does not",
    "MaxMarginClassifier": "it keeps a multiplier for each row",
}

# Parameters that need all rows in one process, and the values that turn them off.
_NEED_ALL_ROWS = {
    "kernel": "linear", "soft_margin": 0, "tol": None, "keep_history": False,
    "max_corrections": None, "solver": "auto", "normalize": "running",
}  # fmt: skip
# Those of which one value alone does.
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
    """Fit a classifier to shards of the data, each where it is.

    Every shard learns a part of its rows, all from the same vectors; what they come to is mixed;
    the next part begins from the mixture [1]_. Where labels are learned one by one, and are as many
    as shards, they visit these in a ring instead, and nothing is mixed. Shards and their order make
    the model: it is the same to the bit on any number of workers, whichever of them die on the way,
    and as often as the fit is broken off and resumed. With one shard it is the model of `fit_csr`,
    or of `fit_svmlight` and `fit_text`, to the bit, but for epochs so many that `fit_csr` goes over
    to a matrix of dot products, and for files sorted by their labels: of shards of such rows a
    warning tells, and they are learned from as they come.

    First-order algorithms mix the dual vectors theta, not the weights, and averages by the sums of
    their hypotheses. The count of corrections that ALMA's rate and margin fall with goes on from
    the largest of the shards', as does ``normalize="running"``'s norm; `n_corrections_` is that
    count, not the sum over the shards, which `on_round` is told. AROW's shards are multiplied, as
    posteriors from one prior, each tempered. The Second- and the Higher-order Perceptron are made
    of the mistakes of all shards, exactly.

    Parameters
    ----------
    shards : Dask collection, list of pairs, or list of paths
        One for each worker, or more; the model depends on how the rows are cut into them.

        - A Dask array of shape (n_samples, n_features) whose blocks are CSR matrices (or anything
          that can be turned into one): each block of rows is a shard.
        - A Dask table with a column of texts and one of labels, or a Dask bag, or a column, of
          texts: each partition is a shard.
        - Pairs (X, y) as `fit_csr` takes them, or of lists of texts with their labels; each may be
          a Dask ``Delayed`` or ``Future``.
        - Paths or URLs of files of svmlight text, of texts or of cells, as for `fit_svmlight`,
          `fit_text` and `fit_anndata`, or patterns of such, each file a shard; a list of paths
          within the list is one shard. They are read where the worker is, once; then their row
          caches are. A row cache (``*.smcache``) may itself be given.
        - An AnnData with a Dask array in ``.X`` or in a layer: each block of cells is a shard.
    y : Dask collection or array-like of shape (n_samples,), default=None
        The labels that go with a Dask array, column or bag, in parts as those of `shards`.
    client : dask.distributed.Client, str or None, default=None
        A client, or the address of a scheduler. None: this process takes the shards in turn, which
        gives the same model, and needs no Dask.
    algo : {"perceptron", "pnorm", "alma", "arow", "margin", "ho", "so"}, default=None
        As for `fit_csr`. None: what `fit_csr` takes, by 10,000 of the rows of all shards.
    max_iter : int, None or "auto", default="auto"
        Epochs. None: until an epoch makes no correction on any shard. "auto": of an algorithm that
        is named five; else one, or more where rows are few, as for `AutoClassifier`; of cells as
        for `fit_anndata`.
    mixing : {"auto", "ring", "uniform", "errors"}, default="auto"
        "uniform": the vectors of all shards weigh the same; "errors": for each label as much as
        the corrections they made. "ring": each label's vector visits one shard after the other, so
        that it is that of one machine with the rows of all, from the shard on where the label
        begins. "auto": a ring where labels are as many as shards, else "uniform". Of no account for
        "ho" and "so".
    mixes_per_epoch : int, default=16
        Mixtures an epoch, each after such a part of the rows of every shard; of no account for a
        ring, for "ho" and for "so".
    classes, positive, multilabel, n_features, hash_bits, zero_based, dtype
        Of files, as for `fit_svmlight`; of row caches and files of texts only `classes`,
        `positive` and `multilabel`.
    cache_dir : path, default=None
        Folder on each worker where it keeps the row caches of files; None: beside the files, or, of
        URLs, in the user's cache folder.
    vectorizer : estimator, default=None
        What makes rows of texts: a `HashingVectorizer`, or one that is fitted. None: words and
        pairs, hashed, as for files in `fit_text`.
    format, text, label
        Of texts, as for `fit_text`; `label` also of cells, as for `fit_anndata`.
    memory_limit : int, default=2**30
        Bytes the weights may take.
    checkpoint : path, default=None
        A model file, or its URL, that is written after each epoch, whole or not at all; of texts
        and cells the whole pipeline, in which cells' confidence is missing until the end.
    resume : bool, default=False
        Whether to go on from the checkpoint, if there is one; the model is then the same to the
        bit as that of a fit that was not broken off.
    on_round : callable, default=None
        Is told each `Round`: its corrections, bytes and seconds, and the model by then.
    verbose : int, default=0
        Whether lines on standard error tell how far it has come; Dask's dashboard does anyway.
    **params
        Parameters of the estimator; of cells also `genes`, `layer`, `normalize`, `target_sum`,
        `var` and `match`, as for `fit_anndata`. ``intercept_scaling="auto"`` measures the first
        rows of the first shard. Refused, with what to do instead, are kernels, and those that
        need all rows in one place: `tol`, `soft_margin`, `max_corrections`, `keep_history`,
        ``normalize="max"``, ``hypothesis="vote"`` or ``"random"``; and `sample_weight`.

    Returns
    -------
    estimator : Classifier or sklearn.pipeline.Pipeline
        The fitted estimator; of texts and cells a pipeline, as of `fit_text` and `fit_anndata`.

    Raises
    ------
    ValueError
        If an argument or a shard can't be used; names it, and what helps.
    OSError
        If a file can't be read where the worker is. A ConnectionError if no scheduler or worker
        answers, or workers have another version of the library, or die of a shard time and again;
        `LostScheduler`, one too, if the scheduler goes away: it tells where the last mixture is.
    ImportError
        If `client` is given and Dask is not installed, or a URL and fsspec is not.

    Warns
    -----
    Interruption
        After Ctrl-C, which ends the fit: the model is the last mixture.

    Notes
    -----
    Each worker is sent what has changed of the mixture, and sends what its rows have changed of it:
    indices and values. The matrix Perceptrons' state is sent in full, and the rows of mistakes are
    sent back.

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
    from sparsemargin.models.classifiers import as_classifier

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
    """`fit_distributed` of files without scikit-learn: gives a learner, and tells `report` the
    `Progress` whenever a shard has been learned from."""
    return learn_shards(shards, None, ShardOptions.of(given))


def learn_shards(shards: Any, y: Any, options: ShardOptions) -> Learner:
    """Learn from shards of files, or of a matrix with its labels."""
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
        # The terms are those of the first shard.
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
            p = learner._p(schema.n_columns)
            learner.intercept_scaling = intercept_scale(surveys[0].beginning, p)
        mixture = Mixture(learner, schema, len(given), options.memory_limit)
        return Rounds(backend, surveys, mixture, options).run()


@dataclass(frozen=True)
class _Rows:
    """Some of the rows of all shards, by which a learner is chosen."""

    schema: Schema
    parts: list[tuple[Csr, np.ndarray]]

    def candidate(self, params: dict[str, Any]) -> Candidate:
        """What rows like these are learned by."""
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
    """Makes the learner that the options ask for, or one by the rows."""

    options: ShardOptions
    chosen: Candidate | None  # None: an algorithm is named, or the rows choose
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
    """What makes the learner; refused where shards can't be learned from so."""
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
    """Refuse what can't be learned on shards."""
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
    learner._check_parameters()
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
    """Refuse what is told of other shards than these."""
    for name in names:
        value, off = getattr(options, name), getattr(ShardOptions, name)
        # An array, which classes may be, is equal to nothing as a whole.
        if value is not off and (off is None or value != off):
            raise ValueError(f"{name}={value!r} {why}. Leave it out.")
