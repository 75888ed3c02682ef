"""Training on files block by block gives the same model, bit for bit, as on the loaded files."""

import inspect
import io
import os
import re
import tempfile
from pathlib import Path
from traceback import walk_tb
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_digits

import sparsemargin
from depth import pairwise
from problems.command_line import two_classes, write
from problems.sources import standard_input
from sparsemargin import fit_csr, fit_svmlight, load_svmlight, save_model
from sparsemargin._engine.first_order import gram_loop as gram
from sparsemargin._engine.first_order import linear_loop
from sparsemargin._engine.fitting import threads
from sparsemargin.datasets import make_zipf_text
from sparsemargin.estimators.classifiers import as_classifier
from sparsemargin.files import archive, sources
from sparsemargin.files.archive import ArchiveWriter
from sparsemargin.kernels import RBF
from sparsemargin.readers import cache_order
from sparsemargin.readers.reading import Reading
from sparsemargin.readers.rows import LabelledRows, RowSource
from sparsemargin.streaming import run, stream
from sparsemargin.streaming.options import StreamOptions
from sparsemargin.streaming.report import Progress, ProgressLines
from sparsemargin.streaming.stream import learn_rows, learn_svmlight

LINES = "1 1:1\n-1 2:1\n" * 20
ALGORITHMS = [
    ("perceptron", {}),
    ("pnorm", {"p": 6.0}),
    ("pnorm", {"p": "log", "hypothesis": "last"}),
    ("alma", {}),
    ("alma", {"p": 3.5, "alpha": 0.5, "fit_intercept": True}),
    ("alma", {"normalize": "running"}),
    ("margin", {"margin": 0.5}),
    ("cramma", {"radius": 2.0}),
    ("romma", {"aggressive": True}),
]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """Use a temporary working directory and small blocks. Disable the matrix of dot products, whose
    results are rounded differently."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    monkeypatch.setattr(gram, "MEMORY", 0)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def text(tmp_path):
    """Return a file of 400 rows and two classes whose first rows have few of the features."""
    return two_classes(tmp_path)[0]


@pytest.fixture
def three_classes(tmp_path):
    X, y = make_zipf_text(400, 3000, mean_nnz=12, n_classes=3, random_state=0)
    return write(tmp_path / "three.svm", X, y)


def file(lines, path="few.svm"):
    """Write a few lines to a file, and return its path."""
    Path(path).write_text(lines)
    return path


def same(model, other):
    assert type(model) is type(other)
    assert (model.n_features_in_, model.n_iter_) == (other.n_features_in_, other.n_iter_)
    for name in "classes_", "coef_", "intercept_", "n_corrections_":
        ours, theirs = np.asarray(getattr(model, name)), np.asarray(getattr(other, name))
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype


def of_loaded(path, algo="alma", max_iter=1, dtype=np.float64, **params):
    """Return a model that is fitted to the loaded file."""
    X, y = load_svmlight(path, dtype=dtype)
    return fit_csr(X, y, algo, max_iter=max_iter, shuffle=False, **params)


def of_stream(path, model):
    """Return a model with the same settings after one call of `partial_fit` with the file."""
    X, y = load_svmlight(path)
    return type(model)(**model.get_params()).partial_fit(X, y, classes=np.unique(y))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("case", "kind", "dtype"),
    pairwise(ALGORITHMS, ["text", "three_classes"], [np.float32, np.float64]),
)
def test_fit_svmlight_equals_a_fit_to_the_loaded_file(request, case, kind, dtype):
    path, (algo, params) = request.getfixturevalue(kind), case
    expected = of_loaded(path, algo, dtype=dtype, **params)
    width = {"n_features": expected.n_features_in_} if params.get("p") == "log" else {}
    same(fit_svmlight(path, algo, dtype=dtype, **width, **params), expected)


@pytest.mark.parametrize(("algo", "params"), [("ho", {"p": 2}), ("ho", {"p": 5}), ("so", {})])
def test_matrix_perceptrons_equal_a_stream_of_the_loaded_rows(text, three_classes, algo, params):
    for path in text, three_classes:
        moments = []
        model = fit_svmlight(path, algo, max_updates=20, **params)
        expected = of_stream(path, model)
        same(model, expected)
        np.testing.assert_array_equal(model.n_updates_, expected.n_updates_)
        # These algorithms count mistakes for two classes only.
        learn_svmlight(path, algo, max_updates=20, report=moments.append, **params)
        assert moments[-1].mistakes == (count_mistakes(model, path) if path == text else None)


def count_mistakes(model, path):
    """Count the mistakes of progressive validation. The first row and outputs of 0 are mistakes."""
    online = type(model)(**model.get_params())
    online.set_params(hypothesis="last", intercept_scaling=model.intercept_scaling_)
    X, y = load_svmlight(path)
    classes, wrong = np.unique(y), 0
    for i, label in enumerate(y):
        sign = 2 * (label == classes[1]) - 1
        wrong += i == 0 or sign * online.decision_function(X[i])[0] <= 0
        online.partial_fit(X[i], [label], classes=classes)
    assert 0 < wrong < online.n_corrections_ == model.n_corrections_
    return wrong


def test_cramma_takes_files_by_the_largest_norm_so_far(text):
    model = fit_svmlight(text, "cramma")
    same(model, of_stream(text, model))


@pytest.mark.parametrize(
    ("n_jobs", "n_bytes"), [(1, 64), (2, 1000), (2, 1 << 20), (3, 64), (-1, 4096)]
)
def test_threads_and_block_sizes_do_not_change_the_model(text, n_jobs, n_bytes, monkeypatch):
    expected = of_loaded(text)
    monkeypatch.setattr(sources, "BLOCK_BYTES", n_bytes)
    same(fit_svmlight(text, "alma", n_jobs=n_jobs), expected)


@pytest.mark.parametrize("line", [2, 40])
def test_error_in_the_first_rows_is_reported_with_its_line(line, monkeypatch):
    """Training starts after 100 rows, when the buffer of the first rows holds other text."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 16)
    lines = [f"{i % 2} 1:{i}\n" for i in range(150)]
    for wrong, told in ("7 2:1\n", "label 7"), ("1 900:1\n", ".*900"):
        path = file("".join([*lines[: line - 1], wrong, *lines[line:]]))
        with pytest.raises(ValueError, match=f"^{path}, line {line}.*{told}"):
            fit_svmlight(path, "pnorm", classes=[0, 1], memory_limit=5000)


