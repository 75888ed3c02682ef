"""A text as HTML, with its words marked by their contributions to an output."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from sparsemargin.text.vocabulary import CHAR

_WORD = re.compile(r"\w+")

# Colours of words that support the class and that contradict it, readable on light and dark pages.
_FOR, _AGAINST = "46, 160, 67", "218, 54, 51"

# Opacity of the mark of the word with the largest contribution.
_OPACITY = 0.6


def word_contributions(
    text: str, names: Sequence[str], contributions: Iterable[float]
) -> tuple[list[tuple[int, int]], np.ndarray]:
    """Divide the contributions of terms among the words of a text.

    The contribution of a term is divided equally among the words in which it occurs. Terms are
    found in the lowercased text; others, such as those of hashed columns without names, are left
    out.

    Returns
    -------
    spans : list of tuple
        Start and end of each word.
    shares : ndarray of shape (n_words,)
    """
    spans = [match.span() for match in _WORD.finditer(text)]
    words = [text[start:end].lower() for start, end in spans]
    # Word n-grams skip words of one letter.
    long = [i for i, word in enumerate(words) if len(word) > 1]
    starts: dict[str, list[int]] = {}
    for at, i in enumerate(long):
        starts.setdefault(words[i], []).append(at)
    shares = np.zeros(len(words))
    for name, contribution in zip(names, contributions, strict=True):
        if name.startswith(CHAR):
            gram = name.removeprefix(CHAR)
            found = [i for i, word in enumerate(words) if gram in f" {word} "]
        else:
            parts = name.lower().split(" ")
            runs = [long[at : at + len(parts)] for at in starts.get(parts[0], ())]
            found = [i for run in runs if [words[i] for i in run] == parts for i in run]
        if found:
            np.add.at(shares, found, contribution / len(found))
    return spans, shares


def as_html(text: str, names: Sequence[str], contributions: Iterable[float]) -> str:
    """Return a text as HTML. Words that support the class are green, others are red."""
    spans, shares = word_contributions(text, names, contributions)
    largest = np.abs(shares).max(initial=0.0)
    pieces, done = [], 0
    for (start, end), share in zip(spans, shares.tolist(), strict=True):
        pieces.append(escape(text[done:start]))
        word, strength = escape(text[start:end]), abs(share) / largest if largest else 0.0
        if strength >= 0.05:
            colour = _FOR if share > 0 else _AGAINST
            word = (
                f'<span style="background: rgba({colour}, {_OPACITY * strength:.2f})" '
                f'title="{share:+.3g}">{word}</span>'
            )
        pieces.append(word)
        done = end
    return "".join([*pieces, escape(text[done:])])
