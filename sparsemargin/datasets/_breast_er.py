"""Breast tumours by estrogen receptor status: the data at hand, or those of the paper."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag

from ._local import DataHome, find_file, read_files
from ._registry import data_sets
from ._tables import read_rows, to_labels, to_values

BreastSource = Literal["auto", "gruvberger2001", "west2001"]

# The registry describes files by their sha256; of this one no copy was found to take it from.
_GRUVBERGER_FILE = "breast_er_gruvberger2001.csv"
_GRUVBERGER_SHAPE = (58, 3389)
_GRUVBERGER_DESCR = f"""\
Breast tumours by estrogen receptor status, 58 cDNA arrays of 3389 genes (Gruvberger 2001)

Files: {_GRUVBERGER_FILE}, the user's own copy: layout checked, content not
Publisher: Gruvberger et al., Cancer Research 61 (2001)
Licence: not known
Cite: Gruvberger et al., Estrogen receptor status in breast cancer is associated with remarkably \
distinct gene expression patterns, Cancer Research 61 (2001) 5979-5984"""


class _Tumours(NamedTuple):
    """What a source holds."""

    source: str
    X: NDArray[np.float64]
    y: NDArray[np.int64]
    description: str


def load_breast_er(
    source: BreastSource = "auto", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Breast tumours by estrogen receptor (ER) status, from one of two studies.

    The "Breast" data of the Higher-order Perceptron paper are those of Gruvberger et al. (2001),
    58 samples of 3389 genes, of which no public copy was found. West et al. (2001) stand in for
    them: the same question about other tumours on other arrays, so that the paper's figures
    cannot be expected to come out.

    ``"west2001"``, breast_er_west2001.csv.gz: 49 samples of 7129 probes without names. The values
    are signed and heavy-tailed, as published: scale them for methods that mind. That class 1 is
    ER+ (25 samples, against 24) was concluded from the counts, the study's design and the probe
    that separates the classes best; the file does not say it. Licence: none stated.

    ``"gruvberger2001"``, breast_er_gruvberger2001.csv, if you have it: a text of 58 lines without
    a header, each of 3389 numbers and then the class, 1 for ER+ and 0 for ER-, separated by
    commas, no value missing. Only this layout is checked.

    Nothing is fetched, no address serves the files: they are looked for in `data_home`, in the
    folder that the environment variable SPARSEMARGIN_DATA names, and in the cache. Size and
    sha256 of West's are checked.

    Parameters
    ----------
    source : {"auto", "gruvberger2001", "west2001"}, default="auto"
        Which of the two; ``"auto"``: the paper's if it is found in one of the folders, else
        West's.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (49, 7129) or (58, 3389), float64; ``target``, ndarray of shape
        (n_samples,), int64, +1 for ER+ and -1 for ER-; ``target_names``, ndarray of the names of
        -1 and +1 in this order; ``source``, the study used, ``"gruvberger2001"`` or
        ``"west2001"``; ``frame``, None; ``DESCR``, source, licence and citation.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    FileNotFoundError
        If the file is in none of the folders; the message tells how to get it.
    ValueError
        If an argument is wrong, the file is not the registered one or not of the layout above.

    References
    ----------
    M. West et al. (2001). Predicting the clinical status of human breast cancer by using gene
    expression profiles. PNAS 98, 11462-11467.
    S. Gruvberger et al. (2001). Estrogen receptor status in breast cancer is associated with
    remarkably distinct gene expression patterns. Cancer Research 61, 5979-5984.
    C. Brotto, C. Gentile, F. Vitale (2007). On higher-order Perceptron algorithms. NIPS 20,
    section 4, Task 1.

    Examples
    --------
    >>> from sparsemargin.datasets import load_breast_er
    >>> breast = load_breast_er("west2001")
    >>> breast.data.shape, breast.source, int((breast.target == 1).sum())
    ((49, 7129), 'west2001', 25)
    """
    check_choice("source", source, get_args(BreastSource))
    return_X_y = check_flag("return_X_y", return_X_y)
    tumours = _load(source, data_home)
    if return_X_y:
        return tumours.X, tumours.y
    return Bunch(
        data=tumours.X,
        target=tumours.y,
        frame=None,
        target_names=np.array(["ER-", "ER+"]),
        source=tumours.source,
        DESCR=tumours.description,
    )


def _load(source: BreastSource, data_home: DataHome) -> _Tumours:
    own = None if source == "west2001" else find_file(_GRUVBERGER_FILE, data_home)
    if own is not None:
        lines = own.read_text(encoding="ascii", errors="backslashreplace").splitlines()
        try:
            X, y = _parse(own, lines, _GRUVBERGER_SHAPE)
        except ValueError as error:
            raise ValueError(f"{error}; the docstring of load_breast_er gives the layout") from None
        return _Tumours("gruvberger2001", X, y, _GRUVBERGER_DESCR)
    if source == "gruvberger2001":
        raise FileNotFoundError(
            f"{_GRUVBERGER_FILE} is neither in data_home nor in the folder SPARSEMARGIN_DATA nor "
            "in the cache. No public copy is known: write your own in the layout that the "
            "docstring of load_breast_er gives, or take source='west2001'"
        )
    (file,) = read_files("breast_er", data_home)
    n_rows, n_features = file.file.shape
    X, y = _parse(file.path, file.lines(), (n_rows, n_features))
    return _Tumours("west2001", X, y, data_sets()["breast_er"].description)


def _parse(
    path: Path, lines: Sequence[str], shape: tuple[int, int]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    n_rows, n_features = shape
    rows = read_rows(path, lines, n_features + 1)
    X = to_values(path, [row[:-1] for row in rows], n_rows)
    return X, to_labels(path, [row[-1].strip() for row in rows], "0", "1")
