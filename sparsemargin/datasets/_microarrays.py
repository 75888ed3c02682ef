"""Loaders of microarrays; the registry describes the columns of their files."""

import csv
from io import StringIO
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured
from numpy.typing import NDArray
from scipy.io.arff import loadarff
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin._docs import LOADER, shares

from .files import DataHome, DataSet, LocalFile, data_sets, read_files

LeukemiaSubset = Literal["train", "test", "all"]
LymphomaLabels = Literal["malignant_66", "malignant_62", "malignant_72", "acl", "classes"]
Missing = Literal["zero", "mean", "nan"]
Loaded: TypeAlias = Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]

# For each value of `labels`: a column of the file, and the words in it that mark positive samples.
_POSITIVE = {
    "malignant_66": ("malignant_66", ["1"]),
    "malignant_62": ("in_62_subset", ["1"]),
    "malignant_72": ("class9", ["DLBCL", "FL", "CLL", "TCL"]),
    "acl": ("figure1_label", ["ACL"]),
}


class _Table(NamedTuple):
    """The samples of a file: the columns that the registry names, as words, and the features."""

    dataset: DataSet
    columns: dict[str, NDArray[np.str_]]
    values: NDArray[np.float64]
    features: list[str]

    def samples(self, return_X_y: bool, chosen: slice | NDArray = np.s_[:]) -> Loaded:
        """The result of a loader for the chosen samples, labeled by the column "class"."""
        X, y = self.values[chosen], _signs(self.columns["class"] == self.dataset.classes[1])[chosen]
        if return_X_y:
            return X, y
        named = {"feature_names": self.features} if self.features else {}
        return self.dataset.bunch(X, y, self.dataset.target_names, **named)


def _read(name: str, data_home: DataHome) -> _Table:
    """Read a data set of one file."""
    (file,) = read_files(name, data_home)
    return _parse(data_sets()[name], file)


def _parse(dataset: DataSet, file: LocalFile) -> _Table:
    """Read comma-separated cells; the sha256 of the file guarantees the format of the registry."""
    named = [column for column in dataset.columns if column != "values"]
    first = (*dataset.columns, "values").index("values")
    header, *rows = csv.reader(file.lines())
    if not dataset.header:
        header, rows = [], [header, *rows]
    cells = np.array(rows)
    stop = first + cells.shape[1] - len(named)
    words = np.char.strip(np.hstack([cells[:, :first], cells[:, stop:]]))
    columns = dict(zip(named, words.T, strict=True))
    return _Table(dataset, columns, cells[:, first:stop].astype(np.float64), header[first:stop])


