"""Topics of Reuters stories: Higher-order Perceptrons beside their rivals, in one table.

Runs on the RCV1 stories that `load_rcv1` finds, on generated text where it finds none. The problems
are those of Brotto, Gentile & Vitale (2007), Table 2: four topics, 10,000 stories to learn from in
one epoch and 10,000 to test on, here over several random splits of the same 20,000; fewer of both
where the environment variable SPARSEMARGIN_QUICK is 1. As there, no algorithm has an intercept, and
no matrix a bound. The notebook rcv1.ipynb goes on from here.
"""

from dataclasses import dataclass

import numpy as np
from report import show_comparison, sized
from scipy.sparse import csr_matrix
from sklearn.model_selection import ShuffleSplit
from sklearn.svm import LinearSVC

from papers.protocols import Split, SplitResults, compare_on_splits
from sparsemargin import (
    ALMAClassifier,
    HigherOrderPerceptron,
    PNormPerceptron,
    SecondOrderPerceptron,
)
from sparsemargin.datasets import BROTTO_TOPICS, load_rcv1, make_zipf_text

TOPICS = list(BROTTO_TOPICS.values())
N_TRAIN = N_TEST = sized(10_000, quick=3_000)
# Test sides of 10,000 rows tell small differences after few splits.
N_REPEATS = sized(5, quick=2)
SEED = 0
# The paper's way to run; a split's training rows come in random order already.
RUN = {"max_iter": 1, "shuffle": False, "fit_intercept": False}
MATRIX_RUN = {**RUN, "max_updates": None, "alpha": None}


@dataclass(frozen=True)
class Stories:
    """TF-IDF rows, for each topic the labels -1 and +1, and where all this comes from."""

    X: csr_matrix
    labels: dict[str, np.ndarray]
    origin: str


def load_stories() -> Stories:
    """Load 20,000 stories and four topics; where there are none, generate text of that shape."""
    n_rows = N_TRAIN + N_TEST
    try:
        found = load_rcv1(TOPICS)
    except FileNotFoundError:
        X, y = make_zipf_text(n_rows, n_classes=len(TOPICS), random_state=SEED)
        labels = {f"topic {k}": np.where(y == k, 1, -1) for k in range(len(TOPICS))}
        return Stories(X, labels, "GENERATED text, since load_rcv1 found no RCV1 stories")
    columns = found.target[:n_rows].toarray().astype(int).T
    labels = {topic: 2 * column - 1 for topic, column in zip(TOPICS, columns, strict=True)}
    return Stories(found.data[:n_rows], labels, f"RCV1 stories, from the {found.source}")


def describe(stories: Stories) -> None:
    """Print what the rows are, and the error of always answering no."""
    m, n = stories.X.shape
    shares = ", ".join(f"{topic} {np.mean(y > 0):.1%}" for topic, y in stories.labels.items())
    print(f"{m:,} {stories.origin}; {n:,} terms, {stories.X.nnz / m:.0f} a story\n{shares}")


def splits_of(stories: Stories, n_splits: int) -> list[Split]:
    """Draw the training and test rows of every repeat."""
    splitter = ShuffleSplit(n_splits, train_size=N_TRAIN, test_size=N_TEST, random_state=SEED)
    return list(splitter.split(stories.X))


def learners() -> dict:
    """Return the classifiers of the table by name; HO_p(0) is the p-norm Perceptron."""
    found = {}
    for hypothesis in ("last", "average"):
        run, matrix_run = ({"hypothesis": hypothesis, **each} for each in (RUN, MATRIX_RUN))
        for p in (2, 7):
            found[f"HO_{p}(0), {hypothesis}"] = PNormPerceptron(p=p, **run)
            found[f"HO_{p}(0.4), {hypothesis}"] = HigherOrderPerceptron(p=p, c=0.4, **matrix_run)
        found[f"SO(1), {hypothesis}"] = SecondOrderPerceptron(a=1.0, **matrix_run)
        found[f"ALMA_2(0.9), {hypothesis}"] = ALMAClassifier(alpha=0.9, **run)
    return found | {"LinearSVC": LinearSVC()}


def compare(stories: Stories, n_splits: int) -> dict[str, dict[str, SplitResults]]:
    """Run all learners on the same random splits; return the results by topic and learner."""
    splits = splits_of(stories, n_splits)
    return {
        topic: compare_on_splits(learners(), stories.X, y, splits)
        for topic, y in stories.labels.items()
    }


def main() -> None:
    """Print the table."""
    stories = load_stories()
    describe(stories)
    print(
        f"{N_TRAIN:,} to learn from, {N_TEST:,} to test on, {N_REPEATS} random splits, one epoch\n"
    )
    show_comparison(compare(stories, N_REPEATS))


if __name__ == "__main__":
    main()