def test_default_algorithm_of_streams_is_arow(text):
    model = fit_svmlight(text)
    assert model.intercept_scaling_ == pytest.approx(1 / 3, rel=0.1)
    same(model, of_loaded(text, "arow"))
    same(fit_svmlight(text, "alma", p=3), of_loaded(text, "alma", p=3))
    # By default, models with a kernel have no intercept.
    kernel = {"kernel": RBF(1.0, max_support=10_000)}
    assert not fit_svmlight(text, "alma", **kernel).intercept_.any()
    assert fit_svmlight(text, "alma", intercept_scaling=1.0, **kernel).intercept_.all()
    # A fit from scratch discards the settings with which files were read.
    assert not model.fitted.reading["zero_based"]
    assert not hasattr(model.fit(*load_svmlight(text)), "_reading")


@pytest.mark.parametrize("how", [{}, {"max_iter": 2}, {"positive": 3}, {"p": 2}])
def test_first_rows_select_the_classifier_of_a_file(tmp_path, how):
    X, y = load_digits(return_X_y=True)
    path = tmp_path / "digits.svm"
    dump_svmlight_file(X, y, str(path), zero_based=False)
    of_files = {name: how[name] for name in ("max_iter", "positive") if name in how}
    for algo in None, "so":
        given = how if algo is None else of_files
        models = (
            fit_svmlight(path, algo, random_state=0, **given),
            fit_svmlight(path, "so", random_state=0, **of_files),
        )
        same(*models)
    with standard_input(path.read_bytes()):
        read = fit_svmlight("-", classes=range(10), random_state=0)
    assert type(read).__name__ == "AROWClassifier"
    assert type(fit_svmlight(path, r=0.1)).__name__ == "AROWClassifier"
    with pytest.raises(ValueError, match=r"p is a parameter of .*algo='alma'"):
        fit_svmlight(path, p=3)


@pytest.mark.parametrize("settings", [
    {"class_weight": {"late": 2.0}}, {"class_weight": "balanced", "classes": ["a", "b", "late"]},
    {"class_weight": "balanced", "positive": "late"},
])  # fmt: skip
def test_first_rows_may_lack_a_weighted_class(tmp_path, monkeypatch, settings):
    monkeypatch.setattr(stream, "MOST_ROWS", 500)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 4096)
    path = file("a 1:1\nb 2:1\n" * 1000 + "late 3:1\n" * 3, tmp_path / "late.svm")
    same(fit_svmlight(path, random_state=0, **settings),
         fit_svmlight(path, "arow", random_state=0, **settings))  # fmt: skip


