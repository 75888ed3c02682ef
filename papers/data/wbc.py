"""The Wisconsin breast cancer data (original): complete samples, and the separable subset."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin._docs import LOADER, shares
from sparsemargin.datasets.files import DataHome, data_sets, read_files

WBCSubset = Literal["complete", "separable"]

_FEATURES = [
    "Clump Thickness",
    "Uniformity of Cell Size",
    "Uniformity of Cell Shape",
    "Marginal Adhesion",
    "Single Epithelial Cell Size",
    "Bare Nuclei",
    "Bland Chromatin",
    "Normal Nucleoli",
    "Mitoses",
]
# Tsampouka & Shawe-Taylor count the complete rows from 1.
_LEFT_OUT = np.array([2, 4, 191, 217, 227, 245, 252, 286, 307, 420, 475]) - 1


@shares(**LOADER)
def load_wbc(
    subset: WBCSubset = "complete", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Wisconsin breast cancer (original): nine attributes of cell samples, integers from 1 to 10.

    ``python -m papers.data download wbc`` fetches the file.

    Parameters
    ----------
    subset : {"complete", "separable"}, default="complete"
        ``"complete"``: the 683 rows that lack no attribute, in file order; not linearly
        separable. ``"separable"``: those without the 11 that Tsampouka & Shawe-Taylor remove,
        their ``WBC_-11`` of 672 rows.
    $parameters

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 9), float64, without the sample's code number;
        ``target``, ndarray of shape (n_samples,), int64, +1 for malignant and -1 for benign;
        ``target_names``, ndarray of the names of -1 and +1 in this order; ``feature_names``, list
        of the publisher's names; ``frame``, None; ``DESCR``, source, licence and citation.
    $raises

    References
    ----------
    P. Tsampouka, J. Shawe-Taylor (2006), section 5: Table 3 (``"separable"``), Table 4
    (``"complete"``, soft margin).

    Examples
    --------
    >>> from papers.data import load_wbc
    >>> X, y = load_wbc(return_X_y=True)
    >>> X.shape, int((y == 1).sum())
    ((683, 9), 239)
    """
    check_choice("subset", subset, get_args(WBCSubset))
    return_X_y = check_flag("return_X_y", return_X_y)
    (file,) = read_files("wbc", data_home)
    rows = [line.split(",") for line in file.lines() if "?" not in line]
    X = np.array([row[1:-1] for row in rows], dtype=np.float64)
    y = np.array([1 if row[-1] == "4" else -1 for row in rows], dtype=np.int64)
    if subset == "separable":
        X, y = np.delete(X, _LEFT_OUT, axis=0), np.delete(y, _LEFT_OUT)
    if return_X_y:
        return X, y
    return data_sets()["wbc"].bunch(X, y, ["benign", "malignant"], feature_names=list(_FEATURES))
