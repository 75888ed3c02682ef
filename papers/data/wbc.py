"""The Wisconsin breast cancer data (original): complete samples, and the separable subset."""

import re
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin.datasets._copies import LocalFile
from sparsemargin.datasets._local import DataHome, read_files
from sparsemargin.datasets._registry import data_sets

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
_ROW = re.compile(rf"\d+((?:,(?:[1-9]|10|\?)){{{len(_FEATURES)}}}),([24])")
# Tsampouka & Shawe-Taylor count the complete rows from 1.
_LEFT_OUT = np.array([2, 4, 191, 217, 227, 245, 252, 286, 307, 420, 475]) - 1


def load_wbc(
    subset: WBCSubset = "complete", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Wisconsin breast cancer (original): nine attributes of cell samples, integers from 1 to 10.

    Nothing is fetched: the file is looked for in `data_home`, in the folder that the environment
    variable SPARSEMARGIN_DATA names, and in the cache, where
    ``python -m sparsemargin.datasets download wbc`` puts it. Size and sha256 are checked.

    Parameters
    ----------
    subset : {"complete", "separable"}, default="complete"
        ``"complete"``: the 683 rows that lack no attribute, in file order; not linearly
        separable. ``"separable"``: those without the 11 that Tsampouka & Shawe-Taylor remove,
        their ``WBC_-11`` of 672 rows.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 9), float64, without the sample's code number;
        ``target``, ndarray of shape (n_samples,), int64, +1 for malignant and -1 for benign;
        ``target_names``, ndarray of the names of -1 and +1 in this order; ``feature_names``, list
        of the publisher's names; ``frame``, None; ``DESCR``, source, licence and citation.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    FileNotFoundError
        If the file is in none of the folders; the message tells how to fetch it.
    ValueError
        If an argument is wrong, or the file is not the published one.

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
    X, y = _parse(file)
    if subset == "separable":
        X, y = np.delete(X, _LEFT_OUT, axis=0), np.delete(y, _LEFT_OUT)
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.array(["benign", "malignant"]),
        feature_names=list(_FEATURES),
        DESCR=data_sets()["wbc"].description,
    )


def _parse(file: LocalFile) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rows that lack no attribute, in file order."""
    rows, labels = [], []
    lines = file.lines()
    for number, line in enumerate(lines, 1):
        match = _ROW.fullmatch(line)
        if match is None:
            expected = f"a number, {len(_FEATURES)} attributes from 1 to 10 or ?, and 2 or 4"
            raise file.malformed(number, line, expected)
        if "?" not in line:
            rows.append(match[1].split(",")[1:])
            labels.append(1 if match[2] == "4" else -1)
    file.check_count(len(lines))
    return np.array(rows, dtype=np.float64), np.array(labels, dtype=np.int64)
