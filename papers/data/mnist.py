"""MNIST: handwritten digits of 28 x 28 pixels, most of them white."""

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse as sp
from sklearn.utils import Bunch

from sparsemargin._checks import check_choice, check_flag, check_float_dtype
from sparsemargin.datasets._copies import LocalFile
from sparsemargin.datasets._local import DataHome, read_files
from sparsemargin.datasets._registry import data_sets
from sparsemargin.datasets._tables import to_digits

MNISTSubset = Literal["train", "test", "all"]

_FILES = {"train": slice(0, 2), "test": slice(2, 4), "all": slice(0, 4)}
_IMAGE_SHAPE = (28, 28)
_UNSIGNED_BYTES = 0x08


def load_mnist(
    subset: MNISTSubset = "train",
    *,
    dtype: DTypeLike = np.float32,
    return_X_y: bool = False,
    data_home: DataHome = None,
) -> Bunch | tuple[sp.csr_matrix, NDArray[np.int64]]:
    """MNIST: 60,000 handwritten digits to learn from and 10,000 to test on, 28 x 28 pixels.

    The values are the greys as published, 0 (background) to 255; 81 % of them are 0. On them the
    ALMA paper's kernel, ``(1 + x . z / 255) ** d``, is ``kernel="poly"`` with ``gamma=1 / 255``,
    ``coef0=1`` and ``degree=d``.

    Nothing is fetched: the files are looked for in `data_home`, in the folder that the environment
    variable SPARSEMARGIN_DATA names, and in the cache, where
    ``python -m sparsemargin.datasets download mnist`` puts them. They may be packed by gzip, in any
    way, or not; size and sha256 of what is inside are checked. Licence: CC BY-SA 3.0, as commonly
    stated.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        ``"train"``: the 60,000 training images; ``"test"``: the 10,000 test images; ``"all"``: the
        70,000, those for training first. Always in file order.
    dtype : {numpy.float32, numpy.float64}, default=numpy.float32
        Type of the values, which either holds exactly.
    return_X_y : bool, default=False
        Return ``(data, target)`` in place of a Bunch.
    data_home : str or path, default=None
        The folder to look in first.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        ``data``, csr_matrix of shape (n_samples, 784) with 32-bit indices, the rows of pixels one
        after the other; ``target``, ndarray of shape (n_samples,), int64, the digits;
        ``target_names``, ndarray of their names; ``image_shape``, (28, 28); ``frame``, None;
        ``DESCR``, source, licence and citation.
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
    Y. LeCun, L. Bottou, Y. Bengio, P. Haffner (1998). Gradient-based learning applied to document
    recognition. Proceedings of the IEEE 86, 2278-2324.

    Examples
    --------
    >>> from papers.data import load_mnist
    >>> digits = load_mnist("test")
    >>> digits.data.shape, int((digits.target == 0).sum())
    ((10000, 784), 980)
    >>> digits.data[0].toarray().reshape(digits.image_shape)[7, 6:12].tolist()
    [84.0, 185.0, 159.0, 151.0, 60.0, 36.0]
    """
    check_choice("subset", subset, get_args(MNISTSubset))
    dtype = check_float_dtype(dtype)
    return_X_y = check_flag("return_X_y", return_X_y)
    files = read_files("mnist", data_home, _FILES[subset])
    greys = [_read_images(file) for file in files[0::2]]
    y = np.concatenate([_read_labels(file) for file in files[1::2]])
    X = _to_csr(greys[0] if len(greys) == 1 else np.vstack(greys), dtype)
    if return_X_y:
        return X, y
    return Bunch(
        data=X,
        target=y,
        frame=None,
        target_names=np.arange(10).astype(str),
        image_shape=_IMAGE_SHAPE,
        DESCR=data_sets()["mnist"].description,
    )


def _read_images(file: LocalFile) -> NDArray[np.uint8]:
    """One row of greys per image."""
    n_images, n_pixels = file.file.shape
    return _read_idx(file, (n_images, *_IMAGE_SHAPE)).reshape(n_images, n_pixels)


def _read_labels(file: LocalFile) -> NDArray[np.int64]:
    return to_digits(file.path, _read_idx(file, file.file.shape))


def _read_idx(file: LocalFile, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """The read-only array of an idx file; a ValueError tells how it is not one of this shape."""
    content = file.unpacked()
    magic = bytes([0, 0, _UNSIGNED_BYTES, len(shape)])
    if content[:4] != magic:
        raise ValueError(
            f"{file.path}: expected the magic number {magic.hex()} of {len(shape)}-dimensional "
            f"unsigned bytes in idx format, found {content[:4].hex()!r}"
        )
    start = 4 + 4 * len(shape)
    sizes = content[4:start]
    found = tuple(np.frombuffer(sizes, dtype=">u4", count=len(sizes) // 4).tolist())
    if found != shape:
        raise ValueError(f"{file.path}: expected the sizes {shape} in its header, found {found}")
    if len(content) - start != math.prod(shape):
        raise ValueError(
            f"{file.path}: expected {math.prod(shape):,} values, as its header says, found "
            f"{len(content) - start:,}"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _to_csr(greys: NDArray[np.uint8], dtype: np.dtype) -> sp.csr_matrix:
    """What ``csr_matrix(greys)`` gives, several times faster."""
    n_rows, n_columns = greys.shape
    inked = greys != 0
    columns = np.broadcast_to(np.arange(n_columns, dtype=np.int32), greys.shape)
    ends = np.zeros(n_rows + 1, dtype=np.int32)
    np.cumsum(np.count_nonzero(inked, axis=1), out=ends[1:])
    return sp.csr_matrix((greys[inked].astype(dtype), columns[inked], ends), shape=greys.shape)
