"""`CellClassifier`: from counts of genes to types of cells."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from operator import attrgetter
from typing import Any, Literal, Self, get_args

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsemargin._checks import check_choice
from sparsemargin._engine.messages import warn_user
from sparsemargin._engine.state import require
from sparsemargin.cells.annotate import (
    AS_MODEL,
    CellTypes,
    PredictedCells,
    annotate,
    check_arguments,
    form_for,
    predicted_cells,
)
from sparsemargin.cells.genes import CellForm, Match
from sparsemargin.cells.labels import types_of
from sparsemargin.cells.learn import learn_cells
from sparsemargin.cells.matrices import (
    GIVEN_LABELS,
    cells_of_matrix,
    check_order,
    is_cells,
    is_label,
    with_labels,
)
from sparsemargin.cells.source import corpus_for
from sparsemargin.estimators.classifiers import as_classifier
from sparsemargin.estimators.validation import check_labels
from sparsemargin.evaluation.files import ClassEvaluation
from sparsemargin.evaluation.markers import frame_of
from sparsemargin.genomes.cells import CellNormalizer, Normalize, TargetSum, Values
from sparsemargin.models import Algorithm
from sparsemargin.models.inputs.labels import first_labels
from sparsemargin.models.pipelines import parts_of
from sparsemargin.readers.cell_files import cells_of
from sparsemargin.readers.label_tables import is_column
from sparsemargin.streaming.report import ProgressLines
from sparsemargin.streaming.stream import check_kept
from sparsemargin.tasks.saved import SavedEstimator, has_probabilities


class CellClassifier(ClassifierMixin, SavedEstimator):
    """A classifier of cell types that reads counts of genes in memory or in files.

    Counts are normalised and converted to logarithms while they are read. The fit needs memory for
    the weights and a few thousand cells, for files of any length. Cells are shuffled, so files may
    be sorted by cell type or by batch. The genes of other cells are matched by name, and their
    values are converted to the scale of the training cells.

    Parameters
    ----------
    label : str, path or mapping, default="cell_type"
        The column of `obs` with the cell types. 10x files have no such column. They need a table
        of barcodes and labels: a ``.tsv`` or ``.csv`` file, a dict or a pandas Series. If a file
        has several columns of labels, name one after the path: ``"obs.csv:cell_type"``. Cells that
        are not in the table are left out. If `fit` is given y, `label` is not used.
    algo : str, default=None
        Name of the classifier, as for `fit_csr`. None: `ALMAClassifier` with
        ``multi_class="joint"`` and ``class_weight="balanced"``. With `positive`, None selects a
        classifier as for `fit_svmlight`.
    max_iter : int, None or "auto", default="auto"
        Number of epochs. None: train until an epoch makes no correction. "auto": 10 for up to
        100,000 cells. For more cells, as many as process at most a million cells, at least one.
    class_weight : dict, "balanced", None or "auto", default="auto"
        Weights of the types, as for the classifier. "auto": "balanced" for the default classifier,
        otherwise None.
    layer : str, default=None
        Layer to read instead of ``X``; "raw" reads ``adata.raw``. None: ``X``.
    normalize : {"log1p", "counts", None}, default="log1p"
        As for `CellNormalizer`. A warning names the recognised scale of values that are no counts.
    target_sum : float, "median" or "auto", default="auto"
        As for `CellNormalizer`. If training cells have counts, totals are sums over the genes of
        the model. If they have normalised values, totals are sums over all genes of a file.
    genes : list of str, "intersection", "union" or None, default=None
        Genes of the model. None and "intersection": the genes that all files share. A warning
        reports their number if the files differ. For None, an error is raised if they are less than
        10 % of the genes of the smallest file. "union": the genes of any file; missing ones are 0.
    var : str, default=None
        The column of `var` with the names of the genes, "id" or "name" for 10x files. None:
        ``var_names``.
    match : {"exact", "case", "version"}, default="exact"
        How names of genes are compared. "exact": unchanged. "case": ignoring case. "version":
        without the version of Ensembl identifiers (ENSG00000141510.18). If several genes of a file
        compare equal, a gene with exactly the same name is used, otherwise the first. The others
        are left out, and a warning reports them.
    batch : str, path or mapping, default=None
        The column of `obs` with the batches (donors, studies), or a table, as for `label`.
        Probabilities are then calibrated for cells of new batches, by models that are fitted to
        some of the batches and tested on the others. None: batches are not used.
    random_state : int, RandomState instance or None, default=None
        Seed of the shuffling (0 unless it is an integer) and of the classifier.
    verbose : int, default=0
        If not 0, the progress is printed to standard error.
    params : dict, default=None
        Further parameters of the classifier, such as ``{"p": 4}``, and `positive`, `shuffle`,
        `cache`, `memory_limit` and `init_model`, as for `fit_svmlight`. `init_model` may be a
        fitted CellClassifier, whose types, genes and parameters are kept.

    Attributes
    ----------
    pipeline_ : Pipeline
        The fitted pipeline with the steps "normalizer" and "classifier".
    normalizer_ : CellNormalizer
    classifier_ : Classifier
    classes_ : ndarray of shape (n_classes,)
        The cell types, sorted.
    feature_names_in_, genes_ : ndarray of str, shape (n_genes,)
        Names of the genes. The columns of a matrix without names are numbered: "0", "1" and so on.
    n_features_in_ : int
        Number of genes.
    n_iter_ : float
        Number of epochs.

    See Also
    --------
    annotate : Predict the types of other cells.
    marker_genes : Genes with the largest influence on each type.

    Examples
    --------
    >>> from sparsemargin import CellClassifier
    >>> counts = [[9, 0, 1], [8, 1, 1], [0, 9, 1], [1, 9, 0]]
    >>> model = CellClassifier(random_state=0).fit(counts, ["B", "B", "T", "T"])
    >>> model.predict([[7, 0, 0]]).tolist()
    ['B']
    """

    def __init__(
        self,
        label: Any = "cell_type",
        *,
        algo: Algorithm | None = None,
        max_iter: int | Literal["auto"] | None = "auto",
        class_weight: Any = "auto",
        layer: str | None = None,
        normalize: Normalize = "log1p",
        target_sum: TargetSum = "auto",
        genes: Any = None,
        var: str | None = None,
        match: Match = "exact",
        batch: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        params: dict[str, Any] | None = None,
    ) -> None:
        self.label = label
        self.algo = algo
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.layer = layer
        self.normalize = normalize
        self.target_sum = target_sum
        self.genes = genes
        self.var = var
        self.match = match
        self.batch = batch
        self.random_state = random_state
        self.verbose = verbose
        self.params = params

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the normalizer and the classifier to cells, in memory or in files.

        Parameters
        ----------
        X : AnnData, path, list of these, DataFrame or matrix
            An AnnData may be backed. ``.h5ad``, ``.zarr`` (cells as rows, CSR or dense) and ``.h5``
            files of Cell Ranger 3 or later (10x) are read block by block, by h5py or zarr:
            ``pip install "sparsemargin[cells,zarr]"``. A 10x folder of ``matrix.mtx`` is loaded
            whole. A DataFrame has genes as columns and a row for each cell. A dense or sparse
            matrix of shape (n_cells, n_genes) has no names of genes.
        y : array-like of shape (n_cells,) or str, default=None
            Types of the cells, numbers or strings. DataFrames and matrices need it. A str names a
            column of `obs`. None: `label` names the types.

        Returns
        -------
        self : object

        Raises
        ------
        OSError
            If a file is missing or can't be read.
        ModuleNotFoundError
            If h5py, which reads ``.h5ad`` and ``.h5``, or zarr is not installed.
        ValueError
            If a parameter, a file or a value is invalid. The message names the file and the cell.
        """
        given = dict(self.params or {})
        # Some classifiers have a parameter `normalize`, too.
        if own := sorted(given.keys() & self.get_params(deep=False).keys() - {"normalize"}):
            raise ValueError(
                f"params has {own[0]!r}, which is a parameter of CellClassifier. Pass it directly: "
                f"CellClassifier({own[0]}=...)."
            )
        for name in "max_iter", "class_weight":
            if not isinstance(getattr(self, name), str) or getattr(self, name) != "auto":
                given[name] = getattr(self, name)
        if self.random_state is not None:
            given["random_state"] = self.random_state
        values: Values = "auto"
        normalizer = CellNormalizer(normalize=self.normalize, target_sum=self.target_sum)
        before, first = parts_of(given.get("init_model"))
        if first is not None:
            if before is None:
                raise ValueError("init_model must be a fitted CellClassifier or its pipeline.")
            defaults = CellClassifier().get_params(deep=False)
            names = "genes", "target_sum", "batch"
            check_kept([each for each in names if getattr(self, each) is not defaults[each]])
            given["init_model"], normalizer = first, deepcopy(before[-1])
            values = "auto" if self.normalize == "log1p" else self.normalize
        form = CellForm(self.layer, self.var, self.match, values)
        cells, classes, label, argument = self._labelled(X, y, form)
        learner = learn_cells(
            cells, label, form, normalizer, genes=self.genes, batch=self._column("batch"),
            argument=argument, algo=self.algo,
            report=ProgressLines() if self.verbose else None, **given,
        )  # fmt: skip
        if classes is not None and not given.keys() & {"positive", "init_model"}:
            learner.fitted.classes = classes  # in the type of y
        return self.keep(normalizer, as_classifier(learner))

    def predict(self, X: Any, **how: Any) -> np.ndarray:
        """Predict the types of cells.

        Parameters
        ----------
        X : AnnData, path, list of these, DataFrame or matrix
            As for `fit`. Genes are matched by name. The columns of a matrix without names are the
            genes of the model, in this order.
        **how
            `layer`, `var` and `match` if they differ from those of the model, and `normalize`: see
            `annotate`.

        Returns
        -------
        ndarray of shape (n_cells,)
            Types, which are entries of `classes_`. No cell is "unassigned": a warning reports
            cells without counts, whose type has no basis.

        Raises
        ------
        ValueError
            If the cells have too few genes of the model, or their values can't be converted to the
            scale of the training cells.
        """
        parts = list(self._predicted(X, how, steps := self._fitted_steps()))
        if n_empty := sum(int((each.weights == 0).sum()) for each in parts):
            warn_user(
                f"{n_empty:,} cells have no counts of the genes of the model, so that their types "
                "have no basis. annotate leaves them unassigned."
            )
        return steps[1].classes_[np.concatenate([each.codes for each in parts])]

    @available_if(has_probabilities)
    def predict_proba(self, X: Any, **how: Any) -> np.ndarray:
        """Predict the probabilities of the types, an ndarray of shape (n_cells, n_classes).

        The arguments and errors are those of `predict`. Probabilities are lowered for cells that
        lack genes with more than 10 % of the variance of the training cells, and are equal for
        cells without counts, as in `annotate`.
        """
        steps = self._fitted_steps()
        parts = [each.probabilities(steps[1]) for each in self._predicted(X, how, steps)]
        return np.concatenate(parts)

    def decision_function(self, X: Any, **how: Any) -> np.ndarray:
        """Return the outputs of the classifier.

        The arguments and errors are those of `predict`. The shape is (n_cells, n_classes), or
        (n_cells,) for two classes.
        """
        predicted = self._predicted(X, how, self._fitted_steps())
        outputs = np.concatenate([each.outputs for each in predicted])
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def annotate(self, adata: Any, **how: Any) -> CellTypes | None:
        """Predict the types of cells and write them to an AnnData or a file.

        Parameters, result and errors are those of ``sparsemargin.annotate(model, adata, ...)``,
        such as ``key_added="sparsemargin"``, ``threshold=0.5`` or ``majority_voting="leiden"``.
        """
        check_is_fitted(self)
        return annotate(self, adata, **how)

    def evaluate(self, X: Any, y: Any = None, **how: Any) -> Any:
        """Return precision, recall, F1 and support of each type.

        ``sklearn.metrics.ConfusionMatrixDisplay.from_estimator(model, adata, y)`` draws the
        confusion of the types.

        Parameters
        ----------
        X, y
            As for `fit`. For files, y may also be a table of labels, as `label`.
        **how
            As for `predict`.

        Returns
        -------
        DataFrame, or dict of lists without pandas
            The columns "precision", "recall", "f1", "support" (number of cells of the type) and
            "predicted" (number of cells with this prediction). The index "type" has the types.

        Warns
        -----
        UserWarning
            If cells have a type that is not in `classes_`. Their predictions count as wrong, as in
            scikit-learn's `classification_report` and in `score`.
        """
        done = self._evaluation(X, y, how)
        if n_unknown := done.unknown.total():
            warn_user(
                f"{n_unknown:,} of {done.n_rows + n_unknown:,} cells have types that the model "
                f"lacks: {first_labels(list(done.unknown))}. Their predictions count as wrong."
            )
        rows = done.classes_of_all_rows()
        names = {"label": "type", "rows": "support"}
        columns = {names.get(name, name): [row[name] for row in rows] for name in rows[0]}
        return frame_of(columns, "type")

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **how: Any) -> float:
        """Return the accuracy.

        X and y are as for `evaluate`, the keyword arguments as for `predict`. `sample_weight`, of
        shape (n_cells,), needs y. Cells of types that are not in `classes_` count as wrong.
        """
        if y is not None and not is_label(X, y):
            types = self.labels_of(X, y)
            return float(accuracy_score(types, self.predict(X, **how), sample_weight=sample_weight))
        if sample_weight is not None:
            raise ValueError("sample_weight needs y. Pass the types of the cells, too.")
        done = self._evaluation(X, y, how)
        return done.n_right / (done.n_rows + done.unknown.total())

    def labels_of(self, X: Any, y: Any = None) -> Any:
        """Return the type of each cell, shape (n_cells,). `X` and `y` are as for `fit`."""
        if y is not None and not is_label(X, y):
            check_order(X, y)
            return check_labels(y)
        form = self._form({})
        what, _, label, argument = self._labelled(X, y, form)
        with form.open(what) as cells:
            return types_of(cells, label, argument)

    def _labelled(
        self, X: Any, y: Any, form: CellForm, genes: Any = None
    ) -> tuple[Any, np.ndarray | None, Any, str]:
        """Return the cells, the classes in the type of an array y, the label, and the name of the
        argument with the label. `genes` are the names for the columns of a matrix without names."""
        if is_label(X, y):
            return X, None, y, "y"
        if y is None and is_cells(X):
            return X, None, self._column("label"), "label"
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. X is "
                "neither an AnnData nor a file. Pass the type of each cell, too: (X, y)."
            )
        if hasattr(X, "obs_names"):
            cells = cells_of(X, form.layer, form.var)
        elif is_cells(X):
            raise ValueError(
                "An array y is for one AnnData, a DataFrame or a matrix. Leave it out: label names "
                "the types of the cells of files. Or pass a column of obs, or a table of barcodes "
                "and labels: a path, a dict or a pandas Series."
            )
        else:
            cells = cells_of_matrix(X, genes)
        check_order(X, y)
        return *with_labels(cells, y), GIVEN_LABELS, "y"

    def _column(self, name: str) -> Any:
        """Return `label` or `batch`. In a loaded model it must be a column, because a file from a
        stranger must not make the library open another file."""
        value = getattr(self, name)
        if not self._is_loaded or (name == "batch" and value is None):
            return value
        if not is_column(value):
            raise ValueError(
                f"A loaded model has no table of labels, and obs no column {name}={value!r}. Pass "
                "y, or fit a new CellClassifier."
            )
        return value

    def _form(self, how: dict[str, Any]) -> CellForm:
        """Return the settings for reading cells: the keyword arguments, or those of the model."""
        check_arguments(how)
        given = {name: how.get(name, AS_MODEL) for name in ("layer", "var", "match")}
        return form_for(self, **given, values=how.get("normalize", "auto"))

    def _predicted(self, X: Any, how: dict[str, Any], steps: Any) -> Iterator[PredictedCells]:
        """Predict cells by the fitted steps, and yield them block by block."""
        (normalizer, classifier), form = steps, self._form(how)
        cells = X if is_cells(X) else cells_of_matrix(X, normalizer.feature_names_in_)
        with form.open(cells) as opened:
            yield from predicted_cells(classifier, normalizer, opened, form)

    def _evaluation(self, X: Any, y: Any, how: dict[str, Any]) -> ClassEvaluation:
        """Return the evaluation of the model on labelled cells."""
        (normalizer, classifier), form = self._fitted_steps(), self._form(how)
        cells, _, label, argument = self._labelled(X, y, form, normalizer.feature_names_in_)
        positive = (self.params or {}).get("positive")
        with form.open(cells) as opened:
            corpus = corpus_for(opened, normalizer, form, label, argument)
            done = ClassEvaluation(classifier, lambda _: corpus, positive=positive)
            done.run(done.predictor.blocks())
        return done

    def check_restored(self, first: Any) -> None:
        require(isinstance(first, CellNormalizer), "a CellClassifier has no normalizer")
        check_choice("match", self.match, get_args(Match))
        for name in "layer", "var", "label", "batch":
            is_name = isinstance(getattr(self, name), str | None)
            require(is_name, f"{name} of a CellClassifier is no name")
        self._is_loaded = True

    def _plain(self, name: str, value: Any) -> Any:
        if name in ("label", "batch") and not is_column(value):
            return None  # a table of labels is needed only for training
        if name == "genes" and value is not None and not isinstance(value, str):
            return list(map(str, value))
        return super()._plain(name, value)

    _first = "normalizer"
    _is_loaded = False  # True if the parameters come from a model file

    normalizer_ = property(lambda self: self.pipeline_[0], doc="The fitted normalizer.")
    genes_ = property(attrgetter("normalizer_.feature_names_in_"), doc="Names of the genes.")
    feature_names_in_ = genes_
    n_features_in_ = property(attrgetter("normalizer_.n_features_in_"), doc="Number of genes.")
    n_iter_ = property(attrgetter("classifier_.n_iter_"), doc="Number of epochs.")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.positive_only = True, self.normalize is not None
        return tags
