"""How fast are texts made rows, beside scikit-learn's vectorizers, and in how much memory?

The texts are paragraphs of the documentation on this machine: Python's and its packages', their
docstrings, and what systems keep in /usr/share. Both libraries take turns, on one thread; their
matrices have to be the same to the bit. Memory is that of a process apart.

    python benchmarks/text_speed.py [--megabytes 50] [--rounds 3] [--only count tfidf ...]
"""

import argparse
import random
import re
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction import text as theirs
from timing import added_by, apart, describe_machine, race, write_json

from sparsemargin import text as ours

SUFFIXES = {".txt", ".rst", ".md", ".html", ".py"}
DOCSTRING = re.compile('"""(.*?)"""', re.S)
TAG = re.compile("<[^>]+>")
SHORTEST, LONGEST = 300, 2000
#: English in letters that are not ASCII.
CYRILLIC = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "абцдефгхийклмнопярстувжщызАБЦДЕФГХИЙКЛМНОПЯРСТУВЖЩЫЗ",
)

WITHIN = {"analyzer": "char_wb", "ngram_range": (3, 5)}
#: Name: vectorizer, parameters, whether the letters are Cyrillic, and the share of the texts.
CASES: dict[str, tuple[str, dict[str, Any], bool, float]] = {
    "count": ("CountVectorizer", {}, False, 1),
    "tfidf": ("TfidfVectorizer", {}, False, 1),
    "bigrams": ("TfidfVectorizer", {"ngram_range": (1, 2)}, False, 0.4),
    "hashing": ("HashingVectorizer", {"norm": None}, False, 1),
    "hashing tfidf": ("HashingVectorizer", {}, False, 1),
    "hashing bigrams": ("HashingVectorizer", {"ngram_range": (1, 2)}, False, 0.4),
    "char_wb": ("CountVectorizer", WITHIN, False, 0.05),
    "char_wb tfidf": ("TfidfVectorizer", WITHIN, False, 0.05),
    "cyrillic count": ("CountVectorizer", {}, True, 0.5),
    "cyrillic tfidf": ("TfidfVectorizer", {}, True, 0.5),
    "cyrillic char_wb": ("CountVectorizer", WITHIN, True, 0.03),
}


def documentation() -> Iterator[str]:
    """The text of all files that look like documentation."""
    roots = [Path("/usr/share"), Path("/opt"), Path(sysconfig.get_path("stdlib"))]
    roots.append(Path(sysconfig.get_path("purelib")))
    for path in (path for root in roots for path in sorted(root.rglob("*"))):
        if path.suffix not in SUFFIXES or not path.is_file():
            continue
        try:
            text = path.read_text(errors="ignore")
        except OSError:
            continue
        if path.suffix == ".py":
            text = "\n\n".join(DOCSTRING.findall(text))
        yield TAG.sub(" ", text) if path.suffix == ".html" else text


@cache
def paragraphs() -> list[str]:
    """Documents of 300 to 2,000 ASCII characters."""
    found, document = [], ""
    for text in documentation():
        for each in re.split(r"\n\s*\n", text.encode("ascii", "ignore").decode()):
            document += each.strip() + "\n"
            if len(document) > SHORTEST:
                found.append(document[:LONGEST])
                document = ""
    return found


def texts_of(case: str, megabytes: float) -> list[str]:
    """Paragraphs in any order, and in another one again where they are too few."""
    _, _, is_cyrillic, share = CASES[case]
    draw, texts, size = random.Random(0), [], 0.0
    while size < megabytes * share * 1e6:
        for text in draw.sample(paragraphs(), len(paragraphs())):
            texts.append(text)
            size += len(text)
            if size >= megabytes * share * 1e6:
                break
    return [text.translate(CYRILLIC) for text in texts] if is_cyrillic else texts


def assert_same(X: Any, Y: Any) -> None:
    for part in ("indptr", "indices", "data"):
        if not np.array_equal(getattr(X, part), getattr(Y, part)):
            raise AssertionError(f"{part} differ")


def timed_beside(case: str, texts: list[str], n_rounds: int) -> dict[str, Any]:
    name, params, _, _ = CASES[case]
    size = sum(len(text.encode()) for text in texts) / 1e6
    vectorizers = {
        "theirs": getattr(theirs, name)(**params),
        "ours": getattr(ours, name)(**params),
        "ours, two threads": getattr(ours, name)(n_jobs=2, **params),
    }
    last: dict[str, Any] = {}
    calls = {
        each: (lambda _, v=v: partial(v.fit_transform, texts)) for each, v in vectorizers.items()
    }
    fits, _ = race(calls, n_rounds, last.__setitem__)
    for X in list(last.values())[1:]:
        assert_same(last["theirs"], X)
    shape, n_entries = last["ours"].shape, last["ours"].nnz
    last.clear()
    again = {each: (lambda _, v=v: partial(v.transform, texts)) for each, v in vectorizers.items()}
    transforms, _ = race(again, n_rounds, lambda name, X: None)
    return {
        "case": case, "megabytes": size, "shape": shape, "entries": n_entries,
        "fit_transform": {each: size / min(seconds) for each, seconds in fits.items()},
        "transform": {each: size / min(seconds) for each, seconds in transforms.items()},
    }  # fmt: skip


def memory(library: str, case: str, texts: list[str]) -> dict[str, float]:
    """Run apart."""
    name, params, _, _ = CASES[case]
    vectorizer = getattr(ours if library == "ours" else theirs, name)(**params)
    return added_by(
        lambda: vectorizer.fit_transform(texts[:100]), lambda: vectorizer.fit_transform(texts)
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    print(describe_machine())
    print(f"{'MB/s, fit_transform':20} {'theirs':>8} {'ours':>8} {'ratio':>6} {'2 thr.':>7} "
          f"{'transform':>10} {'memory':>7}")  # fmt: skip
    report = []
    for case in given.only:
        texts = texts_of(case, given.megabytes)
        entry = timed_beside(case, texts, given.rounds)
        if sys.platform == "linux":
            entry["memory"] = {
                library: apart(memory, library, case, texts)["added_bytes"]
                for library in ("theirs", "ours")
            }
        report.append(entry)
        fit, again = entry["fit_transform"], entry["transform"]
        share = entry["memory"]["ours"] / entry["memory"]["theirs"] if "memory" in entry else 1.0
        print(f"{case:20} {fit['theirs']:8.2f} {fit['ours']:8.1f} "
              f"{fit['ours'] / fit['theirs']:6.1f} "
              f"{fit['ours, two threads'] / fit['ours']:6.2f}x {again['ours']:10.1f} "
              f"{share:7.0%}", flush=True)  # fmt: skip
    if given.out:
        write_json(given.out, {"cases": report})


if __name__ == "__main__":
    main()