def test_zero_based_indices_are_detected_late_in_a_file(text):
    path = file(text.read_text() + "1 0:0.5 9:0.5\n")
    model = fit_svmlight(path, "alma")
    same(model, of_loaded(path))
    assert model.n_features_in_ == fit_svmlight(text).n_features_in_ + 1
    wider = fit_svmlight(path, "alma", n_features=5000)
    assert wider.coef_.shape == (1, 5000)
    np.testing.assert_array_equal(wider.coef_[:, : model.n_features_in_], model.coef_)
    X, y = load_svmlight(path, hash_bits=7)
    hashed = fit_svmlight(path, "alma", hash_bits=7)
    assert hashed.n_features_in_ == 128
    same(hashed, fit_csr(X, y, "alma", max_iter=1, shuffle=False))


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, r"few.svm, line 3.*4000000000.*memory_limit.*hash_bits"),
        ({"n_features": 9}, r"line 3, column 7.*beyond n_features=9.* or leave it out\.$"),
        ({"n_features": 1 << 33, "memory_limit": 10**6}, "line 3.*limit allows 250,000 features"),
        ({"hash_bits": 26, "memory_limit": 10**6}, "67,108,864 features take .* memory_limit=1,0"),
    ],
)
def test_index_beyond_memory_is_reported_with_its_line(settings, told):
    path = file("1 1:1\n-1 2:1\n1 5:1 4000000000:1\n")
    with pytest.raises(ValueError, match=told):
        fit_svmlight(path, "perceptron", **settings)
    assert fit_svmlight(path, hash_bits=10).n_features_in_ == 1024


def test_late_class_restarts_training(three_classes, tmp_path):
    X, y = load_svmlight(three_classes)
    order = np.argsort(y, kind="stable")
    path = write(tmp_path / "sorted.svm", X[order], y[order])
    for classes in None, [0.0, 1.0, 2.0]:
        with pytest.warns(UserWarning, match="sorted by their labels"):
            same(fit_svmlight(path, "alma", classes=classes, shuffle=False), of_loaded(path))
    # A class that is known only from `class_weight` has the same effect.
    path, weighted = file("1 1:1\n-1 2:1\n" * 1000 + "2 3:1\n"), {"class_weight": {2: 5.0}}
    same(fit_svmlight(path, "perceptron", **weighted), of_loaded(path, "perceptron", **weighted))


@pytest.mark.filterwarnings("ignore:.*sorted by their labels")
@pytest.mark.parametrize("algo", ["arow", "alma", "pnorm"])
def test_balanced_weights_equal_those_of_a_fit(text, three_classes, tmp_path, algo):
    X, y = load_svmlight(three_classes)
    rare = np.flatnonzero((y > 0) | (np.arange(len(y)) % 9 == 0))
    # The rows are sorted by class.
    rare = rare[np.argsort(-y[rare], kind="stable")]
    path = write(tmp_path / "rare.svm", X[rare], y[rare])
    balanced = {"class_weight": "balanced"}
    settings = {"shuffle": False, **balanced}
    for source in path, text:
        expected = of_loaded(source, algo, **balanced)
        same(fit_svmlight(source, algo, **settings), expected)
        # The first run writes the cache, and the second reads it. Rows of a source that can be read
        # only once are counted in the cache.
        for _ in "made", "read":
            same(fit_svmlight(source, algo, cache=tmp_path / "rows", **settings), expected)
        with standard_input(source.read_bytes()):
            same(fit_svmlight("-", algo, cache=tmp_path / "other", **settings), expected)
        unbalanced = of_loaded(source, algo)
        assert not np.array_equal(expected.coef_, unbalanced.coef_)
    same(
        fit_svmlight(path, algo, max_iter=2, **settings),
        of_loaded(path, algo, max_iter=2, **balanced),
    )
    model = fit_svmlight(path, algo, positive=2, **settings)
    y = np.where(load_svmlight(path)[1] == 2, 1.0, -1.0)
    X, _ = load_svmlight(path)
    same(model, fit_csr(X, y, algo, max_iter=1, **settings))
    with standard_input(b"1 1:1\n2 2:1\n"), pytest.raises(ValueError, match="Pass cache=PATH"):
        fit_svmlight("-", algo, **balanced)


SORTED = (
    r"the rows are sorted by their labels, which change 2 times in 400 rows, instead of about 266"
)


@pytest.fixture
def sorted_text(three_classes, tmp_path):
    X, y = load_svmlight(three_classes)
    order = np.argsort(y, kind="stable")
    return write(tmp_path / "sorted.svm", X[order], y[order])


