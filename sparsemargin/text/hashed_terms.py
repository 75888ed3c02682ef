"""Names of hashed columns, and their terms in one block of memory, as in model files."""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from sparsemargin._engine.state import array_of, require


class HashedTerms(Mapping[int, str]):
    """A read-only mapping from columns to terms. It takes 6 times less memory than a dict.

    `columns` are the sorted columns, as int64. The term of column i is ``text[ends[i - 1] :
    ends[i]]``, where `text` is UTF-8.
    """

    def __init__(self, columns: np.ndarray, text: bytes, ends: np.ndarray) -> None:
        self._columns, self._text, self._ends = columns, text, ends

    @staticmethod
    def saved(terms: Mapping[int, str]) -> dict[str, np.ndarray]:
        """Return terms as arrays for a file."""
        columns = np.array(sorted(terms), np.int64)
        spelled = [terms[column].encode("utf-8", "surrogatepass") for column in columns.tolist()]
        ends = np.cumsum([len(each) for each in spelled], dtype=np.int64)
        return {
            "columns": columns, "text": np.frombuffer(b"".join(spelled), np.uint8), "ends": ends
        }  # fmt: skip

    @classmethod
    def restored(cls, saved: Any, n_columns: int) -> "HashedTerms":
        """Return the terms of the arrays from `saved`. Damaged arrays raise a ValueError."""
        columns = array_of(saved, "columns", np.int64, (None,), 0, n_columns - 1)
        require((columns[1:] > columns[:-1]).all(), "'columns' do not rise")
        text = array_of(saved, "text", np.uint8, (None,))
        ends = array_of(saved, "ends", np.int64, columns.shape)
        bounds = np.append(0, ends)
        require((bounds[1:] >= bounds[:-1]).all() and bounds[-1] == len(text),
                "'ends' do not lead to the end of 'text'")  # fmt: skip
        # A byte of the form 10xxxxxx continues a character.
        first_bytes = text[bounds[bounds < len(text)]]
        require((first_bytes & 0xC0 != 0x80).all(), "a term begins within a character")
        content = text.tobytes()
        content.decode("utf-8", "surrogatepass")
        return cls(columns, content, ends)

    def __len__(self) -> int:
        return len(self._columns)

    def __iter__(self) -> Iterator[int]:
        return iter(self._columns.tolist())

    def __getitem__(self, column: int) -> str:
        i = int(np.searchsorted(self._columns, column))
        if i == len(self._columns) or self._columns[i] != column:
            raise KeyError(column)
        start = int(self._ends[i - 1]) if i else 0
        return self._text[start : self._ends[i]].decode("utf-8", "surrogatepass")


class HashedNames(Sequence[str]):
    """Names of columns: a term for some columns, the column's number for all others."""

    def __init__(self, n_columns: int, terms: dict[int, str]) -> None:
        self.n_columns, self.terms = n_columns, terms

    def __len__(self) -> int:
        return self.n_columns

    def __getitem__(self, column: Any) -> Any:
        if isinstance(column, slice):
            return [self[j] for j in range(*column.indices(self.n_columns))]
        column = range(self.n_columns)[column]  # IndexError if out of range
        return self.terms.get(column, str(column))


class NamedColumns:
    """Mixin of hashing vectorizers that names columns after the terms of given texts only."""

    def names_in(self, texts: Sequence[str]) -> Sequence[str]:
        """Return the names of columns: terms of these texts, and numbers for all other columns."""
        vectorizer: Any = copy(self)
        return vectorizer.remember_terms(texts).get_feature_names_out()  # type: ignore[no-any-return]
