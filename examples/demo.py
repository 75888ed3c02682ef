"""Which library does a docstring belong to? Large-margin learners on real text, in two tables.

Documents are the docstrings of the installed numpy, scipy and scikit-learn, so that nothing needs
to be downloaded. All learners get the same TF-IDF rows. The first table has one call each, as a
user would make it; in the second all have the same number of epochs, and a shuffle with the same
seed. Fewer documents are read where the environment variable SPARSEMARGIN_QUICK is 1.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from corpus import LIBRARIES, Documents, collect_docstrings
from report import calls, sized
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.model_selection import StratifiedGroupKFold

from sparsemargin import ALMAClassifier, PNormPerceptron, fit_csr
from sparsemargin.plotting import MarginDistributionDisplay, theme

N_EPOCHS = 3
N_FITS = 3
PATIENCE = 1.0  # seconds, of repeated fits
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


def learners() -> dict[str, Any]:
    """Return the estimators of the second table by name."""
    common = {"max_iter": N_EPOCHS, "random_state": SEED}
    ours = {}
    for family, label in ((PNormPerceptron, "Perceptron"), (ALMAClassifier, "ALMA")):
        for p in NORMS:
            for hypothesis in HYPOTHESES:
                name = f"{label} p={p if p == 'log' else int(p)}, {hypothesis}"
                ours[name] = family(p=p, hypothesis=hypothesis, **common)
    return ours | {
        "scikit-learn Perceptron": Perceptron(tol=None, **common),
        "scikit-learn SGD hinge, average": SGDClassifier(average=True, tol=None, **common),
    }


def show_head(*counts: str) -> None:
    """Print the head of a table."""
    head = f"\n{'':<38}{'error %':>8}{'fit ms':>10}" + "".join(f"{name:>17}" for name in counts)
    print(f"{head}\n{'-' * (len(head) - 1)}", flush=True)


def measure(name: str, fit: Callable[[], Any], split: Split) -> tuple[Any, float]:
    """Fit, and begin a line with the error and the fastest fit; return the model and its error."""
    seconds: list[float] = []
    while len(seconds) < N_FITS and sum(seconds) < PATIENCE:
        start = perf_counter()
        model = fit()
        seconds.append(perf_counter() - start)
    error = 1 - model.score(split.X_test, split.y_test)
    print(f"{name:<38}{100 * error:>8.2f}{1000 * min(seconds):>10.1f}", end="")
    return model, error


def show_calls(split: Split) -> None:
    """Print the first table."""
    print(
        f"\nOne call each on these TF-IDF rows, the fastest of {N_FITS} fits, or of a second's;\n"
        "tuned: the best of five settings by cross-validation:"
    )
    show_head()
    fits = calls(tuned=True) | {
        'fit_csr(X, y, algo="ho", p=7)': partial(fit_csr, algo="ho", p=7, random_state=SEED)
    }
    # It is for two classes; another solver takes minutes.
    del fits["LogisticRegression, tuned"]
    for name, fit in fits.items():
        measure(name, partial(fit, split.X, split.y), split)
        print(flush=True)


def compare(split: Split) -> tuple[dict[str, Any], dict[str, float]]:
    """Fit all learners and print the second table; return the models and their test errors."""
    print(f"\nThe algorithms, {N_EPOCHS} epochs each:")
    show_head("corrections", "nonzero weights")
    models, errors = {}, {}
    for name, learner in learners().items():
        model, errors[name] = measure(name, partial(learner.fit, split.X, split.y), split)
        # scikit-learn doesn't count corrections.
        corrections = getattr(model, "n_corrections_", None)
        counted = "-" if corrections is None else f"{np.sum(corrections):,}"
        print(f"{counted:>17}{np.count_nonzero(model.coef_):>17,}", flush=True)
        models[name] = model
    print(
        "\nRows have unit 2-norm, so Perceptron p=2 is Rosenblatt's; p=log is p = 2 ln(features).\n"
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
        f"{n:,} words, {split.X.nnz / m:.0f} nonzeros a row\n"
        f"always answering {commonest}: {100 * np.mean(split.y_test != commonest):.2f} % errors"
    )


def main() -> None:
    """Run the demonstration."""
    start = perf_counter()
    print("Which library does a docstring belong to?\n", flush=True)
    documents = collect_docstrings(sized(1, quick=4))
    split = split_by_file(documents)
    describe(documents, split)
    show_calls(split)
    models, errors = compare(split)
    averages = [name for name, model in models.items() if is_average(model)]
    best = min(averages, key=errors.get)
    show_words(models[best], best, split.words)
    draw_margins({name: models[name] for name in DRAWN}, split)
    print(
        f"\nDone in {perf_counter() - start:.1f} s. Next:\n"
        "  make test     run the tests\n"
        "  .venv/bin/python -m papers alma-table6 --quick\n"
        "  make bench    measure its speed beside scikit-learn's"
    )


if __name__ == "__main__":
    main()