@pytest.mark.parametrize("settings", [
    {}, {"max_iter": 3}, {"algo": "alma"}, {"classes": [0, 1, 2]}, {"positive": 1},
    {"algo": "ho", "max_updates": 50}, {"init_model": "itself"}, {"class_weight": "balanced"},
])  # fmt: skip
def test_rows_sorted_by_label_are_learned_in_random_order(
    sorted_text, three_classes, settings, monkeypatch, tmp_path
):
    """The labels are known beforehand or not, there are more blocks than are mixed in memory, and
    the cache is temporary or a file that the user has asked for."""
    monkeypatch.setattr(cache_order, "_MIXED_BYTES", 1 << 14)
    settings = {"random_state": 0, **settings}
    if "init_model" in settings:
        settings = {"init_model": fit_svmlight(three_classes, random_state=0)}
        before = settings["init_model"].coef_.copy()
    positive = settings.get("positive")
    told = SORTED.replace("2 times", r"\d times").replace("266", r"\d+") if positive else SORTED
    models = []
    for cache in False, "made", "made":
        with pytest.warns(
            UserWarning, match=rf"sorted.svm: {told}.*in random order.*Pass shuffle=Fa"
        ):
            models.append(fit_svmlight(sorted_text, cache=cache and tmp_path / cache, **settings))
    same(*models[:2])
    same(*models[1:])
    assert {each.name for each in tmp_path.iterdir()} == {"sorted.svm", three_classes.name, "made"}
    X, y = load_svmlight(three_classes)
    y = y if positive is None else np.where(y == positive, 1, -1)
    as_good = fit_svmlight(three_classes, **settings).score(X, y)
    assert models[0].score(X, y) > as_good - 0.08
    if "init_model" in settings:
        np.testing.assert_array_equal(settings["init_model"].coef_, before)


def test_sorted_rows_warn_if_they_cannot_be_shuffled(sorted_text):
    known = {"classes": [0.0, 1.0, 2.0]}
    with standard_input(sorted_text.read_bytes()):
        for path, settings, remedy in (
            (sorted_text, {"shuffle": False}, "leave shuffle=False out."),
            ("-", known, "pass cache=PATH."),
        ):
            with pytest.warns(UserWarning, match=f"{SORTED}.*To train in random order, {remedy}"):
                same(fit_svmlight(path, "alma", **settings), of_loaded(sorted_text))
    # A source that can be read only once is mixed if there is a cache for further epochs.
    twice = {"algo": "alma", "max_iter": 2, "random_state": 0, **known}
    models = []
    with standard_input(sorted_text.read_bytes()):
        for path in sorted_text, "-":
            with pytest.warns(UserWarning, match=f"{SORTED}.*in random order"):
                models.append(fit_svmlight(path, **twice))
    same(*models)


@pytest.mark.parametrize("lines", [
    "1 1:1\n" * 10 + "2 2:1\n" * 10, "1 1:1\n" * 999 + "2 2:1\n" * 4,
    ("1 1:1\n" * 9 + "2 2:1\n" * 9) * 9,
])  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_partly_sorted_rows_keep_their_order(lines):
    path = file(lines)
    same(fit_svmlight(path, "alma"), of_loaded(path))


@pytest.mark.parametrize(
    ("lines", "settings", "told"),
    [
        ("1 1:1\n1 2:1\n", {}, "few.svm has one class only, 1;"),
        ("0.5 1:1\n1.25 2:1\n", {}, "few.svm has labels such as 0.5, which are not classes"),
        ("-1 1:1\n\n# nothing\n7 3:1\n", {"classes": [-1, 1]}, r"line 4: label 7 .*, -1, 1\. Pass"),
        ("a,b 1:1\nb 2:1\n", {"positive": "c"}, "no row has the label positive='c'.*: a, b"),
        ("a,b 1:1\nb 2:1\n", {}, "Pass multilabel=True to learn all labels, or positive=LABEL"),
        ("1\n-1\n", {}, "labels but no features"),
        ("1 1:1 3:1\n-1 2:1\n1 0:1\n", {"n_features": 3}, "index 3 is beyond.* as index 0 occurs"),
        (LINES, {"n_features": 10**11}, "100,000,000,000 features .* memory_limit"),
        (LINES, {"max_iter": 10**17}, "more trials than can be counted"),
        (LINES, {"positive": [1]}, "positive must be a label"),
        (LINES, {"soft_margin": 1.0}, "soft_margin=1.0 gives every row a coordinate"),
        (LINES, {"algo": "margin", "tol": 0.1}, "tol=0.1 needs passes over all rows"),
        (LINES, {"max_corrections": 5}, "max_corrections=5 ends a fit"),
        (LINES, {"max_iter": 0.5}, "max_iter=0.5 ends within rows not yet counted"),
        (LINES, {"algo": "pnorm", "p": "log"}, "p='log' needs the number of features"),
        (LINES, {"algo": "alma", "normalize": "max"}, "normalize='running'"),
        (
            LINES,
            {"class_weight": "balanced", "algo": "alma", "positive": 7},
            "no row has the label",
        ),
        (LINES, {"algo": "ho", "max_updates": None}, "keeps the rows.*max_updates=100"),
        (LINES, {"algo": "ho", "max_updates": 9, "solver": "primal"}, "needs the number"),
        (LINES, {"algo": "maxmargin"}, "'maxmargin' keeps a number for every row"),
    ],
)
def test_options_that_cannot_stream_are_rejected_with_a_remedy(lines, settings, told):
    with pytest.raises(ValueError, match=told):
        fit_svmlight(file(lines), **{"algo": "perceptron", **settings})