def _signs(positive: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.where(positive, np.int64(1), np.int64(-1))


@shares(**LOADER)
def load_colon(*, return_X_y: bool = False, data_home: DataHome = None) -> Loaded:
    """Colon microarrays (Alon et al. 1999): 40 tumours and 22 normal tissues, 2000 genes.

    The values are the study's intensities (positive, not logarithms) of the 2000 genes with the
    highest minimal intensity. The genes are numbered, not named. Samples are in the study's order.
    Patients are not identified: a tumour and the normal tissue of the same patient may be on
    different sides of a split. Tumours are labelled +1, normal tissues -1.

    ``python -m sparsemargin.datasets download colon`` creates the file from the authors' pages,
    rounded to two decimals as in most later copies. Licence: none stated. Other copies have
    different numbers, namely logarithms.

    Parameters
    ----------
    $parameters

    $returns
    $raises

    References
    ----------
    U. Alon et al. (1999). Broad patterns of gene expression revealed by clustering analysis of
    tumor and normal colon tissues probed by oligonucleotide arrays. PNAS 96, 6745-6750.

    Examples
    --------
    >>> from sparsemargin.datasets import load_colon
    >>> X, y = load_colon(return_X_y=True)
    >>> X.shape, int((y == 1).sum())
    ((62, 2000), 40)
    """
    return_X_y = check_flag("return_X_y", return_X_y)
    return _read("colon", data_home).samples(return_X_y)


@shares(**LOADER)
def load_leukemia(
    subset: LeukemiaSubset = "all", *, return_X_y: bool = False, data_home: DataHome = None
) -> Loaded:
    """Leukaemia microarrays (Golub et al. 1999): 47 ALL and 25 AML samples, 7129 probes.

    The values are average differences as published: integers, many of them negative, neither
    thresholded nor logarithms. The 7129 probes include the controls of the array (names that
    begin with AFFX). AML is labelled +1, ALL -1.

    ``python -m sparsemargin.datasets download leukemia`` creates the file from a copy of the
    study's two tables. Licence: none stated. The sets of 3051 genes in R packages are filtered and
    have different numbers, namely logarithms.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        ``"train"``: the study's 38 initial samples (27 ALL, 11 AML); ``"test"``: its 34
        independent samples (20 ALL, 14 AML), partly from other laboratories; ``"all"``: the 72.
        Samples are sorted by number.
    $parameters

    $returns
    $raises

    References
    ----------
    T. R. Golub et al. (1999). Molecular classification of cancer: class discovery and class
    prediction by gene expression monitoring. Science 286, 531-537.

    Examples
    --------
    >>> from sparsemargin.datasets import load_leukemia
    >>> X, y = load_leukemia("train", return_X_y=True)
    >>> X.shape, int((y == 1).sum())
    ((38, 7129), 11)
    """
    check_choice("subset", subset, get_args(LeukemiaSubset))
    return_X_y = check_flag("return_X_y", return_X_y)
    table = _read("leukemia", data_home)
    training = table.columns["split"] == "train"
    chosen = {"train": training, "test": ~training, "all": np.s_[:]}[subset]
    return table.samples(return_X_y, chosen)


@shares(**LOADER)
def load_breast_er(*, return_X_y: bool = False, data_home: DataHome = None) -> Loaded:
    """Breast tumours by estrogen receptor (ER) status (West et al. 2001): 49 samples, 7129 probes.

    These data replace the "Breast" data of the Higher-order Perceptron paper (Gruvberger et al.
    2001), of which no public copy was found. The question is the same, the tumours are others.

    The probes have no names. The values are signed and heavy-tailed, as published. The file does
    not say which class is ER+; this was concluded from the counts (25 samples, against 24), the
    study's design and the probe that separates the classes best. ER+ is labelled +1, ER- -1.
    Licence: none stated.

    Parameters
    ----------
    $parameters

    $returns
    $raises

    References
    ----------
    M. West et al. (2001). Predicting the clinical status of human breast cancer by using gene
    expression profiles. PNAS 98, 11462-11467.

    Examples
    --------
    >>> from sparsemargin.datasets import load_breast_er
    >>> X, y = load_breast_er(return_X_y=True)
    >>> X.shape, int((y == 1).sum())
    ((49, 7129), 25)
    """
    return_X_y = check_flag("return_X_y", return_X_y)
    return _read("breast_er", data_home).samples(return_X_y)


@shares(**LOADER)
def load_lymphoma(
    labels: LymphomaLabels = "malignant_66",
    *,
    missing: Missing = "zero",
    return_X_y: bool = False,
    data_home: DataHome = None,
) -> Loaded:
    """Lymphoma microarrays (Alizadeh et al. 2000): 96 samples, log-ratios of 4026 genes.

    The samples are in the order of the study's figure 1, where neighbours are similar. The values
    have two decimals; 19,667 of them (5.09 %) are missing. The samples have nine classes: diffuse
    large B-cell lymphoma (DLBCL, 46), follicular lymphoma (FL, 9), chronic lymphocytic leukaemia
    (CLL, 11), transformed cell lines (TCL, 6), and, normal, activated blood B cells (ABB, 10),
    resting blood B cells (RBB, 4), germinal centre B cells (GCB, 2), lymph node or tonsil (NIL,
    2), resting and activated T cells (RAT, 6). Papers classify cancerous against normal tissues in
    several ways; `labels` selects one.

    ``python -m sparsemargin.datasets download lymphoma`` fetches the numbers, and creates the
    labels from two public copies. Licence: none stated (published research data).

    Parameters
    ----------
    labels : str, default="malignant_66"
        Defines the positive samples or the classes:

        - ``"malignant_66"``: DLBCL, FL and CLL, the patients' tumours, against the 30 others;
        - ``"malignant_62"``: 42 DLBCL, 9 FL and 11 CLL, the subset of many later studies,
          against the 34 others, so that four tumours count as normal;
        - ``"malignant_72"``: DLBCL, FL, CLL and TCL, against the 24 normal samples;
        - ``"acl"``: the 23 DLBCL that resemble activated B cells, as marked in figure 1, against
          the 73 others;
        - ``"classes"``: the nine classes, 0 to 8 in the order of ``target_names``.
    missing : {"zero", "mean", "nan"}, default="zero"
        Replacement of missing values: 0, the log-ratio of no difference; the mean of the gene
        over all 96 samples, which leaks information from a later test set; or NaN, for use with
        an imputer (`sklearn.impute`).
    $parameters

    $returns
    $raises

    References
    ----------
    A. A. Alizadeh et al. (2000). Distinct types of diffuse large B-cell lymphoma identified by
    gene expression profiling. Nature 403, 503-511.

    Examples
    --------
    >>> from sparsemargin.datasets import load_lymphoma
    >>> X, y = load_lymphoma(return_X_y=True)
    >>> X.shape, int((y == 1).sum())
    ((96, 4026), 66)
    """
    check_choice("labels", labels, get_args(LymphomaLabels))
    check_choice("missing", missing, get_args(Missing))
    return_X_y = check_flag("return_X_y", return_X_y)
    log_ratios, samples_file = read_files("lymphoma", data_home)
    X, genes = _log_ratios(log_ratios, missing)
    table = _parse(data_sets()["lymphoma"], samples_file)
    if labels == "classes":
        names, y = np.unique(table.columns["class9"], return_inverse=True)
    else:
        column, words = _POSITIVE[labels]
        y = _signs(np.isin(table.columns[column], words))
        names = np.array(["nonACL", "ACL"] if labels == "acl" else table.dataset.target_names)
    if return_X_y:
        return X, y
    return table.dataset.bunch(X, y, names, feature_names=genes)


def _log_ratios(file: LocalFile, missing: Missing) -> tuple[NDArray[np.float64], list[str]]:
    """The numbers of the samples, and the names of the genes."""
    samples, attributes = loadarff(StringIO("\n".join(file.lines())))
    genes = attributes.names()[:-1]
    X = structured_to_unstructured(samples[genes], dtype=np.float64)
    if missing != "nan":
        X = np.where(np.isnan(X), 0.0 if missing == "zero" else np.nanmean(X, axis=0), X)
    return X, genes
