"""Speed of vectorizing texts and of training from text files, compared with scikit-learn.

The texts are paragraphs of the documentation on this machine: of Python and its packages, their
docstrings, and files in /usr/share. All vectorizers take turns, ours on one thread and on two; the
matrices must be bitwise equal. Memory is measured in a separate process. The floor is a C loop that
finds the words of ASCII text, hashes each and counts the hash; it makes no rows.

    python benchmarks/text_speed.py [--quick] [--rounds N] [--only vectorizers stream one]
"""

import ctypes
import os
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction import text as theirs
from timing import FOLDER, added_by, apart, parser_of, race, run, timed

from sparsemargin import fit_text
from sparsemargin import text as ours

SUFFIXES = {".txt", ".rst", ".md", ".html", ".py"}
DOCSTRING = re.compile('"""(.*?)"""', re.S)
TAG = re.compile("<[^>]+>")
SHORTEST, LONGEST = 300, 2000
#: Replaces English letters with non-ASCII letters.
CYRILLIC = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "абцдефгхийклмнопярстувжщызАБЦДЕФГХИЙКЛМНОПЯРСТУВЖЩЫЗ",
)

WITHIN = {"analyzer": "char_wb", "ngram_range": (3, 5)}
#: For each case: vectorizer, parameters, whether letters are Cyrillic, and the share of the texts.
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
    """Yield the text of all files that look like documentation."""
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
    """Paragraphs in random order, repeated in another order if there are too few."""
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
        "two threads": getattr(ours, name)(n_jobs=2, **params),
    }
    last: dict[str, Any] = {}
    calls = {
        each: (lambda _, v=v: partial(v.fit_transform, texts)) for each, v in vectorizers.items()
    }
    fits, _ = race(calls, n_rounds, last.__setitem__)
    for X in list(last.values())[1:]:
        assert_same(last["theirs"], X)
    last.clear()
    again = {"ours": lambda _: partial(vectorizers["ours"].transform, texts)}
    transforms, _ = race(again, n_rounds, lambda name, X: None)
    best = {each: size / min(seconds) for each, seconds in fits.items()}
    return {
        "contestant": case, "text MB": size,
        "theirs MB/s": best["theirs"], "ours MB/s": best["ours"],
        "ratio": best["ours"] / best["theirs"], "threads": best["two threads"] / best["ours"],
        "transform": size / min(transforms["ours"]) / best["ours"],
    }  # fmt: skip


def memory(library: str, case: str, texts: list[str]) -> dict[str, float]:
    """Run in a new process: the memory of a transformation."""
    name, params, _, _ = CASES[case]
    vectorizer = getattr(ours if library == "ours" else theirs, name)(**params)
    return added_by(
        lambda: vectorizer.fit_transform(texts[:100]), lambda: vectorizer.fit_transform(texts)
    )


def floor(texts: list[str]) -> float:
    """MB/s of the C loop."""
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder, "words.so")
        command = [os.environ.get("CC", "gcc"), "-O3", "-shared", "-fPIC", FOLDER / "words.c"]
        subprocess.run([*command, "-o", built], check=True)
        count = ctypes.CDLL(str(built)).count_words
    text = "\n".join(texts).encode()
    counts = (ctypes.c_int32 * (1 << 20))()
    calls = (timed(partial(count, text, ctypes.c_size_t(len(text)), counts)) for _ in range(5))
    return len(text) / 1e6 / min(seconds for seconds, _ in calls)


def vectorizers(options: Namespace) -> dict[str, Any]:
    entries, megabytes = [], 5 if options.quick else 50
    of_floor: float | None = None
    for case in CASES:
        texts = texts_of(case, megabytes)
        entry = timed_beside(case, texts, options.rounds)
        if not CASES[case][2]:
            of_floor = of_floor or floor(texts)
            entry["of the floor"] = entry["ours MB/s"] / of_floor
        if sys.platform == "linux":
            added = {
                library: apart(memory, library, case, texts)["added_bytes"]
                for library in ("theirs", "ours")
            }
            entry["memory"] = added["ours"] / added["theirs"]
        entries.append(entry)
    return {"vectorizers": entries}


def stream(options: Namespace) -> dict[str, Any]:
    """Time `sparsemargin train` on a file in the format of fastText. The label is whether a certain
    word occurs; 1 in 30 labels is wrong."""
    draw = random.Random(0)
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.txt")
        with path.open("w", encoding="utf-8") as file:
            for text in texts_of("count", 20 if options.quick else 1000):
                label = (" python" in text.lower()) != (draw.random() < 1 / 30)
                file.write(f"__label__{label} {' '.join(text.split())}\n")
        for algo in ("arow", None):
            command = [sys.executable, "-m", "sparsemargin", "train", path, "-o", "model"]
            entry = apart(train, [*map(str, command), *(["--algo", algo] if algo else [])], folder)
            megabytes = path.stat().st_size / 1e6
            entries.append(
                {"contestant": algo or "as it comes", "text MB": megabytes,
                 "MB/s": megabytes / entry["seconds"], **entry}
            )  # fmt: skip
    return {"stream": entries}


def train(command: list[str], folder: str) -> dict[str, float]:
    """Seconds and peak memory of a command; run in a new process."""
    import resource

    seconds, _ = timed(
        partial(subprocess.run, command, cwd=folder, check=True, capture_output=True)
    )
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return {"seconds": seconds, "peak_bytes": peak * (1 if sys.platform == "darwin" else 1024)}


def one(options: Namespace) -> dict[str, Any]:
    """Microseconds for one text, by the pipeline and by its two steps."""
    texts = texts_of("count", 2)
    model = fit_text(texts, [" python" in text.lower() for text in texts], random_state=0)
    vectorizer, classifier = model.vectorizer_, model.classifier_
    text = [texts[0][:120]]
    calls = {
        "pipeline": lambda: model.predict(text),
        "its steps": lambda: classifier.predict(vectorizer.transform(text)),
    }

    def hundred(call: Any) -> None:
        for _ in range(100):
            call()

    found, _ = race(
        {name: (lambda _, call=call: partial(hundred, call)) for name, call in calls.items()},
        max(options.rounds, 5), lambda name, result: None,
    )  # fmt: skip
    return {"one": [{"contestant": name, "us": min(each) * 1e4} for name, each in found.items()]}


if __name__ == "__main__":
    run(
        parser_of(__doc__, "results/texts.json"),
        {"vectorizers": vectorizers, "stream": stream, "one": one}, (3, 1),
    )  # fmt: skip
