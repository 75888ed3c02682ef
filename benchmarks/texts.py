"""From texts to labels: `fit_text` beside what else people use, by error and by seconds.

Of each set of texts three quarters are learned from, five times; seconds are those from a list of
texts in memory, or a file of them, to a model. The sets are those of the folder that
SPARSEMARGIN_DATA names: short messages (spam or not), questions (by 6 kinds, and by 50), sentences
of film reviews (good or bad) and sentences in 17 languages. Words and pairs, and that counts are
taken by their logarithms, were chosen on messages and questions.

fastText and Vowpal Wabbit are left out where they are not installed.

    python benchmarks/texts.py [--splits 5] [--sets sms trec6 ...]
"""

import argparse
import gzip
import os
import subprocess
import sys
import tempfile
import time
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sparsemargin import fit_text
from sparsemargin.models.labels import label_text

PAIRS = {"sublinear_tf": True, "ngram_range": (1, 2)}


def read(name):
    path = Path(os.environ["SPARSEMARGIN_DATA"], "texts", f"{name}.tsv.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return np.array(texts, dtype=object), np.array(labels, dtype=object)


def sets():
    questions = [np.concatenate(both) for both in zip(read("trec_train"), read("trec_test"))]  # noqa: B905
    coarse = np.array([label.split(":")[0] for label in questions[1]], dtype=object)
    return {
        "sms": read("sms"), "trec6": (questions[0], coarse), "trec50": tuple(questions),
        "polarity": read("polarity"), "languages": read("languages"),
    }  # fmt: skip


def pipeline(classifier, **settings):
    def fit(texts, labels):
        return make_pipeline(TfidfVectorizer(**settings), classifier()).fit(texts, labels).predict

    return fit


def by_file(texts, labels):
    """What people's files are learned by; a file is written before."""
    path = Path(tempfile.mkdtemp(), "texts.tsv")
    order = np.random.default_rng(0).permutation(len(texts))
    path.write_text("".join(f"{labels[i]}\t{texts[i]}\n" for i in order), encoding="utf-8")
    return path


def fast_text(path, labels):
    import fasttext

    lines = (line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines())
    other = path.with_suffix(".ft")
    other.write_text("".join(f"__label__{a} {b}\n" for a, b in lines), encoding="utf-8")
    start = time.perf_counter()
    model = fasttext.train_supervised(str(other), wordNgrams=2, thread=1, verbose=0)
    seconds = time.perf_counter() - start

    def predict(texts):
        found = [model.f.predict(f"{text}\n", 1, 0.0, "strict") for text in texts]
        return [each[0][1][len("__label__") :] if each else labels[0] for each in found]

    return predict, seconds


def vowpal(path, labels):
    names = sorted(set(labels))

    def written(pairs, suffix):
        other = path.with_suffix(suffix)
        clean = str.maketrans({":": " ", "|": " "})
        other.write_text(
            "".join(f"{names.index(a) + 1} | {b.translate(clean)}\n" for a, b in pairs),
            encoding="utf-8",
        )
        return other

    command = [sys.executable, "-m", "vowpalwabbit", "--quiet", "-b", "22", "--ngram", "2"]
    lines = [line.split("\t", 1) for line in path.read_text(encoding="utf-8").splitlines()]
    train, model = written(lines, ".vw"), path.with_suffix(".model")
    start = time.perf_counter()
    subprocess.run(
        [*command, "--oaa", str(len(names)), "-d", train, "-f", model, "--passes", "4", "-c",
         "--holdout_off", "-k"], check=True,
    )  # fmt: skip
    seconds = time.perf_counter() - start

    def predict(texts):
        test, out = written([(names[0], text) for text in texts], ".test"), path.with_suffix(".p")
        subprocess.run([*command, "-t", "-i", model, "-d", test, "-p", out], check=True)
        return [names[int(float(each)) - 1] for each in out.read_text().split()]

    return predict, seconds


IN_MEMORY = {
    "fit_text(texts, y)": lambda texts, labels: fit_text(texts, labels, random_state=0).predict,
    "TfidfVectorizer(), LinearSVC()": pipeline(LinearSVC),
    "the same of words and pairs, logarithms": pipeline(LinearSVC, **PAIRS),
    "TfidfVectorizer(), LogisticRegression()": pipeline(LogisticRegression),
    "TfidfVectorizer(), SGDClassifier()": pipeline(SGDClassifier),
}
OF_FILES = {"fastText, pairs": ("fasttext", fast_text), "vw, pairs": ("vowpalwabbit", vowpal)}


def told(model, texts):
    """What a model of a file predicts, as the file has it: its numbers are words here."""
    return list(map(label_text, model.predict(texts).tolist()))


def measure(texts, labels, splits):
    """Errors in per cent and seconds of every contestant."""
    found = {}
    names, counts = np.unique(labels, return_counts=True)
    enough = np.isin(labels, names[counts >= 4])
    texts, labels = texts[enough], labels[enough]
    cut = StratifiedShuffleSplit(splits, test_size=0.25, random_state=0)
    for train, test in cut.split(texts, labels):

        def note(name, predict, seconds, test=test):
            error = 100 * np.mean(np.asarray(predict(texts[test])) != labels[test])
            found.setdefault(name, []).append((error, seconds))

        for name, fit in IN_MEMORY.items():
            start = time.perf_counter()
            predict = fit(texts[train], labels[train])
            note(name, predict, time.perf_counter() - start)
        path = by_file(texts[train], labels[train])
        for epochs in (1, 2):
            start = time.perf_counter()
            model = fit_text(path, max_iter=epochs, random_state=0)
            seconds = time.perf_counter() - start
            # Labels that are numbers in a file are numbers.
            note(f"fit_text(file, max_iter={epochs})", partial(told, model), seconds)
        for name, (module, fit) in OF_FILES.items():
            if find_spec(module) is not None:
                note(name, *fit(path, labels[train]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--sets", nargs="+")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    every = sets()
    results = {name: measure(*every[name], arguments.splits) for name in arguments.sets or every}
    print("| error, %; seconds |", " | ".join(results), "|")
    print("| --- |", " --- |" * len(results))
    for name in next(iter(results.values())):
        cells = [np.mean(of_set[name], axis=0) for of_set in results.values()]
        print(f"| {name} |", " | ".join(f"{e:.2f}; {s:.2f}" for e, s in cells), "|")


if __name__ == "__main__":
    main()