def test_words_are_classes_and_equal_numbers_are_one_class():
    path = file("spam 1:1\nham 2:1\nspam 1:1 3:1\n")
    same(fit_svmlight(path, "alma"), of_loaded(path))
    model = fit_svmlight(file("+1 1:1\nspam 2:1\n"), "perceptron")
    path = file("1 1:1\nspam 2:1\n1.0 1:1\n")
    assert fit_svmlight(path, init_model=model).classes_.tolist() == ["+1", "spam"]
    assert fit_svmlight(path, "alma", classes={"1", "spam"}).classes_.tolist() == ["1", "spam"]


def test_positive_selects_one_label_against_the_rest():
    path = file("1,word 1:1 2:1\n2 2:1\n 3:1\nword,2,1 1:1 3:1\n2,3 2:2 3:1\n")
    X, labels = load_svmlight(path, multilabel=True)
    for positive in 1, "1", "word":
        y = np.where([str(positive) in row for row in labels], 1.0, -1.0)
        model = fit_svmlight(path, "alma", positive=positive)
        same(model, fit_csr(X, y, "alma", max_iter=1, shuffle=False))


def test_rare_label_is_reported_after_the_first_epoch(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 1000)
    lines = "C15,M11 1:1\nM11 2:1\n" * 200
    late = file(lines + "C51 3:1\n", "late.svm")
    assert fit_svmlight(late, positive="C51").n_features_in_ == 3
    text, told = file(lines), r"no row has the label positive='C51'. There are: C15, M11"
    for params in {}, {"max_iter": 5, "cache": True}, {"max_iter": 5, "cache": True}:
        report = Mock()
        with pytest.raises(ValueError, match=told):
            learn_svmlight(text, positive="C51", report=report, **params)
        assert report.call_args[0][0].epoch == 1


def test_unshuffled_epochs_equal_those_of_a_fit(text, three_classes):
    for path, algo in (text, "alma"), (three_classes, "pnorm"):
        expected = of_loaded(path, algo, max_iter=4)
        for _ in "makes the cache", "reads it":
            same(fit_svmlight(path, algo, max_iter=4, shuffle=False, cache=True), expected)
            assert path.with_name(path.name + ".smcache").exists()
    # The cache is written again after the file has changed.
    text.write_text("".join(text.read_text().splitlines(keepends=True)[:300]))
    model = fit_svmlight(text, "alma", max_iter=2, shuffle=False, cache=True)
    same(model, of_loaded(text, max_iter=2))
    # Training ends after an epoch without a correction.
    path = file("1 1:1 2:0.5\n-1 2:1\n1 1:1 3:1\n")
    for settings in {"max_iter": None, "hypothesis": "last"}, {"max_iter": 50}:
        model = fit_svmlight(path, "perceptron", shuffle=False, **settings)
        same(model, of_loaded(path, "perceptron", **settings))


