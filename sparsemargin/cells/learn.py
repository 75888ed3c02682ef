"""Training on cells: the implementation of `fit_anndata`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin.cells.genes import CellForm, genes_of
from sparsemargin.cells.labels import labels_of, warn_of_unassigned
from sparsemargin.cells.source import CellCorpus
from sparsemargin.genomes.cells import CellNormalizer
from sparsemargin.models import Learner
from sparsemargin.models.inputs.labels import (
    first_labels,
    label_text,
    refuse_lone,
    warn_of_many_classes,
)
from sparsemargin.models.inputs.rows import check_rows, open_rows
from sparsemargin.models.inputs.training_set import Beginning
from sparsemargin.readers.cell_files import Cells
from sparsemargin.readers.label_tables import named_table
from sparsemargin.readers.reading import SettingsError
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.stream import learn_rows, with_cache_path, with_init_model

# Default number of epochs, and the largest number of trials (rows times epochs) for which it is
# used. For more trials, the number of epochs is lowered, but not below 1.
_EPOCHS, _TRIALS = 10, 1_000_000


def learn_cells(
    what: Any, label: Any, form: CellForm, how: CellNormalizer, *, genes: Any = None,
    batch: Any = None, argument: str = "label", **given: Any,
) -> Learner:  # fmt: skip
    """Train as `sparsemargin.fit_anndata` does. Fit the normalizer `how`, and return the learner.

    `argument` is the name of the argument with the label, for error messages. Keyword arguments
    that are not fields of `StreamOptions` are parameters of the classifier.
    """
    for name in "n_features", "hash_bits", "zero_based", "multilabel", "dtype", "classes":
        if given.pop(name, None) not in (None, False, "auto"):
            raise SettingsError(f"{name} does not apply to cells. Leave it out.")
    options = StreamOptions.of(given)
    if options.init_model is not None:
        options, genes = with_init_model(options), how.feature_names_in_
    with form.open(what) as cells:
        labels = labels_of(cells, label, argument)
        tables = [found[0] for found in map(named_table, (label, batch)) if found is not None]
        has_max_iter = "max_iter" in given
        return _learn(cells, labels, tables, form, how, genes, options, has_max_iter, batch)


def _batches_of(cells: list[Cells], batch: Any) -> np.ndarray:
    """Return the code of each cell's batch, shape (n_cells,). Refuse a single batch."""
    codes, batches = labels_of(cells, batch, "batch")
    found = np.concatenate(codes)
    if (found < 0).any():
        raise ValueError(
            f"batch: {np.count_nonzero(found < 0):,} cells are not in the table. Add them."
        )
    if len(batches) < 2:
        raise ValueError(
            f"batch={batch!r} has one value, {label_text(batches.tolist()[0])!r}, but at least two "
            "batches are needed. Leave batch out."
        )
    return found


