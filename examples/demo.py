"""Which library does a docstring belong to? Large-margin learners on real text, in one table.

Documents are the docstrings of the installed numpy, scipy and scikit-learn, so that nothing needs
to be downloaded. All learners get the same TF-IDF rows, the same number of epochs and a shuffle
with the same seed.
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
from corpus import LIBRARIES, Documents, collect_docstrings
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.model_selection import StratifiedGroupKFold

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.plotting import MarginDistributionDisplay, theme

N_EPOCHS = 3
SEED = 0
PICTURE = "demo-margins.png"
DRAWN = (
    "Perceptron p=2, last", "Perceptron p=2, average", "Perceptron p=6, average",
    "ALMA p=2, average",
)  # fmt: skip
N_WORDS = 10
NORMS = (2.0, 6.0, "log")
HYPOTHESES = ("last", "average")


@dataclass(frozen=True)
class Split:
    """TF-IDF rows for training and test, and the word behind each column."""

    X: csr_matrix
    y: np.ndarray
    X_test: csr_matrix
    y_test: np.ndarray
    words: np.ndarray


def split_by_file(documents: Documents) -> Split:
    """Hold out a quarter of the documents, and weigh words on the others alone.

    The docstrings of one file resemble each other, so a file goes to one side as a whole.
    """
    folds = StratifiedGroupKFold(n_splits=4, shuffle=True, random_state=SEED)
    train, test = next(folds.split(documents.texts, documents.libraries, documents.files))
    # Words of letters only: version numbers ("added in 1.3") would tell the library.
    vectorizer = TfidfVectorizer(token_pattern=r"[^\W\d_]{2,}", sublinear_tf=True)
    X = vectorizer.fit_transform([documents.texts[i] for i in train])
    X_test = vectorizer.transform([documents.texts[i] for i in test])
    y, y_test = documents.libraries[train], documents.libraries[test]
    return Split(X, y, X_test, y_test, vectorizer.get_feature_names_out())


def learners() -> dict:
    """Return the estimators of the table by name."""
    common = {"max_iter": N_EPOCHS, "random_state": SEED}
    peer = common | {"tol": None, "fit_intercept": False}
    ours = {}
    for family, label in ((PNormPerceptron, "Perceptron"), (ALMAClassifier, "ALMA")):
        for p in NORMS:
            for hypothesis in HYPOTHESES:
                name = f"{label} p={p if p == 'log' else int(p)}, {hypothesis}"
                ours[name] = family(p=p, hypothesis=hypothesis, **common)
    return ours | {
        "scikit-learn Perceptron": Perceptron(**peer),
        "scikit-learn SGD hinge, average": SGDClassifier(loss="hinge", average=True, **peer),
    }


def show_line(name: str, model, seconds: float, split: Split) -> float:
    """Print one line of the table; return the test error."""
    error = 1 - model.score(split.X_test, split.y_test)
    # scikit-learn doesn't count corrections.
    corrections = getattr(model, "n_corrections_", None)
    counted = "-" if corrections is None else f"{np.sum(corrections):,}"
    nonzero = np.count_nonzero(model.coef_)
    print(f"{name:<34}{100 * error:>10.2f}{counted:>13}{nonzero:>17,}{1000 * seconds:>10.1f}")
    return error


def compare(split: Split) -> tuple[dict, dict]:
    """Fit all learners and print the table; return the models and their test errors."""
    print(f"\n{'':<34}{'error %':>10}{'corrections':>13}{'nonzero weights':>17}{'fit ms':>10}")
    print("-" * 84)
    models, errors = {}, {}
    for name, model in learners().items():
        start = perf_counter()
        models[name] = model.fit(split.X, split.y)
        errors[name] = show_line(name, model, perf_counter() - start, split)
    print("-" * 84)
    print(
        "Rows have unit 2-norm, so Perceptron p=2 is Rosenblatt's; p=log is p = 2 ln(features).\n"
        "ALMA corrects rows of small margin too, hence its counts. Large p is meant for targets\n"
        "with few relevant words; here many words matter a little."
    )
    return models, errors


def is_average(model) -> bool:
    """Tell whether a model is one of this library's, with the average hypothesis."""
    return getattr(model, "hypothesis", None) == "average"


def show_words(model, name: str, words: np.ndarray) -> None:
    """Print the words with the largest weights of each class."""
    print(f"\nStrongest words of {name}:")
    for library, weights in zip(model.classes_, model.coef_, strict=True):
        strongest = np.argsort(weights)[::-1][:N_WORDS]
        print(f"  {library:<8} {' '.join(words[strongest])}")


def draw_margins(models: dict, split: Split) -> None:
    """Save the cumulative margin distributions on the test documents as a picture."""
    try:
        import matplotlib
    except ImportError:
        print("\nThe picture of the margins was left out: matplotlib is not installed.")
        return
    matplotlib.use("Agg")
    with theme("light"):
        display = MarginDistributionDisplay.from_estimator(models, split.X_test, split.y_test)
        display.ax_.set_title("Which library? Margins of test documents")
        display.figure_.savefig(PICTURE, dpi=150)
    print(f"\nMargin distributions drawn in {PICTURE}")


def describe(documents: Documents, split: Split) -> None:
    """Print what the documents are and how they were split."""
    counts = {library: int(np.sum(documents.libraries == library)) for library in LIBRARIES}
    found = ", ".join(f"{count:,} of {library}" for library, count in counts.items())
    commonest = max(counts, key=counts.get)
    (m, n), m_test = split.X.shape, split.X_test.shape[0]
    print(
        f"{len(documents.texts):,} documents: {found}\n"
        f"{m:,} to learn from, {m_test:,} to test on, no source file on both sides\n"
        f"{n:,} words, {split.X.nnz / m:.0f} nonzeros a row; one versus rest, {N_EPOCHS} epochs\n"
        f"always answering {commonest}: {100 * np.mean(split.y_test != commonest):.2f} % errors"
    )


def main() -> None:
    """Run the demonstration."""
    start = perf_counter()
    print("Which library does a docstring belong to?\n", flush=True)
    documents = collect_docstrings()
    split = split_by_file(documents)
    describe(documents, split)
    models, errors = compare(split)
    averages = [name for name, model in models.items() if is_average(model)]
    best = min(averages, key=errors.get)
    show_words(models[best], best, split.words)
    draw_margins({name: models[name] for name in DRAWN}, split)
    print(
        f"\nDone in {perf_counter() - start:.1f} s. Next:\n"
        "  make test     run the tests\n"
        "  .venv/bin/sparsemargin reproduce alma-table6 --quick\n"
        "  make bench    measure its speed beside scikit-learn's"
    )


if __name__ == "__main__":
    main()