def test_temporary_cache_is_removed(text, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    expected, before = of_loaded(text, max_iter=3), sorted(tmp_path.iterdir())
    # This also holds for a source that can be read only once.
    for source in text, text.open("rb"):
        found: set[Path] = set()
        report = Mock(side_effect=lambda moment, found=found: found.update(tmp_path.rglob("*")))
        learner = learn_svmlight(source, "alma", max_iter=3, shuffle=False, report=report)
        same(as_classifier(learner), expected)
        assert sorted(tmp_path.iterdir()) == before
        # There is no named file during the run, so a killed process leaves none.
        assert sorted(found) == before
    monkeypatch.setattr(ArchiveWriter, "array", Mock(side_effect=OSError(28, "full")))
    with pytest.raises(OSError, match=r"full: .*temporary"):
        fit_svmlight(text, max_iter=2)


def test_error_in_writing_the_cache_stops_the_scan(text, monkeypatch):
    """The scan ends immediately, although the traceback of the error refers to it."""
    monkeypatch.setattr(ArchiveWriter, "array", Mock(side_effect=OSError(28, "full")))
    with pytest.raises(OSError, match="full") as kept:
        fit_svmlight(text, max_iter=2)
    frames = [frame for frame, _ in walk_tb(kept.tb) if frame.f_code.co_name == "write_cache"]
    assert inspect.getgeneratorstate(frames[0].f_locals["blocks"]) == inspect.GEN_CLOSED


def test_shuffled_epochs_depend_only_on_the_seed(text, tmp_path):
    def fit(seed, n_jobs, path=text, cache=False):
        settings = {"max_iter": 3, "random_state": seed, "n_jobs": n_jobs, "cache": cache}
        return fit_svmlight(path, "alma", **settings)

    first = fit(0, 1)
    same(fit(0, 2, cache=tmp_path / "other.cache"), first)
    # A glob pattern does not match cache files.
    same(fit(0, 2, str(tmp_path / "train*")), first)
    assert not np.array_equal(fit(1, 1).coef_, first.coef_)


def test_continued_training_equals_one_file(text, tmp_path):
    lines = text.read_text().splitlines(keepends=True)
    first, second = file("".join(lines[:250]), "first"), file("".join(lines[250:]), "second")
    earlier = fit_svmlight(first, "alma", p=3)
    before = earlier.coef_.copy()
    further = fit_svmlight(second, init_model=earlier)
    same(further, fit_svmlight(text, "alma", p=3))
    # `t_` is 1 plus the number of trials of the last run only.
    assert further.t_ == 1 + len(load_svmlight(second)[1])
    np.testing.assert_array_equal(earlier.coef_, before)
    other = fit_csr(*load_svmlight(text), "alma", hypothesis="vote").set_params(
        hypothesis="average"
    )
    for settings, told in [
        ({"algo": "alma", "init_model": earlier}, "Leave out algo"),
        ({"init_model": sparsemargin.ALMAClassifier()}, "init_model is not fitted"),
        ({"init_model": other}, "init_model can't go on with another hypothesis"),
    ]:
        with pytest.raises(ValueError, match=told):
            fit_svmlight(second, **settings)
    # Feature names are dropped if a file has more features.
    earlier.feature_names_in_ = np.array(["a"] * earlier.n_features_in_, dtype=object)
    further = fit_svmlight(file("1 1:1\n-1 9999:1\n"), init_model=earlier)
    assert not hasattr(further, "feature_names_in_")
    save_model(further, tmp_path / "a.model")


@pytest.mark.parametrize(
    ("algo", "params"), [("ho", {"p": 2, "solver": "primal"}), ("ho", {"p": 4}), ("so", {})]
)
def test_primal_matrix_grows_with_the_features(algo, params):
    """With n_features=N and index N there are N + 1 columns until it is known that 0 is unused."""
    draw = np.random.RandomState(0).randint
    path = file("".join(f"{draw(2)} {draw(1, 31)}:1 {draw(31, 61)}:0.5\n" for _ in range(2000)))
    X, y = load_svmlight(path)
    model = fit_svmlight(path, algo, n_features=X.shape[1], max_updates=600, **params)
    expected = of_stream(path, model)
    assert model.solver_ == expected.solver_ == "primal"
    near = {"rtol": 1e-8, "atol": 1e-10}
    np.testing.assert_allclose(model.coef_, expected.coef_, **near)
    for each in model, expected:
        each.partial_fit(X[:200], y[:200])
    wide = file("1 1:1 100:2\n0 5:1 90:3\n" * 20)
    further = fit_svmlight(wide, init_model=model)
    assert further.n_features_in_ == 100
    expected.space.resize(100)
    expected.n_features_in_ = 100
    expected.partial_fit(*load_svmlight(wide))
    np.testing.assert_allclose(further.coef_, expected.coef_, **near)
    with pytest.raises(ValueError, match="n x n matrix over 30000 features would take"):
        fit_svmlight(file("1 1:1 20000:2\n0 5:1 90:3\n"), init_model=model)


def test_ctrl_c_keeps_the_trained_model(text):
    moments = []

    def interrupt(moment):
        moments.append(moment)
        if moment.rows > 100:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="Interrupted after .* rows of epoch 1"):
        learner = learn_svmlight(text, "alma", report=interrupt)
    lines = text.read_text().splitlines(keepends=True)
    expected = of_loaded(file("".join(lines[: moments[-1].rows])))
    n_features = learner.n_features_in_
    np.testing.assert_array_equal(learner.space.weights()[:, :-1], expected.coef_[:, :n_features])


def test_error_after_ctrl_c_is_reported(text, monkeypatch):
    def interrupt(moment):
        raise KeyboardInterrupt

    def fail(self):
        raise ValueError("no features")

    monkeypatch.setattr(run.Run, "_finish", fail)
    with pytest.raises(ValueError, match="no features"):
        learn_svmlight(text, "alma", report=interrupt)


@pytest.mark.parametrize(
    ("kind", "algo", "params"), [("text", "alma", {}), ("three_classes", "pnorm", {"p": 4.0})]
)
def test_reported_error_is_progressive_validation(request, kind, algo, params):
    rows = request.getfixturevalue(kind).read_text().splitlines(keepends=True)
    path, moments = file("".join(rows[:120])), []
    X, y = load_svmlight(path)
    params = {"intercept_scaling": 1.0, "hypothesis": "last", **params}
    learn_svmlight([path, path], algo, report=moments.append, **params)
    model = type(fit_csr(X, y, algo, max_iter=1))(**params)
    # Before the first row, the model predicts 1 for two classes, and the first of three classes.
    guess, wrong = [1.0, 0.0][kind == "three_classes"], 0
    for i in [*range(X.shape[0])] * 2:
        if hasattr(model, "classes_"):
            guess = model.predict(X[i])[0]
        wrong += guess != y[i]
        model.partial_fit(X[i], y[i : i + 1], classes=np.unique(y))
    last = moments[-1]
    assert (last.mistakes, last.rows, last.features) == (wrong, 2 * X.shape[0], X.shape[1])
    # The bytes of a file that is passed twice count twice.
    assert last.consumed == last.size == 2 * os.path.getsize(path)


