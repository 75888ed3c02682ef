"""A stream as long as one likes: a few chunks of rows in turn, with labels drawn anew each time."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_matrix

from sparsemargin.datasets import make_zipf_text

N_FEATURES = 50_000
N_CHUNKS = 8
CHUNK_ROWS = 25_000
MEAN_NNZ = 50
#: Labels that are wrong, so that corrections never cease.
NOISE = 0.1
#: Values are multiples of it: what adds them up in float32 is exact, and their text is short.
UNIT = 1 / 64


class Stream:
    """Rows of Zipf text.

    Parameters
    ----------
    n_nonzeros : int
        The stream ends with the chunk in which so many are reached.
    dtype : {"float64", "float32"}

    Attributes
    ----------
    rows : list of csr_matrix
        The chunks; no row is empty.
    """

    def __init__(self, n_nonzeros: int, dtype: str = "float64"):
        X, self._y = make_zipf_text(
            N_CHUNKS * CHUNK_ROWS, N_FEATURES, mean_nnz=MEAN_NNZ, random_state=0
        )
        X.data = (np.ceil(X.data / UNIT) * UNIT).astype(dtype)
        self.rows = [X[first : first + CHUNK_ROWS] for first in range(0, X.shape[0], CHUNK_ROWS)]
        self._n_nonzeros = n_nonzeros

    def _numbers(self) -> Iterator[tuple[int, int]]:
        """Which chunk comes when, and the nonzeros that have been by then."""
        done, turn = 0, 0
        while done < self._n_nonzeros:
            done += self.rows[turn % N_CHUNKS].nnz
            yield turn, done
            turn += 1

    def _labels(self, turn: int) -> np.ndarray:
        first = turn % N_CHUNKS * CHUNK_ROWS
        y = self._y[first : first + CHUNK_ROWS]
        return np.where(np.random.default_rng(turn).random(CHUNK_ROWS) < NOISE, -y, y)

    def chunks(self) -> Iterator[tuple[int, np.ndarray, int]]:
        """Which of the chunks is next, its labels in {-1, 1}, and the nonzeros with it counted."""
        for turn, done in self._numbers():
            yield turn % N_CHUNKS, self._labels(turn), done

    def texts(self) -> Iterator[tuple[bytearray, int]]:
        """The same as svmlight text, valid until the next is asked for."""
        texts = [_text(X) for X in self.rows]
        signs = [_starts_of_lines(text) for text in texts]
        for turn, done in self._numbers():
            text, starts = texts[turn % N_CHUNKS], signs[turn % N_CHUNKS]
            np.frombuffer(text, dtype=np.uint8)[starts] = np.where(
                self._labels(turn) > 0, ord("+"), ord("-")
            )
            yield text, done


def _text(X: csr_matrix) -> bytearray:
    entries = [f"{column}:{value:.8g}" for column, value in zip(X.indices + 1, X.data, strict=True)]
    starts = zip(X.indptr, X.indptr[1:], strict=False)
    return bytearray("".join(f"+1 {' '.join(entries[i:j])}\n" for i, j in starts), "ascii")


def _starts_of_lines(text: bytearray) -> np.ndarray:
    ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
    return np.concatenate([[0], ends[:-1] + 1])
