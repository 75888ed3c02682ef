"""Letter recognition: capital letters in twenty fonts, described by 16 integers."""

from string import ascii_uppercase
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin._docs import LOADER, shares
from sparsemargin.datasets.files import DataHome, data_sets, read_files

LetterSubset = Literal["train", "test", "all"]

_FEATURES = [
    "x-box",
    "y-box",
    "width",
    "high",
    "onpix",
    "x-bar",
    "y-bar",
    "x2bar",
    "y2bar",
    "xybar",
    "x2ybr",
    "xy2br",
    "x-ege",
    "xegvy",
    "y-ege",
    "yegvx",
]
_N_TEST = 4000


@shares(**LOADER)
def load_letter(
    subset: LetterSubset = "train", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Letter recognition: 20,000 distorted capital letters, 16 attributes from 0 to 15 each.

    The attributes are moments and edge counts of the images, scaled to integers by the publisher.

    ``python -m papers.data download letter`` fetches the file. It may be packed by gzip
    or not.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        ``"train"``: the first 16,000 rows, as the data's first users had it; ``"test"``: the last
        4000; ``"all"``: the 20,000. Always in file order.
    $parameters

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 16), float64; ``target``, ndarray of shape
        (n_samples,), str, ``"A"`` to ``"Z"``; ``target_names``, ndarray of the 26 letters;
        ``feature_names``, list of the publisher's names; ``frame``, None; ``DESCR``, source,
        licence and citation.
    $raises

    References
    ----------
    P. W. Frey, D. J. Slate (1991). Letter recognition using Holland-style adaptive classifiers.
    Machine Learning 6, 161-182 (the split).

    Examples
    --------
    >>> from papers.data import load_letter
    >>> X, y = load_letter(return_X_y=True)
    >>> X.shape, y[:4].tolist()
    ((16000, 16), ['T', 'I', 'D', 'N'])
    """
    check_choice("subset", subset, get_args(LetterSubset))
    return_X_y = check_flag("return_X_y", return_X_y)
    (file,) = read_files("letter", data_home)
    chosen = {"train": np.s_[:-_N_TEST], "test": np.s_[-_N_TEST:], "all": np.s_[:]}[subset]
    rows = [line.split(",") for line in file.lines()[chosen]]
    X = np.array([row[1:] for row in rows], dtype=np.float64)
    y = np.array([row[0] for row in rows])
    if return_X_y:
        return X, y
    return data_sets()["letter"].bunch(X, y, ascii_uppercase, feature_names=list(_FEATURES))
