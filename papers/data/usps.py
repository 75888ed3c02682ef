"""USPS: handwritten digits from envelopes, 16 x 16 grey values."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin.datasets._copies import LocalFile
from sparsemargin.datasets._local import DataHome, read_files
from sparsemargin.datasets._registry import data_sets
from sparsemargin.datasets._tables import read_blank_separated, to_digits, to_values

USPSSubset = Literal["train", "test", "all"]

_FILES = {"train": slice(0, 1), "test": slice(1, 2), "all": slice(0, 2)}
_IMAGE_SHAPE = (16, 16)


def load_usps(
    subset: USPSSubset = "train", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """USPS: 7291 handwritten digits to learn from and 2007 to test on, 16 x 16 grey values.

    The values lie in [-1, 1], -1 is the background; they have three decimals. These are the data of
    the book The Elements of Statistical Learning, which calls the test digits difficult and an
    error of 2.5 % on them excellent.

    Nothing is fetched: the files are looked for in `data_home`, in the folder that the environment
    variable SPARSEMARGIN_DATA names, and in the cache, where
    ``python -m sparsemargin.datasets download usps`` puts them. They may be packed by gzip or not,
    and write the numbers with any number of zeros at the end: the sha256 of the numbers is checked.
    Licence: none stated.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        ``"train"``: the 7291 training digits; ``"test"``: the 2007 test digits; ``"all"``: the
        9298, those for training first. Always in file order.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 256), float64, the rows of pixels one after the
        other; ``target``, ndarray of shape (n_samples,), int64, the digits; ``target_names``,
        ndarray of their names; ``image_shape``, (16, 16); ``frame``, None; ``DESCR``, source,
        licence and citation.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    FileNotFoundError
        If a file is in none of the folders; the message tells how to fetch it.
    ValueError
        If an argument is wrong, or a file does not hold the published numbers.

    References
    ----------
    Y. Le Cun et al. (1990). Handwritten digit recognition with a back-propagation network. NIPS 2,
    396-404.
    T. Hastie, R. Tibshirani, J. Friedman (2009). The Elements of Statistical Learning, second
    edition, section 11.7 and the book's web page.

    Examples
    --------
    >>> from papers.data import load_usps
    >>> X, y = load_usps("test", return_X_y=True)
    >>> X.shape, int((y == 0).sum())
    ((2007, 256), 359)
    """
    check_choice("subset", subset, get_args(USPSSubset))
    return_X_y = check_flag("return_X_y", return_X_y)
    parts = [_parse(file) for file in read_files("usps", data_home, _FILES[subset])]
    X = np.vstack([values for values, _ in parts])
    y = np.concatenate([digits for _, digits in parts])
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.arange(10).astype(str),
        image_shape=_IMAGE_SHAPE,
        DESCR=data_sets()["usps"].description,
    )


def _parse(file: LocalFile) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The grey values and the digits; the file has the digit first."""
    n_rows, n_features = file.file.shape
    rows = read_blank_separated(file.path, file.lines(), 1 + n_features)
    table = to_values(file.path, rows, n_rows)
    return table[:, 1:], to_digits(file.path, table[:, 0])
