"""The terms of a vectorizer and their columns, from which a dict is made only on request."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsemargin._engine.text.counting import Lexicon

#: Prefixes of the names of character n-grams, and of words that begin with one of the prefixes.
CHAR, WORD = "char: ", "word: "


class Vocabulary:
    """The term that each column counts.

    `lexicon` numbers terms in the order of their first occurrence. `numbers` has the number of each
    column's term, or -1 if no text can contain the term, as int32. `as_words` specifies whether
    n-grams consist of words or of characters.
    """

    def __init__(self, lexicon: Lexicon, numbers: np.ndarray, as_words: bool) -> None:
        self.lexicon = lexicon
        self.numbers = numbers
        self.as_words = as_words
        self._columns: np.ndarray | None = None

    @classmethod
    def of_terms(cls, terms: Mapping[Any, Any], as_words: bool) -> "Vocabulary":
        """Return the vocabulary of a dict of terms and their columns.

        Terms that no text can contain, such as objects that are not str, keep their columns.
        """
        lexicon = Lexicon()
        columns = {
            number: column
            for term, column in terms.items()
            if isinstance(term, str)
            if (number := lexicon.add(str(term), as_words)) is not None
        }
        vocabulary = cls(lexicon, np.full(len(terms), -1, np.int32), as_words)
        # Columns may be floats, which scikit-learn accepts.
        places = np.array(list(columns.values()), dtype=np.intp)
        vocabulary.numbers[places] = list(columns)
        return vocabulary

    def saved(self) -> dict[str, np.ndarray]:
        """Return the terms in the order of their columns, as arrays for a file."""
        text, ends = self.lexicon.spelled(self.numbers)
        return {"text": text, "ends": ends}

    @classmethod
    def restored(cls, saved: dict[str, np.ndarray], as_words: bool) -> "Vocabulary":
        """Return the vocabulary of the arrays from `saved`. Damaged arrays raise a ValueError."""
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
        """The column of each number of the lexicon, as int32 of shape (n_terms + 1,).

        It is -1 for terms without a column. The additional last element is -1, too.
        """
        if self._columns is None:
            columns = np.full(len(self.lexicon) + 1, -1, np.int32)
            there = self.numbers >= 0
            columns[self.numbers[there]] = np.flatnonzero(there)
            self._columns = columns
        return self._columns

    def keep(self, kept: np.ndarray) -> None:
        """Keep only the columns for which the boolean mask `kept` is True."""
        self.numbers = self.numbers[kept]
        self._columns = None

    def sort(self) -> np.ndarray:
        """Sort the columns by their terms, and return the new column of each old column."""
        columns = self.columns[self.lexicon.order()]
        before = columns[columns >= 0]
        now = np.empty_like(before)
        now[before] = np.arange(len(before), dtype=now.dtype)
        self.numbers = self.numbers[before]
        self._columns = None
        return now

    def terms(self) -> list[str]:
        """Return the terms of all columns, in the order of the columns."""
        return self.lexicon.terms(self.numbers)

    def as_dict(self) -> dict[str, int]:
        """Return a dict from terms to columns, in the order of first occurrence."""
        by_number = np.argsort(self.numbers)
        terms = self.lexicon.terms(self.numbers[by_number])
        return dict(zip(terms, by_number.tolist(), strict=True))