@pytest.mark.parametrize(
    ("algo", "params"),
    [("arow", {}), ("pnorm", {"p": 4.0}), ("alma", {"hypothesis": "last"})],
)
def test_threads_share_the_vectors_of_a_file(three_classes, monkeypatch, algo, params):
    """In the first epoch half of the threads train, in later ones all. The model and the mistakes
    are the same."""
    monkeypatch.setattr(threads, "PRODUCTS_PER_THREAD", 1)
    monkeypatch.setattr(linear_loop, "LINE_BYTES", 1)
    shared, cut = [], linear_loop.cut_vectors

    def cut_vectors(*how):
        slices = cut(*how)
        shared[-1].append(len(slices))
        return slices

    monkeypatch.setattr(linear_loop, "cut_vectors", cut_vectors)
    models, told = [], []
    for n_jobs in 1, 2, 4, 6:
        shared.append([])
        moments = []
        settings = {"max_iter": 2, "random_state": 0, "n_jobs": n_jobs, **params}
        learner = learn_svmlight(three_classes, algo, report=moments.append, **settings)
        models.append(as_classifier(learner))
        told.append([(each.rows, each.corrections, each.mistakes) for each in moments])
    for model, each in zip(models[1:], told[1:], strict=True):
        same(model, models[0])
        assert each == told[0]
    n_blocks = len(told[0]) // 2
    assert told[0][n_blocks - 1][2] > 0
    twos, threes = [2] * n_blocks, [3] * n_blocks
    expected = [], twos, twos + threes, threes + threes
    for found, each in zip(shared, expected, strict=True):
        assert found[: len(each)] == each  # the models for held-out rows follow


def test_progress_lines_are_limited_to_two_per_second():
    out = io.StringIO()
    report = ProgressLines(out)
    counts = {"consumed": 9, "size": 9, "rows": 1, "features": 1, "corrections": 1, "mistakes": 0}
    for epoch in range(1, 1011):
        report(Progress(epoch, seconds=epoch / 1000, **counts))
    epochs = [int(line.split()[1]) for line in out.getvalue().splitlines()[1:]]
    assert epochs == [*range(1, 11), 510, 1010]


def test_progress_lines_show_no_figures_of_pending_rows():
    out = io.StringIO()
    report = ProgressLines(out)
    counts = {"consumed": 9, "size": 9, "features": 1, "corrections": 3, "mistakes": 2}
    moments = [(1, 8, 8), (2, 8, 0), (7, 16, 8), (8, 16, 0), (14, 8, 8), (15, 16, 0)]
    for seconds, rows, pending in moments:
        epoch = 1 + (seconds > 10)
        report(Progress(epoch, seconds=seconds, rows=rows, pending=pending, **counts))
    lines = [line.split()[:6] for line in out.getvalue().splitlines()[1:]]
    assert lines == [
        ["8", "1", "1", "3", "25.000", "-"],
        ["16", "1", "1", "-", "25.000", "-"],
        ["16", "1", "1", "3", "12.500", "-"],
        ["8", "2", "1", "-", "-", "-"],
        ["16", "2", "1", "3", "-", "12.500"],
    ]


def test_open_files_are_accepted(text):
    whole = of_loaded(text, random_state=0)
    for source in text.open("rb"), io.BytesIO(text.read_bytes()), os.open(text, os.O_RDONLY):
        same(fit_svmlight(source, "alma", random_state=0), whole)
    with pytest.raises(ValueError, match=r"can be read only once, .* Pass cache=PATH"):
        fit_svmlight(text.open("rb"), cache=True)
    with pytest.raises(ValueError, match=r"it can't be read twice. Pass all labels"):
        fit_svmlight(io.BytesIO(b"1 1:1\n" * 2000 + b"2 1:1\n"))


def test_run_keeps_its_cache_if_another_run_replaces_it(text, tmp_path, monkeypatch):
    """The other run reads the file with other settings and finishes at the same moment."""
    expected = fit_svmlight(text, "alma", max_iter=3, random_state=0, cache=tmp_path / "own")
    fit_svmlight(text, "alma", max_iter=2, hash_bits=9, cache=tmp_path / "other")
    replace = os.replace

    def both_replace(fresh, target):
        replace(fresh, target)
        replace(tmp_path / "other", target)

    monkeypatch.setattr(os, "replace", both_replace)
    same(fit_svmlight(text, "alma", max_iter=3, random_state=0, cache=tmp_path / "rows"), expected)