def _as_known(
    labels: tuple[list[np.ndarray], np.ndarray], known: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the codes of labels as indices into the classes of a model, and these classes. Raise a
    ValueError if a label is none of them."""
    codes, classes = labels
    places = {label_text(each): i for i, each in enumerate(known.tolist())}
    texts = list(map(label_text, classes.tolist()))
    if new := [text for text in texts if text not in places]:
        raise ValueError(
            f"init_model has no type {first_labels(new)}, and its types can't be changed. Leave "
            "such cells out, or fit a new model to all cells, without init_model."
        )
    at = np.array([*map(places.__getitem__, texts), -1], np.int32)
    return [at[each] for each in codes], known


def _learn(
    cells: list[Cells], labels: tuple[list[np.ndarray], np.ndarray], tables: list[str],
    form: CellForm, how: CellNormalizer, genes: Any, options: StreamOptions, has_max_iter: bool,
    batch: Any,
) -> Learner:  # fmt: skip
    batches = None if batch is None else _batches_of(cells, batch)
    seed = mixing_seed(options.params)
    warn_of_unassigned(labels[1])
    if options.init_model is not None and options.positive is None:
        labels = _as_known(labels, options.init_model.fitted.classes)
    codes, own_classes = labels
    # Truth values are learned as the texts that they have in files.
    classes = own_classes.astype(np.str_) if own_classes.dtype.kind == "b" else own_classes
    corpus = CellCorpus(
        cells, genes_of(cells, genes, form), how, form, codes, classes, seed, tables
    )  # fmt: skip
    if options.init_model is not None:
        corpus.check_genes()
    sources = [each.source for each in cells if each.source is not None]
    options = with_cache_path(options, sources) if sources else options
    is_new = options.positive is None and options.init_model is None
    if is_new:
        refuse_lone(classes, corpus.names)
        options = replace(options, classes=classes)
    counts = np.bincount(np.concatenate(codes) + 1)[1:]
    n_cells, chosen = int(counts.sum()), options
    warn_of_many_classes(int(np.count_nonzero(counts)), n_cells, corpus.names)
    if options.init_model is None:
        chosen = with_cell_defaults(options, n_cells, has_max_iter=has_max_iter)
    is_balanced = is_new and chosen.params.get("class_weight") == "balanced"
    if is_balanced:
        # The weights are passed, so that the cells need not be read to count them.
        weights = (n_cells / (len(counts) * counts)).tolist()
        by_class = dict(zip(classes.tolist(), weights, strict=True))
        chosen = replace(chosen, params={**chosen.params, "class_weight": by_class})
    X, some = corpus.survey()
    origin: Any = some.origin
    groups = None if batches is None else batches[origin.numbers]
    if groups is not None and len(np.unique(groups)) < 2:
        raise ValueError(
            f"batch={batch!r}: a sample of {some.n_rows:,} cells has only one batch, because the "
            "others are rare. Leave batch out."
        )
    learner = learn_rows(corpus, chosen)
    if is_balanced:
        learner.class_weight = "balanced"  # the same weights, for a later fit
    kept = learner.fitted.progress
    if kept is not None and (kept.spoiled or groups is not None or some.n_rows == n_cells):
        # Fit the probabilities to held-out outputs if the stored outputs are not valid (several
        # epochs), if the sample has all cells, or if new cells will come from other batches.
        of_cells = some.labels
        if options.positive is not None:
            names = np.array(list(map(label_text, classes.tolist())))
            of_cells = names[of_cells] == options.positive
        keep_outputs(learner, X, of_cells, groups)
    if is_new:
        rename_classes(learner, own_classes, options.params)
    return learner


def rename_classes(learner: Learner, classes: np.ndarray, params: dict[str, Any]) -> None:
    """Replace the classes by truth values of which they are the texts, or by equal ones. Class
    weights in `params` are named by these classes."""
    learner.fitted.classes = classes
    if isinstance(weights := params.get("class_weight"), Mapping):
        learner.class_weight = weights


def keep_outputs(
    learner: Learner, X: csr_matrix, codes: np.ndarray, groups: np.ndarray | None = None
) -> None:
    """Fit the probabilities of a model to held-out outputs for the cells `X`.

    Models with the same settings are trained on parts of the cells, and predict the rest. With
    `groups`, cells of one group are held out together.
    """
    fitted, rows = learner.fitted, check_rows(open_rows(X))
    seed = mixing_seed(learner.parameters())
    task = learner.make_task(rows, codes.astype(np.int64), None, progress=None)
    learner.hold_out(task, Beginning(rows, fitted.classes), seed, groups)


def mixing_seed(params: dict[str, Any]) -> int | None:
    """Return the seed with which cells are shuffled; None if they are not shuffled."""
    seed = params.get("random_state")
    seed = int(seed) if isinstance(seed, int | np.integer) else 0
    return seed if params.get("shuffle", True) else None


def with_cell_defaults(options: Any, n_cells: int, *, has_max_iter: bool) -> Any:
    """Return the options with defaults for cells filled in.

    The default classifier is ALMA's joint classifier with balanced classes, unless an algorithm or
    a `positive` type is given. The number of epochs is set unless `has_max_iter`.
    """
    if not has_max_iter:
        options = replace(options, max_iter=max(1, min(_EPOCHS, _TRIALS // max(1, n_cells))))
    if options.algo is not None or options.positive is not None:
        return options
    chosen = {"multi_class": "joint", "class_weight": "balanced"}
    return replace(options, algo="alma", params={**chosen, **options.params})
