"""The texts that the file benchmarks read: the same rows in svmlight's format and in vw's."""

import gzip
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from corpora import Shape, draw_corpus
from scipy.sparse import csr_matrix

from sparsemargin.io.files import replacing

FEW_ROWS = 100
FORMATS = ("svm", "vw")


@dataclass(frozen=True)
class Texts:
    """Texts of one draw, in a folder of their own.

    Every name stands for two files: ``NAME.svm`` and ``NAME.vw``.
    """

    folder: Path
    shape: Shape

    def path(self, name: str, kind: str = "svm") -> Path:
        return self.folder / f"{name}.{kind}"

    def size(self, name: str, kind: str = "svm") -> int:
        return self.path(name, kind).stat().st_size


def open_texts(folder: Path, shape: Shape) -> Texts:
    """Return the texts, having written those that are not there.

    They are ``train``, ``train-twice`` (the same twice over), ``few`` (its first rows) and
    ``test``, and ``train.svm.gz``.
    """
    texts = Texts(folder / f"{shape.name}-{shape.n_train}", shape)
    texts.folder.mkdir(parents=True, exist_ok=True)
    if not (texts.path("train").exists() and texts.path("test").exists()):
        _write_rows(texts)
    for name in "train", "test":
        _once(texts.path(name, "vw"), texts.path(name), _as_vw)
    for kind in FORMATS:
        _once(texts.path("few", kind), texts.path("train", kind), _head)
        _once(texts.path("train-twice", kind), texts.path("train", kind), _twice)
    _once(texts.path("train", "svm.gz"), texts.path("train"), _packed)
    return texts


def _write_rows(texts: Texts) -> None:
    print(f"writing {texts.path('train')}", file=sys.stderr, flush=True)
    corpus = draw_corpus(texts.shape)
    for name, X, y in (("train", corpus.X, corpus.y), ("test", corpus.X_test, corpus.y_test)):
        with replacing(texts.path(name)) as out:
            out.writelines(_svmlight_lines(X, y))


def _svmlight_lines(X: csr_matrix, y: np.ndarray) -> Iterator[bytes]:
    for i, label in enumerate(y):
        row = slice(X.indptr[i], X.indptr[i + 1])
        entries = zip((X.indices[row] + 1).tolist(), X.data[row].tolist(), strict=True)
        yield f"{label:+.0f} {' '.join(map('%d:%.6f'.__mod__, entries))}\n".encode()


def _once(path: Path, source: Path, write: Callable[[BinaryIO, BinaryIO], None]) -> None:
    """Write a file from another one, unless it is there."""
    if not path.exists():
        print(f"writing {path}", file=sys.stderr, flush=True)
        with source.open("rb") as text, replacing(path) as out:
            write(text, out)


def _as_vw(text: BinaryIO, out: BinaryIO) -> None:
    """`+1 137:0.165224 ...` becomes `1 |f 137:0.165224 ...`."""
    for line in text:
        label, _, features = line.partition(b" ")
        out.write(b"%d |f %b" % (int(label), features))


def _head(text: BinaryIO, out: BinaryIO) -> None:
    out.writelines(islice(text, FEW_ROWS))


def _twice(text: BinaryIO, out: BinaryIO) -> None:
    for _ in range(2):
        text.seek(0)
        shutil.copyfileobj(text, out, 1 << 20)


def _packed(text: BinaryIO, out: BinaryIO) -> None:
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as packed:
        shutil.copyfileobj(text, packed, 1 << 20)
