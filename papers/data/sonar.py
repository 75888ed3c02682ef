"""The sonar data: mines and rocks, with the aspect-angle split of their first users."""

import re
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin._docs import LOADER, shares
from sparsemargin.datasets.files import DataHome, LocalFile, data_sets, read_files

SonarSubset = Literal["aspect", "aspect_test", "all"]


@shares(**LOADER)
def load_sonar(
    subset: SonarSubset = "aspect", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sonar returns from a metal cylinder and from rocks: the energy in 60 frequency bands.

    ``python -m papers.data download sonar`` fetches the files.

    Parameters
    ----------
    subset : {"aspect", "aspect_test", "all"}, default="aspect"
        ``"aspect"``: the 104 training patterns of the aspect-angle dependent experiments, starred
        in the files; ``"aspect_test"``: the 104 others; ``"all"``: the 208. Always the mines
        first, then the rocks, either in file order.
    $parameters

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 60), float64, values in [0, 1]; ``target``, ndarray
        of shape (n_samples,), int64, +1 for mines and -1 for rocks; ``target_names``, ndarray of
        the names of -1 and +1 in this order; ``frame``, None; ``DESCR``, source, licence and
        citation.
    $raises

    References
    ----------
    R. P. Gorman, T. J. Sejnowski (1988). Neural Networks 1, 75-89 (the split). P. Tsampouka,
    J. Shawe-Taylor (2006), section 5, Tables 1 and 2, train on ``"aspect"``.

    Examples
    --------
    >>> from papers.data import load_sonar
    >>> X, y = load_sonar(return_X_y=True)
    >>> X.shape, int((y == 1).sum())
    ((104, 60), 49)
    """
    check_choice("subset", subset, get_args(SonarSubset))
    return_X_y = check_flag("return_X_y", return_X_y)
    (mines, mines_starred), (rocks, rocks_starred) = map(_parse, read_files("sonar", data_home))
    X = np.vstack([mines, rocks])
    y = np.repeat([1, -1], [len(mines), len(rocks)])
    if subset != "all":
        starred = np.concatenate([mines_starred, rocks_starred])
        chosen = starred if subset == "aspect" else ~starred
        X, y = X[chosen], y[chosen]
    if return_X_y:
        return X, y
    return data_sets()["sonar"].bunch(X, y, ["rock", "mine"])


def _parse(file: LocalFile) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The patterns of one class in file order, and which of them are starred."""
    patterns = re.findall(r"^(\*?)C[MR]\d+:\s*{([^}]*)}", file.content.decode(), re.MULTILINE)
    values = [numbers.split() for _, numbers in patterns]
    return np.array(values, dtype=np.float64), np.array([star == "*" for star, _ in patterns])
