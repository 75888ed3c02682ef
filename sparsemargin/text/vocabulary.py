"""The terms of a vectorizer and their columns, made a dict only where one is asked for."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemargin._engine.text.counting import Lexicon


class Vocabulary:
    """Which feature each column counts.

    Parameters
    ----------
    lexicon : Lexicon
        Features by number, in the order in which they were first met.
    numbers : array of int32
        The number of each column's feature.
    as_words : bool
        Whether n-grams are made of words.
    """

    def __init__(self, lexicon: Lexicon, numbers: np.ndarray, as_words: bool) -> None:
        self.lexicon = lexicon
        self.numbers = numbers
        self.as_words = as_words
        self._columns: np.ndarray | None = None

    @classmethod
    def of_terms(cls, terms: Mapping[Any, Any], as_words: bool) -> "Vocabulary":
        """That of terms and their columns; those that no text can have keep theirs."""
        lexicon = Lexicon()
        columns = {
            number: column
            for term, column in terms.items()
            if isinstance(term, str)
            if (number := lexicon.add(str(term), as_words)) is not None
        }
        vocabulary = cls(lexicon, np.full(len(terms), -1, np.int32), as_words)
        vocabulary.numbers[list(columns.values())] = list(columns)
        return vocabulary

    def saved(self) -> dict[str, np.ndarray]:
        """The terms by column, to be kept in a file."""
        text, ends = self.lexicon.spelled(self.numbers)
        return {"text": text, "ends": ends}

    @classmethod
    def restored(cls, saved: dict[str, np.ndarray], as_words: bool) -> "Vocabulary":
        """What was saved; a ValueError where that is damaged."""
        text, lexicon = saved["text"].tobytes(), Lexicon()
        text.decode("utf-8", "surrogatepass")
        numbers = lexicon.add_spelled(text, saved["ends"], as_words)
        if np.bincount(numbers).max(initial=0) > 1:
            raise ValueError("a term comes twice")
        return cls(lexicon, numbers, as_words)

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def columns(self) -> np.ndarray:
        """The column of each number of the lexicon, -1 where it has none, and a -1 behind them."""
        if self._columns is None:
            columns = np.full(len(self.lexicon) + 1, -1, np.int32)
            there = self.numbers >= 0
            columns[self.numbers[there]] = np.flatnonzero(there)
            self._columns = columns
        return self._columns

    def keep(self, kept: np.ndarray) -> None:
        """Leave columns out, by a mask."""
        self.numbers = self.numbers[kept]
        self._columns = None

    def sort(self) -> np.ndarray:
        """Sort the columns by their terms. Returns the new column of each."""
        columns = self.columns[self.lexicon.order()]
        before = columns[columns >= 0]
        now = np.empty_like(before)
        now[before] = np.arange(len(before), dtype=now.dtype)
        self.numbers = self.numbers[before]
        self._columns = None
        return now

    def terms(self) -> list[str]:
        """Of all columns, in their order."""
        return self.lexicon.terms(self.numbers)

    def as_dict(self) -> dict[str, int]:
        """Column by term, those first that were met first."""
        by_number = np.argsort(self.numbers)
        terms = self.lexicon.terms(self.numbers[by_number])
        return dict(zip(terms, by_number.tolist(), strict=True))
