"""From texts to labels: `fit_text` compared with common alternatives, by error and by seconds.

Three quarters of each set of texts are used for training, in several splits. Errors have their
standard error over the splits. Seconds are CPU seconds from texts in memory, or from a file, to a
model. One set is available on every machine with this library: the sources of the functions of
numpy, scipy and scikit-learn, labeled with their library; whole files are held out. The others are
in the folder named by SPARSEMARGIN_DATA: short messages (spam or not), questions (of 6 kinds, and
of 50), sentences of film reviews (positive or negative) and sentences in 17 languages. The use of
word pairs and of logarithms of counts was chosen on messages and questions, the lengths of
character n-grams and the number of epochs on all sets.

fastText and Vowpal Wabbit are left out if they are not installed.

The figures of all sets are kept in texts.json next to this file. The chart of the README, on a
light and on a dark background, and the tables of texts in docs/guide/measurements.md are made from
them. `--chart` makes them again from the kept figures without measuring.

    python benchmarks/texts.py [--splits 4] [--sets sms trec6 ...] [--chart]
"""

import argparse
import gzip
import json
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
from markdown_tables import fill_page, markdown_table
from matplotlib import rc_context
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from tables import ACCURACY, measured_on
from threadpoolctl import threadpool_limits
from timing import FOLDER, machine, replace_text

from papers.curves import scale_log
from sparsemargin import fit_text
from sparsemargin.models.inputs.labels import label_text
from sparsemargin.plotting import theme
from sparsemargin.text import TfidfVectorizer as CompiledTfidfVectorizer

sys.path.append(str(FOLDER.parent / "examples"))
from corpus import collect_sources

PAIRS = {"sublinear_tf": True, "ngram_range": (1, 2)}


def read(name):
    path = Path(os.environ["SPARSEMARGIN_DATA"], "texts", f"{name}.tsv.gz")
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    labels, texts = zip(*(line.split("\t", 1) for line in lines), strict=True)
    return np.array(texts, dtype=object), np.array(labels, dtype=object)


def read_set(name):
    """Texts, labels, and groups that are held out as a whole; None if texts are independent."""
    if name == "sources":
        found = collect_sources()
        return np.array(found.texts, dtype=object), found.libraries.astype(object), found.files
    if not name.startswith("trec"):
        return *read(name), None
    texts, labels = map(np.concatenate, zip(read("trec_train"), read("trec_test"), strict=True))
    if name == "trec6":
        labels = np.array([label.split(":")[0] for label in labels], dtype=object)
    return texts, labels, None


def splits_of(texts, labels, groups, n_splits):
    """Pairs of training and test rows."""
    if groups is None:
        cut = StratifiedShuffleSplit(n_splits, test_size=0.25, random_state=0)
        return [*cut.split(texts, labels)]
    folds = StratifiedGroupKFold(n_splits=4, shuffle=True, random_state=0)
    return [*folds.split(texts, labels, groups)][:n_splits]


def pipeline(classifier, vectorizer=TfidfVectorizer, **settings):
    def fit(texts, labels):
        return make_pipeline(vectorizer(**settings), classifier()).fit(texts, labels).predict

    return fit


def tuned_svc():
    """`LinearSVC` with C chosen by 3-fold cross-validation."""
    return GridSearchCV(LinearSVC(), {"C": [0.1, 0.3, 1, 3, 10]}, cv=3)


def by_file(texts, labels):
    """Write the texts to a file, in random order, and return its path."""
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
        [*command, "--oaa", str(len(names)), "-d", train, "-f", model, "--passes", "3", "-c",
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
    "fit_text, words alone": lambda texts, labels: (
        fit_text(texts, labels, features=CompiledTfidfVectorizer(), random_state=0).predict
    ),
    "LinearSVC()": pipeline(LinearSVC),
    "LogisticRegression()": pipeline(LogisticRegression),
    "LinearSVC(), words and pairs": pipeline(LinearSVC, **PAIRS),
    "LinearSVC(), words and pairs, tuned": pipeline(tuned_svc, **PAIRS),
    "sparsemargin.text, LinearSVC(), words and pairs": pipeline(
        LinearSVC, CompiledTfidfVectorizer, **PAIRS
    ),
}
OF_FILES = {"fastText, pairs": ("fasttext", fast_text), "vw, pairs": ("vowpalwabbit", vowpal)}


def predict_text(model, texts):
    """Return the predicted labels as text, because numeric labels of a file become numbers."""
    return list(map(label_text, model.predict(texts).tolist()))


def measure(texts, labels, groups, n_splits):
    """Errors in percent and seconds of every contestant."""
    found = {}
    names, counts = np.unique(labels, return_counts=True)
    enough = np.isin(labels, names[counts >= 4])
    texts, labels = texts[enough], labels[enough]
    for train, test in splits_of(texts, labels, groups, n_splits):

        def note(name, predict, seconds, test=test):
            error = 100 * np.mean(np.asarray(predict(texts[test])) != labels[test])
            found.setdefault(name, []).append((error, seconds))

        for name, fit in IN_MEMORY.items():
            start = time.process_time()
            predict = fit(texts[train], labels[train])
            note(name, predict, time.process_time() - start)
        if groups is not None:
            continue
        path = by_file(texts[train], labels[train])
        for epochs in (1, 2):
            start = time.process_time()
            model = fit_text(path, max_iter=epochs, random_state=0)
            seconds = time.process_time() - start
            note(f"fit_text(file, max_iter={epochs})", partial(predict_text, model), seconds)
        for name, (module, fit) in OF_FILES.items():
            if find_spec(module) is not None:
                note(name, *fit(path, labels[train]))
    return {name: summary(*zip(*each, strict=True)) for name, each in found.items()}


