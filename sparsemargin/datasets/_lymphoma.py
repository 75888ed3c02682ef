"""The lymphoma data of Alizadeh et al., under each reading of "cancerous against normal"."""

from io import StringIO
from typing import Literal, get_args

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured
from numpy.typing import NDArray
from scipy.io.arff import ArffError, loadarff
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag

from ._copies import LocalFile
from ._local import DataHome, read_files
from ._registry import data_sets
from ._tables import read_rows

LymphomaLabels = Literal["malignant_66", "malignant_62", "malignant_72", "acl", "classes"]
Missing = Literal["zero", "mean", "nan"]

_PATIENTS = ("CLL", "DLBCL", "FL")
_CELL_LINES = "TCL"


def load_lymphoma(
    labels: LymphomaLabels = "malignant_66",
    *,
    missing: Missing = "zero",
    return_X_y: bool = False,
    data_home: DataHome = None,
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Lymphoma microarrays (Alizadeh et al. 2000): 96 samples, log-ratios of 4026 genes.

    The samples come in the order of the study's figure 1, neighbours being alike; the values have
    two decimals; 19,667 of them (5.09 %) are missing. The samples are of nine classes: diffuse
    large B-cell lymphoma (DLBCL, 46), follicular lymphoma (FL, 9), chronic lymphocytic leukaemia
    (CLL, 11), transformed cell lines (TCL, 6), and, normal, activated blood B cells (ABB, 10),
    resting blood B cells (RBB, 4), germinal centre B cells (GCB, 2), lymph node or tonsil (NIL,
    2), resting and activated T cells (RAT, 6).

    The task of the Higher-order Perceptron paper, cancerous against normal tissues, does not say
    where cell lines belong, nor four samples of DLBCL that the usual subset of 62 leaves out:
    `labels` chooses.

    Nothing is fetched, and no address serves the files as they are needed: they are looked for in
    `data_home`, in the folder that the environment variable SPARSEMARGIN_DATA names, and in the
    cache. Size and sha256 are checked. Licence: none stated (published research data).

    Parameters
    ----------
    labels : str, default="malignant_66"
        Which samples are positive, or what the classes are:

        - ``"malignant_66"``: DLBCL, FL and CLL, the patients' tumours, against the 30 others;
        - ``"malignant_62"``: 42 DLBCL, 9 FL and 11 CLL, the subset of many later studies,
          against the 34 others, so that four tumours count as normal;
        - ``"malignant_72"``: DLBCL, FL, CLL and TCL, against the 24 normal samples;
        - ``"acl"``: the 23 DLBCL that resemble activated B cells, as figure 1 marks them, against
          the 73 others;
        - ``"classes"``: the nine classes.
    missing : {"zero", "mean", "nan"}, default="zero"
        What stands for a missing value: 0, the log-ratio of no difference; the mean of its gene
        over all 96 samples, which a later test part thus has a share in; or NaN, for an imputer
        of your own (`sklearn.impute`).
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (96, 4026), float64; ``target``, ndarray of shape (96,), int64,
        +1 and -1, or 0 to 8 for ``"classes"``; ``target_names``, ndarray of the names of -1 and
        +1, or of 0 to 8, in this order; ``feature_names``, list of the genes' names; ``frame``,
        None; ``DESCR``, source, licence and citation.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    FileNotFoundError
        If a file is in none of the folders; the message tells how to get it.
    ValueError
        If an argument is wrong, or a file is not the registered one.

    References
    ----------
    A. A. Alizadeh et al. (2000). Distinct types of diffuse large B-cell lymphoma identified by
    gene expression profiling. Nature 403, 503-511.
    C. Brotto, C. Gentile, F. Vitale (2007). On higher-order Perceptron algorithms. NIPS 20,
    section 4, Task 1.

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
    values_file, labels_file = read_files("lymphoma", data_home)
    X, genes = _parse_values(values_file)
    y, names = _parse_labels(labels_file, labels)
    if missing != "nan":
        X = np.where(np.isnan(X), 0.0 if missing == "zero" else np.nanmean(X, axis=0), X)
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=names,
        feature_names=genes,
        DESCR=data_sets()["lymphoma"].description,
    )


def _parse_values(file: LocalFile) -> tuple[NDArray[np.float64], list[str]]:
    """The samples, NaN where a value is missing, and the names of the genes."""
    try:
        samples, attributes = loadarff(StringIO("\n".join(file.lines())))
    except (ArffError, ValueError) as error:
        raise ValueError(f"{file.path}: {error}") from error
    *genes, _ = attributes.names()
    X = structured_to_unstructured(samples[genes], dtype=np.float64)
    if X.shape != file.file.shape:
        raise ValueError(f"{file.path} holds {X.shape} values instead of {file.file.shape}")
    return X, genes


def _parse_labels(
    file: LocalFile, labels: LymphomaLabels
) -> tuple[NDArray[np.int64], NDArray[np.str_]]:
    """The target and the names of its classes."""
    _, *rows = read_rows(file.path, file.lines(), 5)
    file.check_count(len(rows))
    _, classes, figure_labels, _, in_subset = map(np.array, zip(*rows, strict=True))
    if labels == "classes":
        names, target = np.unique(classes, return_inverse=True)
        return target.astype(np.int64), names
    positive = {
        "malignant_66": np.isin(classes, _PATIENTS),
        "malignant_62": in_subset == "1",
        "malignant_72": np.isin(classes, [*_PATIENTS, _CELL_LINES]),
        "acl": figure_labels == "ACL",
    }[labels]
    names = np.array(["nonACL", "ACL"] if labels == "acl" else ["normal", "cancerous"])
    return np.where(positive, np.int64(1), np.int64(-1)), names
