"""How fast is a fit of rows as `TfidfVectorizer` leaves them, their entries in no order?

Real text, the sources of the libraries beneath this one in three classes, and generated text with
none and with one in twenty of its training labels wrong; each beside the same matrix with sorted
rows. All take turns, and make one shuffled epoch without an intercept; `fit_csr(X, y)`, which makes
two with one, is measured against the `fit` of the estimator that it makes.

    python benchmarks/vectorized.py [--quick] [--rounds N]
"""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import race
from contestants import AVERAGE_BASELINE, CONTESTANTS, LAST_BASELINE, Contestant
from corpora import RCV1_MIDDLE, RCV1_SMALL, Corpus, Shape, draw_corpus
from measure import describe_machine, options_with_rounds, write_json
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import GroupShuffleSplit
from threadpoolctl import threadpool_limits

from sparsemargin import ALMAClassifier, fit_csr

sys.path.append(str(Path(__file__).parents[1] / "examples"))
from corpus import collect_sources

UNSORTED = "unsorted"
TEXT = "text"
NOISE = 0.05
QUICK_STEP = 20  # every so manieth file
TEST_SHARE = 0.25

ONE_CALL, ITS_FIT = "fit_csr(X, y)", "ALMA as fit_csr makes it"


def make_default(seed: int) -> ALMAClassifier:
    """Make the estimator that `fit_csr` makes of 500 rows or more."""
    return ALMAClassifier(max_iter=2, random_state=seed)


def _call(X: Any, y: Any, seed: int) -> partial:
    return partial(fit_csr, X, y, random_state=seed)


def _fit(X: Any, y: Any, seed: int) -> partial:
    return partial(make_default(seed).fit, X, y)


OURS = ("Perceptron, last", "Perceptron, average", "p-norm p=6, average", "ALMA p=2, average")
IN_LIFE = [
    *(each for each in CONTESTANTS if each.name in (LAST_BASELINE, AVERAGE_BASELINE, *OURS)),
    Contestant(ITS_FIT, ITS_FIT, _fit),
    Contestant(ONE_CALL, ITS_FIT, _call),
]


def read_texts(step: int = 1) -> Corpus:
    """Read the sources of every step-th file; a quarter of the files is held out."""
    documents = collect_sources(step)
    parts = GroupShuffleSplit(n_splits=1, test_size=TEST_SHARE, random_state=0)
    train, test = next(parts.split(documents.texts, groups=documents.files))
    vectorizer = TfidfVectorizer(sublinear_tf=True)
    X = vectorizer.fit_transform([documents.texts[i] for i in train])
    X_test = vectorizer.transform([documents.texts[i] for i in test])
    shape = Shape(TEXT, X.shape[0], X_test.shape[0], X.shape[1], round(X.nnz / X.shape[0]))
    return Corpus(shape, X, documents.libraries[train], X_test, documents.libraries[test])


def corpora(quick: bool) -> list[Corpus]:
    """Real text, and generated text with right labels and with some wrong ones."""
    drawn = draw_corpus(RCV1_SMALL if quick else RCV1_MIDDLE).renumbered()
    shape = replace(drawn.shape, name=f"{drawn.shape.name}, {NOISE:.0%} wrong")
    noisy = replace(drawn.mislabelled(NOISE), shape=shape)
    return [read_texts(QUICK_STEP if quick else 1), drawn, noisy]


def main() -> None:
    """Run the races, print the tables and write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less text, few rounds")
    parser.add_argument("--rounds", type=int, help="fits of every contestant (9, quick: 3)")
    parser.add_argument("--out", type=Path, default=Path("results/vectorized.json"))
    options = options_with_rounds(parser, usual=9, quick=3)
    print(describe_machine())
    entries = []
    with threadpool_limits(1):
        for corpus in corpora(options.quick):
            each = {UNSORTED: corpus, race.SORTED: corpus.with_sorted_rows()}
            entries += (measured := race.race(each, IN_LIFE, options.rounds))
            race.show(corpus, measured, options.rounds)
    write_json(options.out, {"rounds": options.rounds, "races": entries})


if __name__ == "__main__":
    main()
