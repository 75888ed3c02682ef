"""The evidence for default parameters: test error on RCV1 topics over epochs, alpha and p.

Needs the RCV1 sample in the folder that SPARSEMARGIN_DATA names. Rows are shuffled once with a
fixed seed; the first 10,000 are learned from, the next 10,000 tested on.

    python benchmarks/defaults.py [--topics GCAT C15 ECAT CCAT M14] [--out results/defaults.json]
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from measure import text_table, write_json
from sklearn.datasets import load_svmlight_file
from sklearn.svm import LinearSVC

from sparsemargin import ALMAClassifier, PNormPerceptron

EPOCHS = (1, 3, 5, 10)
N_TRAIN = N_TEST = 10_000
VECTORS, NAMES = "rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"


def load(folder, topics):
    """Shuffled vectors and, by topic, labels in {-1, 1}."""
    X, labels = load_svmlight_file(str(folder / VECTORS), n_features=47236, multilabel=True)
    names = (folder / NAMES).read_text().split()
    order = np.random.RandomState(0).permutation(X.shape[0])[: N_TRAIN + N_TEST]
    codes = {topic: names.index(topic) for topic in topics}
    ys = {t: np.array([2 * (code in labels[i]) - 1 for i in order]) for t, code in codes.items()}
    return X[order], ys


def contestants():
    for p in (2, 3):
        for alpha in (0.9, 0.8, 0.7, 0.5):
            yield (
                f"ALMA p={p} alpha={alpha}",
                lambda n, p=p, alpha=alpha: ALMAClassifier(
                    p=p, alpha=alpha, max_iter=n, random_state=0
                ),
            )
        yield (
            f"PNormPerceptron p={p}",
            lambda n, p=p: PNormPerceptron(p=p, max_iter=n, random_state=0),
        )


def error(make, X, ys):
    """Mean test error over the topics, in percent."""
    scores = [
        make().fit(X[:N_TRAIN], y[:N_TRAIN]).score(X[N_TRAIN:], y[N_TRAIN:]) for y in ys.values()
    ]
    return 100 * (1 - np.mean(scores))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--topics", nargs="+", default=["GCAT", "C15", "ECAT", "CCAT", "M14"])
    parser.add_argument("--out", type=Path, default=Path("results/defaults.json"))
    args = parser.parse_args()
    folder = os.environ.get("SPARSEMARGIN_DATA")
    if not folder:
        sys.exit("Set SPARSEMARGIN_DATA to the folder that holds " + VECTORS + ".")
    X, ys = load(Path(folder), args.topics)
    rows = {
        name: [error(lambda n=n, make=make: make(n), X, ys) for n in EPOCHS]
        for name, make in contestants()
    }
    svc = error(LinearSVC, X, ys)
    print(f"mean test error in % over {', '.join(args.topics)}; LinearSVC {svc:.2f}\n")
    columns = [("average hypothesis", ""), *((f"{n} epochs", ".2f") for n in EPOCHS)]
    print(text_table(columns, [[name, *errors] for name, errors in rows.items()]))
    write_json(args.out, {"topics": args.topics, "LinearSVC": svc, "epochs": EPOCHS, **rows})


if __name__ == "__main__":
    main()
