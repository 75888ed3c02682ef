"""Which analyses the engine makes, and texts as it reads them."""

from collections.abc import Iterable, Iterator
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np

from sparsemargin._engine.text.counting import Lexicon, Scanner

#: Patterns of tokens: whether they are what stands between spaces, and have two characters.
PATTERNS = {
    r"(?u)\b\w\w+\b": (False, True),
    r"\b\w\w+\b": (False, True),
    r"\w\w+": (False, True),
    r"(?u)\b\w+\b": (False, False),
    r"\b\w+\b": (False, False),
    r"(?u)\w+": (False, False),
    r"\w+": (False, False),
    r"(?u)\S+": (True, False),
    r"\S+": (True, False),
}

#: What a subclass may have of its own: scikit-learn's code then asks it.
STEPS = (
    "build_analyzer", "build_preprocessor", "build_tokenizer", "get_stop_words", "_word_ngrams",
    "_char_ngrams", "_char_wb_ngrams", "_white_spaces", "_get_hasher",
)  # fmt: skip

#: Characters of the texts that are handed over at once: Ctrl-C is heard between them.
FEWEST, MOST = 500_000, 4_000_000


def is_own(vectorizer: Any, theirs: type, name: str) -> bool:
    """Whether a vectorizer has something in place of what scikit-learn's class has."""
    return name in vars(vectorizer) or getattr(type(vectorizer), name, None) is not getattr(
        theirs, name, None
    )


def settings_of(vectorizer: Any, theirs: type) -> dict[str, Any] | None:
    """What `Scanner` is to be told; None for an analysis that it does not make."""
    v = vectorizer
    if v.preprocessor is not None or v.tokenizer is not None or callable(v.strip_accents):
        return None
    if not isinstance(v.analyzer, str) or v.analyzer not in ("word", "char", "char_wb"):
        return None
    if any(is_own(v, theirs, name) for name in STEPS):
        return None
    lengths = v.ngram_range
    if not all(isinstance(n, Integral) for n in lengths) or not 1 <= lengths[0] <= lengths[1]:
        return None
    settings = {"analyzer": v.analyzer, "ngram_range": tuple(map(int, lengths))}
    if v.analyzer == "word":
        if v.token_pattern not in PATTERNS:
            return None
        by_spaces, from_two = PATTERNS[v.token_pattern]
        if by_spaces and lengths[1] > 1:
            # Words may then hold what sorts before a space.
            return None
        settings |= {"by_spaces": by_spaces, "from_two": from_two}
        stop_words = v.get_stop_words()
        if stop_words:
            settings["stop_words"] = Lexicon()
            for word in stop_words:
                if isinstance(word, str):
                    settings["stop_words"].add(str(word), False)
    return settings


class Preparation:
    """Texts as a vectorizer's analyzer would decode them, and whether they are yet to be made
    lower-case."""

    def __init__(self, vectorizer: Any, theirs: type) -> None:
        # Warns of stop words, and refuses what is wrong with the settings.
        self.analyze = vectorizer.build_analyzer()
        self.preprocess = vectorizer.build_preprocessor()
        self.decode = vectorizer.decode
        self.lower = bool(vectorizer.lowercase)
        self.strips = bool(vectorizer.strip_accents)
        self.as_they_come = vectorizer.input == "content" and not is_own(
            vectorizer, theirs, "decode"
        )

    def blocks(self, raw_documents: Iterable[Any]) -> Iterator[tuple[list[str], bytes]]:
        """All texts, some at a time, with a flag for each."""
        documents, first, size = iter(raw_documents), 0, 64
        while block := list(islice(documents, size)):
            if self.as_they_come and not self.strips and set(map(type, block)) <= {str, np.str_}:
                flags = bytes([self.lower]) * len(block)
            else:
                pairs = [self._prepare(each, first + i) for i, each in enumerate(block)]
                block, flags = [text for text, _ in pairs], bytes(flag for _, flag in pairs)
            yield block, flags
            first += len(block)
            n_characters = sum(map(len, block))
            size = size * 2 if n_characters < FEWEST else size
            size = max(size // 2, 1) if n_characters > MOST else size

    def _prepare(self, document: Any, i: int) -> tuple[str, bool]:
        try:
            plain = self.as_they_come and type(document) is str
            text = document if plain else self.decode(document)
            if type(text) in (str, np.str_) and (not self.strips or text.isascii()):
                return text, self.lower
            text = self.preprocess(text)
            if not isinstance(text, str):
                self.analyze(document)
                raise TypeError(f"a document must be text, got {type(text).__name__}")
            return text, False
        except Exception as error:
            if type(error) in (AttributeError, TypeError, ValueError):
                shown = "is None" if document is None else f"is {type(document).__name__}"
                raise type(error)(f"{error} (texts[{i}] {shown})") from None
            error.add_note(f"It is texts[{i}].")
            raise


def scan(scanner: Scanner, blocks: Iterable[tuple[list[str], bytes]]) -> tuple[np.ndarray, ...]:
    """Values, columns and ends of the rows of all texts."""
    for texts, lower in blocks:
        scanner.scan(texts, lower)
    return scanner.take_rows()
