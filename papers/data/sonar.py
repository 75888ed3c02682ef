"""The sonar data: mines and rocks, with the aspect-angle split of their first users."""

import re
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag
from sparsemargin.datasets._copies import LocalFile
from sparsemargin.datasets._local import DataHome, read_files
from sparsemargin.datasets._registry import data_sets

SonarSubset = Literal["aspect", "aspect_test", "all"]

_HEADING = re.compile(r"\*?C[MR]\d+:")
_SIX = r"[01]\.\d{4}(?: [01]\.\d{4}){5}"
# A pattern is its name and ten lines of six numbers, the braces around them.
_PATTERN_LINES = (
    (_HEADING, "the name of a pattern"),
    (re.compile(r"\{" + _SIX), "'{' and six numbers"),
    *[(re.compile(" " + _SIX), "six numbers")] * 8,
    (re.compile(" " + _SIX + r"\}"), "six numbers and '}'"),
)


def load_sonar(
    subset: SonarSubset = "aspect", *, return_X_y: bool = False, data_home: DataHome = None
) -> Bunch | tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sonar returns from a metal cylinder and from rocks: the energy in 60 frequency bands.

    Nothing is fetched: the files are looked for in `data_home`, in the folder that the
    environment variable SPARSEMARGIN_DATA names, and in the cache, where
    ``python -m sparsemargin.datasets download sonar`` puts them. Size and sha256 are checked.

    Parameters
    ----------
    subset : {"aspect", "aspect_test", "all"}, default="aspect"
        ``"aspect"``: the 104 training patterns of the aspect-angle dependent experiments, starred
        in the files; ``"aspect_test"``: the 104 others; ``"all"``: the 208. Always the mines
        first, then the rocks, either in file order.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, ndarray of shape (n_samples, 60), float64, values in [0, 1]; ``target``, ndarray
        of shape (n_samples,), int64, +1 for mines and -1 for rocks; ``target_names``, ndarray of
        the names of -1 and +1 in this order; ``frame``, None; ``DESCR``, source, licence and
        citation.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    FileNotFoundError
        If a file is in none of the folders; the message tells how to fetch it.
    ValueError
        If an argument is wrong, or a file is not the published one.

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
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.array(["rock", "mine"]),
        DESCR=data_sets()["sonar"].description,
    )


def _parse(file: LocalFile) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The patterns of one class in file order, and which of them are starred."""
    lines = [(number, line.rstrip()) for number, line in enumerate(file.lines(), 1)]
    headings = (at for at, (_, line) in enumerate(lines) if _HEADING.fullmatch(line))
    body = [(number, line) for number, line in lines[next(headings, len(lines)) :] if line]
    starred: list[bool] = []
    values: list[str] = []
    for position, (number, line) in enumerate(body):
        form, meaning = _PATTERN_LINES[position % len(_PATTERN_LINES)]
        if not form.fullmatch(line):
            raise file.malformed(number, line, meaning)
        if form is _HEADING:
            starred.append(line.startswith("*"))
        else:
            values += line.strip(" {}").split()
    n_rows, rest = divmod(len(body), len(_PATTERN_LINES))
    if rest:
        raise file.malformed(len(lines) + 1, "", _PATTERN_LINES[rest][1])
    file.check_count(n_rows)
    return np.array(values, dtype=np.float64).reshape(file.file.shape), np.array(starred)
