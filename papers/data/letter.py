"""Letter recognition: capital letters in twenty fonts, described by 16 integers."""

import re
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin.datasets._copies import LocalFile
from sparsemargin.datasets._local import DataHome, read_files
from sparsemargin.datasets._registry import data_sets

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
_ROW = re.compile(rf"[A-Z](?:,(?:\d|1[0-5])){{{len(_FEATURES)}}}")
_N_TEST = 4000


def load_letter(
    subset: LetterSubset = "train", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.str_]]:
    """Letter recognition: 20,000 distorted capital letters, 16 attributes from 0 to 15 each.

    The attributes are moments and edge counts of the images, scaled to integers by the publisher.

    Nothing is fetched: the file is looked for in `data_home`, in the folder that the environment
    variable SPARSEMARGIN_DATA names, and in the cache, where
    ``python -m sparsemargin.datasets download letter`` puts it. It may be packed by gzip or not;
    size and sha256 of what is inside are checked.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        ``"train"``: the first 16,000 rows, as the data's first users had it; ``"test"``: the last
        4000; ``"all"``: the 20,000. Always in file order.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 16), float64; ``target``, ndarray of shape
        (n_samples,), str, ``"A"`` to ``"Z"``; ``target_names``, ndarray of the 26 letters;
        ``feature_names``, list of the publisher's names; ``frame``, None; ``DESCR``, source,
        licence and citation.
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
    X, y = _parse(file)
    if subset != "all":
        chosen = slice(-_N_TEST) if subset == "train" else slice(-_N_TEST, None)
        X, y = X[chosen], y[chosen]
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.array(list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")),
        feature_names=list(_FEATURES),
        DESCR=data_sets()["letter"].description,
    )


def _parse(file: LocalFile) -> tuple[NDArray[np.float64], NDArray[np.str_]]:
    lines = file.lines()
    for number, line in enumerate(lines, 1):
        if not _ROW.fullmatch(line):
            expected = f"a letter and {len(_FEATURES)} attributes from 0 to 15"
            raise file.malformed(number, line, expected)
    file.check_count(len(lines))
    values = [line.split(",")[1:] for line in lines]
    return np.array(values, dtype=np.float64), np.array([line[0] for line in lines])
