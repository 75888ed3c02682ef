"""The colon data of Alon et al.: tumours and normal tissues."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_flag

from ._local import DataHome, read_files
from ._registry import data_sets
from ._tables import read_rows, to_labels, to_values

_N_FACTS = 2  # sample, class


def load_colon(
    *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Colon microarrays (Alon et al. 1999): 40 tumours and 22 normal tissues, 2000 genes.

    The values are the study's intensities (positive, not logarithms) of the 2000 genes with the
    highest minimal intensity; the genes are numbered, not named. Samples come in the study's
    order. Who the patients are is not told: a tumour and the normal tissue of the same one may
    come to lie on both sides of a split.

    Nothing is fetched, and no address serves the file, which holds the published numbers in
    another form: it is looked for in `data_home`, in the folder that the environment variable
    SPARSEMARGIN_DATA names, and in the cache. Size and sha256 are checked. Licence: none stated.

    Parameters
    ----------
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (62, 2000), float64; ``target``, ndarray of shape (62,), int64,
        +1 for tumour and -1 for normal; ``target_names``, ndarray of the names of -1 and +1 in
        this order; ``feature_names``, list of str; ``frame``, None; ``DESCR``, source, licence
        and citation.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    FileNotFoundError
        If the file is in none of the folders; the message tells how to get it.
    ValueError
        If an argument is wrong, or the file is not the registered one.

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
    (file,) = read_files("colon", data_home)
    n_rows, n_features = file.file.shape
    header, *rows = read_rows(file.path, file.lines(), _N_FACTS + n_features)
    X = to_values(file.path, [row[_N_FACTS:] for row in rows], n_rows)
    y = to_labels(file.path, [row[1] for row in rows], "n", "t")
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.array(["normal", "tumour"]),
        feature_names=header[_N_FACTS:],
        DESCR=data_sets()["colon"].description,
    )
