"""The leukaemia data of Golub et al.: two kinds of acute leukaemia, training and test samples."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag

from ._local import DataHome, read_files
from ._registry import data_sets
from ._tables import read_rows, to_labels, to_values

LeukemiaSubset = Literal["train", "test", "all"]

_N_FACTS = 3  # sample, split, class


def load_leukemia(
    subset: LeukemiaSubset = "all", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Leukaemia microarrays (Golub et al. 1999): 47 ALL and 25 AML samples, 7129 probes.

    The values are average differences as published: integers, many of them negative, neither
    thresholded nor logarithms. The 7129 probes include the controls of the array (names that
    begin with AFFX).

    Nothing is fetched, and no address serves the file, which holds the published numbers in
    another form: it is looked for in `data_home`, in the folder that the environment variable
    SPARSEMARGIN_DATA names, and in the cache. Size and sha256 are checked. Licence: none stated.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="all"
        ``"train"``: the study's 38 initial samples (27 ALL, 11 AML); ``"test"``: its 34
        independent ones (20 ALL, 14 AML), from other laboratories in part; ``"all"``: the 72.
        Always by sample number.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 7129), float64; ``target``, ndarray of shape
        (n_samples,), int64, +1 for AML and -1 for ALL; ``target_names``, ndarray of the names of
        -1 and +1 in this order; ``feature_names``, list of the probes' names; ``frame``, None;
        ``DESCR``, source, licence and citation.
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
    (file,) = read_files("leukemia", data_home)
    n_rows, n_features = file.file.shape
    header, *rows = read_rows(file.path, file.lines(), _N_FACTS + n_features)
    X = to_values(file.path, [row[_N_FACTS:] for row in rows], n_rows)
    y = to_labels(file.path, [row[2] for row in rows], "ALL", "AML")
    training = to_labels(file.path, [row[1] for row in rows], "test", "train") == 1
    if subset != "all":
        chosen = training if subset == "train" else ~training
        X, y = X[chosen], y[chosen]
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.array(["ALL", "AML"]),
        feature_names=header[_N_FACTS:],
        DESCR=data_sets()["leukemia"].description,
    )