def test_text_changed_in_the_middle_is_read_again(tmp_path):
    lines = [f"{'ab'[i % 2]} {1 + i % 2}:1 {3 + i % 5}:1\n" for i in range(30_000)]
    for half in "ab":
        middle = "".join(f"{half} {1 + i % 2}:1\n" for i in range(2000))
        (tmp_path / half).write_text("".join(lines) + middle + "".join(lines))
    text = tmp_path / "a"
    settings = {"algo": "alma", "max_iter": 2, "random_state": 0, "cache": True}
    first, expected = (fit_svmlight(tmp_path / half, **settings) for half in "ab")
    before = text.stat()
    text.write_bytes((tmp_path / "b").read_bytes())
    os.utime(text, ns=(before.st_atime_ns, before.st_mtime_ns))
    same(fit_svmlight(text, **settings), expected)
    assert first.n_corrections_ != expected.n_corrections_


def test_labels_of_any_number_are_kept_for_further_epochs(tmp_path, monkeypatch):
    (tmp_path / "a").write_text(
        "".join(f"{'spam' if i % 3 else 'ham'},\udcff{i},{i} {1 + i % 50}:1\n" for i in range(900)),
        errors="surrogateescape",
    )
    settings = {"algo": "alma", "positive": "spam", "max_iter": 2, "random_state": 0}
    expected = fit_svmlight(tmp_path / "a", cache=tmp_path / "rows", **settings)
    monkeypatch.setattr(archive, "_LONGEST_DOCUMENT", 1000)
    for cache in "rows", "fresh":
        same(fit_svmlight(tmp_path / "a", cache=tmp_path / cache, **settings), expected)


def test_pipes_are_read_once(text, tmp_path):
    with standard_input(text.read_bytes()):
        same(fit_svmlight("-", "alma"), of_loaded(text))
    one_class = standard_input(b"1 1:1\n" * 100)
    with one_class, pytest.raises(ValueError, match="Pass all labels as classes"):
        fit_svmlight("-", "alma")
    os.mkfifo(tmp_path / "pipe")
    told = re.escape(f"{tmp_path / 'pipe'} can be read only once, ") + ".*Pass cache=PATH"
    with pytest.raises(ValueError, match=told):
        fit_svmlight([text, tmp_path / "pipe"], cache=True)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_first_error_stops_training(n_jobs):
    lines = [f"{(-1) ** i} {i % 7 + 1}:1" for i in range(6000)]
    for line in (700, 1200, 1201, 4000):
        lines[line - 1] = "1 1:x"
    path, rows = file("\n".join(lines)), []
    with pytest.raises(ValueError, match=r"few.svm, line 700, column 3"):
        learn_svmlight(path, "alma", n_jobs=n_jobs, report=lambda moment: rows.append(moment.rows))
    assert not rows or rows[-1] < 700


@pytest.mark.parametrize(("how", "words"), [
    ({"memory_limit": "200M"}, "memory_limit must be an integer of at least 1, got '200M'"),
    ({"memory_limit": 0}, "memory_limit must be an integer of at least 1, got 0"),
    ({"memory_limit": 10, "algo": "arow"}, "1 features take .* more than memory_limit=10"),
    ({"init_model": "news.model"}, "init_model='news.model' is a path.*load_model"),
])  # fmt: skip
def test_arguments_of_wrong_types_are_reported(tmp_path, how, words):
    (tmp_path / "few.svm").write_text("a 1:1\nb 1:2\n")
    with pytest.raises(ValueError, match=words):
        fit_svmlight(tmp_path / "few.svm", **how)


class Matrix(RowSource):
    """A minimal source of rows in memory."""

    names, size, rereadable = "the matrix", None, True

    def __init__(self, X, y):
        self.X, self.y = X, y
        self.reading = Reading(X.dtype, zero_based=True, n_features=X.shape[1])

    def identity(self):
        return {"n_entries": self.X.nnz}

    def scan(self, table, max_index=None):
        for start in range(0, len(self.y), 150):
            X, y = self.X[start : start + 150], self.y[start : start + 150]
            ids = table.take([str(label) for label in y.tolist()], y)
            highest = int(X.indices.max())
            yield LabelledRows(X.data, X.indices, X.indptr, ids, lowest=0, highest=highest)


@pytest.mark.parametrize("max_iter", [1, 3])
def test_custom_row_sources_are_accepted(text, max_iter):
    X, y = load_svmlight(text)
    params = {"p": 4.0, "shuffle": False}
    options = StreamOptions(algo="pnorm", max_iter=max_iter, params=params)
    same(as_classifier(learn_rows(Matrix(X, y), options)),
         fit_csr(X, y, "pnorm", max_iter=max_iter, **params))  # fmt: skip
    assert learn_rows(Matrix(X, y), StreamOptions()).classifier == "AROWClassifier"
