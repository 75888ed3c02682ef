"""Classify docstrings by library: from texts to predictions, explanations and a model file.

The texts are the docstrings of the installed numpy, scipy and scikit-learn. The first part compares
`fit_text` with pipelines of words and bigrams. The second part compares the algorithms of this
library, trained on the same rows in three epochs.
"""

import re
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from corpus import LIBRARIES, collect_docstrings
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import StratifiedGroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from sparsemargin import fit_csr, fit_text, save_model, text
from sparsemargin.evaluation import explain_row, top_features
from sparsemargin.plotting import MarginDistributionDisplay, theme

SEED = 0
MODEL, PICTURE = "demo.model", "demo-margins.png"
QUESTIONS = (
    "Fit the model with a penalty on the coefficients and predict labels.",
    "Solve an initial value problem for a system of ordinary differential equations.",
    "Return a view of the array with its axes transposed.",
)

# All pipelines use the TF-IDF of words and bigrams.
BIGRAMS = {"ngram_range": (1, 2), "sublinear_tf": True}
PIPELINES = {
    "scikit-learn, LinearSVC": (TfidfVectorizer(**BIGRAMS), LinearSVC()),
    "sparsemargin.text, LinearSVC": (text.TfidfVectorizer(**BIGRAMS), LinearSVC()),
    "scikit-learn, SGDClassifier": (TfidfVectorizer(**BIGRAMS), SGDClassifier(random_state=SEED)),
    "scikit-learn, LogisticRegression": (TfidfVectorizer(**BIGRAMS), LogisticRegression()),
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "Perceptron": {"algo": "perceptron"},
    "p-norm Perceptron, p = 6": {"algo": "pnorm", "p": 6},
    "p-norm Perceptron, p = 2 ln n": {"algo": "pnorm", "p": "log"},
    "ALMA, p = 2": {"algo": "alma"},
    "ALMA, p = 6": {"algo": "alma", "p": 6},
    "AROW": {"algo": "arow"},
    "Higher-order Perceptron, p = 7": {"algo": "ho", "p": 7},
}


def read_texts() -> tuple[Any, Any, Any, Any]:
    """Return the training texts, their libraries, the test texts, and their libraries.

    The docstrings of one file resemble each other, so all of them are in the same set.
    """
    documents = collect_docstrings()
    # Version numbers reveal the library, so all numbers are removed.
    texts = np.array([re.sub(r"\d+", " ", each) for each in documents.texts], dtype=object)
    folds = StratifiedGroupKFold(n_splits=4, shuffle=True, random_state=SEED)
    train, test = next(folds.split(texts, documents.libraries, documents.files))
    return texts[train], documents.libraries[train], texts[test], documents.libraries[test]


def show_call(name: str, fit: Callable[[Any, Any], Any], data: tuple[Any, Any, Any, Any]) -> Any:
    """Fit a model, print its test error and the seconds of the fit, and return the model."""
    texts, y, test_texts, y_test = data
    start = perf_counter()
    model = fit(texts, y)
    seconds = perf_counter() - start
    error = 1 - model.score(test_texts, y_test)
    print(f"{name:<41}{100 * error:>8.2f}{seconds:>9.2f}", flush=True)
    return model


def show_answers(model: Any) -> None:
    """Print predictions for new texts with explanations, and the largest weights of each class."""
    print("\nNew texts, and the words with the largest contributions:")
    for question in QUESTIONS:
        (why,) = explain_row(model, question)
        reasons = (f"{word} {by:+.2f}" for word, by in zip(why.names, why.contributions))  # noqa: B905
        print(f"  {why.label:<8}{question}\n{'':10}{', '.join([*reasons][:4])}")
    print("\nWords with the largest weights for each library:")
    for library, words in top_features(model, 7).items():
        print(f"  {library:<8}{', '.join(word for word, weight in words if weight > 0)}")


def show_algorithms(model: Any, data: tuple[Any, Any, Any, Any]) -> dict[str, Any]:
    """Print a table of the algorithms on the rows of the vectorizer, and return the models."""
    texts, y, test_texts, y_test = data
    X, X_test = (model.vectorizer_.transform(each) for each in (texts, test_texts))
    print(f"\nThe algorithms, three epochs each\n{'':<41}{'error %':>8}{'corrections':>13}")
    models = {}
    for name, settings in ALGORITHMS.items():
        models[name] = fit_csr(X, y, **settings, max_iter=3, random_state=SEED)
        error = 1 - models[name].score(X_test, y_test)
        print(
            f"{name:<41}{100 * error:>8.2f}{np.sum(models[name].n_corrections_):>13,}", flush=True
        )
    draw_margins(models, X_test, y_test)
    return models


def draw_margins(models: dict[str, Any], X_test: Any, y_test: Any) -> None:
    """Save a picture of the margins of the test texts."""
    import matplotlib

    matplotlib.use("Agg")
    drawn = {name: models[name] for name in ("Perceptron", "ALMA, p = 2", "AROW")}
    with theme("light"):
        display = MarginDistributionDisplay.from_estimator(drawn, X_test, y_test)
        display.ax_.set_title("Which library? Margins of test texts")
        display.figure_.savefig(PICTURE, dpi=150)


def main() -> None:
    """Run the demonstration."""
    print("Which library does a docstring belong to?\n")
    data = read_texts()
    texts, y, _, y_test = data
    commonest = max(LIBRARIES, key=lambda library: np.sum(y == library))
    print(
        f"{len(texts):,} training texts, {len(y_test):,} test texts from other files\n"
        f"always answering {commonest}: {100 * np.mean(y_test != commonest):.2f} % errors\n\n"
        f"From texts to a model{'':20} error %  seconds"
    )
    model = show_call("fit_text(texts, y)", lambda *both: fit_text(*both, random_state=SEED), data)
    for name, steps in PIPELINES.items():
        show_call(name, make_pipeline(*steps).fit, data)
    show_answers(model)
    save_model(model, MODEL)
    show_algorithms(model, data)
    print(
        f"\nWritten: {MODEL} (read it with sparsemargin.load_model) and {PICTURE}. Next:\n"
        "  README.md     classify your own texts, cells and files\n"
        "  make test     run the tests"
    )


if __name__ == "__main__":
    main()
