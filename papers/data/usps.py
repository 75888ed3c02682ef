"""USPS: handwritten digits from envelopes, 16 x 16 grey values."""

from string import digits
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin._docs import LOADER, shares
from sparsemargin.datasets.files import DataHome, data_sets, read_files

USPSSubset = Literal["train", "test", "all"]

_FILES = {"train": slice(0, 1), "test": slice(1, 2), "all": slice(0, 2)}


@shares(**LOADER)
def load_usps(
    subset: USPSSubset = "train", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """USPS: 7291 handwritten digits to learn from and 2007 to test on, 16 x 16 grey values.

    The values lie in [-1, 1], -1 is the background; they have three decimals. These are the data of
    the book The Elements of Statistical Learning, which calls the test digits difficult and an
    error of 2.5 % on them excellent.

    ``python -m papers.data download usps`` fetches the files. They may be packed by gzip
    or not. Licence: none stated.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        ``"train"``: the 7291 training digits; ``"test"``: the 2007 test digits; ``"all"``: the
        9298, those for training first. Always in file order.
    $parameters

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 256), float64, the rows of pixels one after the
        other; ``target``, ndarray of shape (n_samples,), int64, the digits; ``target_names``,
        ndarray of their names; ``image_shape``, (16, 16); ``frame``, None; ``DESCR``, source,
        licence and citation.
    $raises

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
    files = read_files("usps", data_home, _FILES[subset])
    numbers = [np.array(file.content.split(), dtype=np.float64) for file in files]
    table = np.concatenate(numbers).reshape(-1, 257)
    X, y = np.ascontiguousarray(table[:, 1:]), table[:, 0].astype(np.int64)
    if return_X_y:
        return X, y
    return data_sets()["usps"].bunch(X, y, digits, image_shape=(16, 16))