def summary(errors, seconds):
    """Mean error, its standard error, and the seconds of the fastest fit: splits have one size."""
    spread = np.std(errors, ddof=1) / np.sqrt(len(errors)) if len(errors) > 1 else np.nan
    return {"error": float(np.mean(errors)), "spread": float(spread), "seconds": min(seconds)}


FIGURES = FOLDER / "texts.json"
PICTURES = FOLDER.parent / "docs" / "_static"
LARGE = "sources"
SMALL = {
    "sms": "short messages", "trec6": "questions, 6 kinds", "trec50": "questions, 50 kinds",
    "polarity": "film reviews", "languages": "17 languages",
}  # fmt: skip
OURS = "fit_text"
# Points from a mark of the chart to its name, for names that would overlap to the right of it.
PLACES = {
    "fit_text, words alone": ((-6, 9), "left"),
    "LinearSVC(), words and pairs": ((0, 8), "center"),
    "LinearSVC(), words and pairs, tuned": ((0, -17), "center"),
    "sparsemargin.text, LinearSVC(), words and pairs": ((0, -29), "center"),
}
#: Rows of the first table only.
OUTDONE = (
    "fit_text, words alone", "LinearSVC()", "LinearSVC(), words and pairs, tuned",
    "LogisticRegression()", "sparsemargin.text, LinearSVC(), words and pairs",
)  # fmt: skip


def with_spread(figure):
    return "{error:.2f}±{spread:.2f}".format(**figure)


def table(figures):
    """Error of each contestant on each set, the lowest in bold, and seconds."""
    names = [*figures[LARGE]]
    columns = {LARGE: "sources", **SMALL}
    cells = {name: [with_spread(figures[of][name]) for of in columns] for name in names}
    for j, of in enumerate(columns):
        least = min(names, key=lambda name: figures[of][name]["error"])
        cells[least][j] = f"**{cells[least][j]}**"
    seconds = {
        name: [
            figures[LARGE][name]["seconds"], sum(figures[of][name]["seconds"] for of in SMALL)
        ] for name in names
    }  # fmt: skip
    rows = [[name, *cells[name], *(f"{each:.2f}" for each in seconds[name])] for name in names]
    return markdown_table(
        ["test error, %", *columns.values(), "s, sources", "s, five others"], rows
    )


def whole_table(figures):
    """Error and seconds on each set, including files, of the most accurate contestants of their
    kind."""
    columns = {LARGE: "sources", **SMALL}
    names = dict.fromkeys(name for of in columns for name in figures[of] if name not in OUTDONE)
    rows = [
        [name, *(f"{with_spread(figures[of][name])}; {figures[of][name]['seconds']:.2f}"
                 if name in figures[of] else "" for of in columns)]
        for name in names
    ]  # fmt: skip
    return markdown_table(["error, %; seconds", *columns.values()], rows)


def draw(figures):
    """Draw the chart: error against seconds, with the names next to the marks."""
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.subplots()
    contestants = figures[LARGE]
    for name, figure_of in contestants.items():
        error, seconds = figure_of["error"], figure_of["seconds"]
        ours = name.startswith(OURS)
        look = {"marker": "D", "color": "C0"} if ours else {"marker": "o", "color": "C6"}
        library = "sparsemargin" if ours else "scikit-learn: TfidfVectorizer(), then ..."
        axes.plot(seconds, error, linestyle="", markersize=10 if ours else 8, label=library, **look)
        place, aligned = PLACES.get(name, ((9, -3.5), "left"))
        shown = name.replace("text, ", "text,\n") if place[1] < -20 else name
        axes.annotate(
            shown, (seconds, error), place, textcoords="offset points", ha=aligned,
            weight="bold" if ours else "normal", fontsize=9.5,
        ).set_in_layout(False)  # fmt: skip
    scale_log(axes)
    axes.margins(0.08, 0.12)
    axes.set_xlim(right=axes.get_xlim()[1] * 4)
    axes.set(xlabel="seconds from texts to a model, one thread", ylabel="test error (%)")
    handles, labels = axes.get_legend_handles_labels()
    known = dict(zip(labels, handles, strict=True))
    figure.legend(known.values(), known, loc="outside upper left", ncols=2, frameon=False)
    return figure


def show(kept):
    """Draw the chart, and fill in the tables of the page on accuracy."""
    for ground in ("light", "dark"):
        path = PICTURES / f"texts-{ground}.svg"
        # The hash salt makes the same figures give the same bytes.
        with theme(ground), rc_context({"svg.hashsalt": path.stem}):
            draw(kept["sets"]).savefig(path, metadata={"Date": None})
        print(f"written: {path.name}, {path.stat().st_size / 1000:.0f} KB")
    measured = measured_on(kept["machine"])
    tables = {"texts": table, "texts-apart": whole_table}
    fill_page(ACCURACY, {name: f"{f(kept['sets'])}\n\n{measured}" for name, f in tables.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--sets", nargs="+", choices=[LARGE, *SMALL], default=[LARGE, *SMALL])
    parser.add_argument("--chart", action="store_true")
    arguments = parser.parse_args()
    if arguments.chart:
        return show(json.loads(FIGURES.read_text()))
    warnings.simplefilter("ignore")
    results = {}
    with threadpool_limits(1):
        for name in arguments.sets:
            results[name] = measure(*read_set(name), arguments.splits)
            for contestant, figure in results[name].items():
                print(
                    f"{name:10} {contestant:50} {with_spread(figure)} % {figure['seconds']:7.2f} s",
                    flush=True,
                )
    if {LARGE, *SMALL} == {*results}:
        kept = {"machine": machine(), "sets": results}
        replace_text(FIGURES, json.dumps(kept, indent=1) + "\n")
        show(kept)


if __name__ == "__main__":
    main()
