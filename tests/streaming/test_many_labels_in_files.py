"""Multilabel files: training, prediction and evaluation give the same results as for arrays."""

import io
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import accuracy_score, hamming_loss
from sklearn.preprocessing import MultiLabelBinarizer

from problems.command_line import assert_averages, evaluated, run, write
from problems.models import assert_same
from problems.sources import standard_input
from sparsemargin import (
    PNormPerceptron,
    fit_csr,
    fit_svmlight,
    load_model,
    load_svmlight,
    save_model,
)
from sparsemargin.cli.parameters import option_name
from sparsemargin.files import sources
from sparsemargin.files.sources import open_sources
from sparsemargin.kernels import RBF
from sparsemargin.saving.model_files import read_summary
from sparsemargin.saving.readable import write_readable
from sparsemargin.streaming import predict
from sparsemargin.streaming.predict import Predictor, svmlight_of

N_LABELS = 6


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Use blocks so small that a few KB of text are many blocks."""
    monkeypatch.setattr(sources, "BLOCK_BYTES", 2048)


@pytest.fixture
def text(tmp_path):
    return write_rows(tmp_path / "many.svm", 300)


def write_rows(path, n_rows, seed=0):
    """Write rows with labels that partly depend on them. Every fourth row has no label, and the
    last label first occurs in the last quarter."""
    random = np.random.RandomState(seed)
    X = sp.random(n_rows, 40, density=0.2, format="csr", random_state=random)
    scores = X @ np.random.RandomState(1).standard_normal((40, N_LABELS))
    Y = scores + 0.2 * random.standard_normal(scores.shape) > 0.6
    Y[::4] = False
    Y[: n_rows * 3 // 4, -1] = False
    Y[-1, -1] = True
    return write(path, X, Y.astype(int), multilabel=True)


@pytest.mark.parametrize(("p", "hypothesis"), [(2.0, "average"), (4.0, "last")])
def test_stream_of_many_labels_equals_a_fit(text, tmp_path, p, hypothesis):
    X, y = load_svmlight(text, multilabel=True)
    params = {"p": p, "hypothesis": hypothesis, "intercept_scaling": 1.0, "shuffle": False}
    for max_iter in 1, 3:
        whole = PNormPerceptron(max_iter=max_iter, **params).fit(X, y)
        settings = {**params, "max_iter": max_iter, "cache": tmp_path / "rows"}
        # Epochs after the first read the cache.
        for _ in range(max_iter):
            model = fit_svmlight(text, "pnorm", multilabel=True, **settings)
            assert model.classes_.tolist() == whole.classes_.tolist() == list(range(N_LABELS))
            np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert model.predict(X) == whole.predict(X)
    assert 0 < model.score(X, y) < 1


def test_balanced_weights_equal_those_of_a_fit(text, tmp_path):
    repeated = tmp_path / "repeated.svm"
    repeated.write_text(re.sub(r"(?m)^(\d)", r"\1,\1", text.read_text()))
    X, y = load_svmlight(text, multilabel=True)
    params = {"class_weight": "balanced", "max_iter": 1, "shuffle": False}
    whole = PNormPerceptron(**params).fit(X, y)
    for path in text, repeated:
        model = fit_svmlight(path, "pnorm", multilabel=True, **params)
        np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert not np.array_equal(fit_svmlight(text, "pnorm", multilabel=True).coef_, whole.coef_)
    # With `positive`, one label is distinguished from all others.
    is_0 = np.array([0 in labels for labels in y])
    expected = fit_csr(X, np.where(is_0, 1.0, -1.0), "alma", **params)
    for path in text, repeated:
        model = fit_svmlight(path, "alma", positive=0, **params)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_classes_may_be_given(text):
    plain = fit_svmlight(text, "alma", multilabel=True)
    model = fit_svmlight(text, "alma", multilabel=True, classes=[*range(N_LABELS), 77])
    assert model.classes_[-1] == 77
    np.testing.assert_array_equal(model.coef_[:-1], plain.coef_)
    with pytest.raises(ValueError, match="label 5"):
        fit_svmlight(text, "alma", multilabel=True, classes=range(N_LABELS - 1))
    # Standard input can be read only once, so labels that occur late must be passed as classes.
    with standard_input(text.read_bytes()), pytest.raises(ValueError, match="classes="):
        fit_svmlight("-", "alma", multilabel=True)


def test_label_lists_may_be_words_repeated_or_unsorted(tmp_path):
    path = tmp_path / "few.svm"
    for lines, classes, predicted in [
        (
            "zinc,gold,zinc 1:1\n 2:1\ngold 3:1\nzinc 4:1 # a comment\n",
            ["gold", "zinc"], [("gold", "zinc"), (), ("gold",), ("zinc",)],
        ),
        (" 1:1\n7 2:1\n 3:1\n", [7], [(), (7.0,), ()]),
    ]:  # fmt: skip
        path.write_text(lines)
        model = fit_svmlight(path, "pnorm", max_iter=20, multilabel=True, cache=tmp_path / "rows")
        assert model.classes_.tolist() == classes
        assert model.predict(sp.eye(len(predicted), format="csr")) == predicted
        assert model.n_corrections_.shape == (len(classes),)
    # A single label is written with its name, and not as one of two classes.
    save_model(model, tmp_path / "a.model")
    told = read_summary(tmp_path / "a.model")
    assert told["many_labels"]
    assert told["n_corrections"] == model.n_corrections_.tolist()
    lines = io.StringIO()
    write_readable(lines, model)
    weights = [line for line in lines.getvalue().splitlines() if not line.startswith("#")]
    assert {line.split("\t")[0] for line in weights} == {"7.0"}
    path.write_text(" 1:1\n 2:1\n")
    with pytest.raises(ValueError, match="has no row with a label"):
        fit_svmlight(path, multilabel=True)


def test_saved_multilabel_models_continue_training(text, tmp_path):
    first = fit_svmlight(text, "alma", multilabel=True, classes=range(N_LABELS))
    save_model(first, tmp_path / "a.model")
    more = write_rows(tmp_path / "more.svm", 100, seed=3)
    further = fit_svmlight(more, init_model=load_model(tmp_path / "a.model"))
    assert_same(further, fit_svmlight(more, init_model=first))
    both = fit_svmlight([text, more], "alma", multilabel=True)
    np.testing.assert_array_equal(further.coef_, both.coef_)


def test_incompatible_options_are_rejected(text, model):
    one, many = fit_svmlight(text, positive=1), load_model(model)
    kernel = {"algo": "alma", "kernel": RBF(1.0, max_support=9)}
    for settings, words in [
        ({"positive": 1, "multilabel": True}, "Leave one of the two out"),
        ({"algo": "ho", "max_updates": 9, "multilabel": True}, "OneVsRestClassifier"),
        ({**kernel, "multilabel": True}, "OneVsRestClassifier"),
        ({"init_model": one, "multilabel": True}, "was trained with one class per row"),
        ({"init_model": many, "positive": 1}, "Leave one of the two out"),
    ]:
        with pytest.raises(ValueError, match=words):
            fit_svmlight(text, **settings)
    assert "is a multilabel model" in run("evaluate", model, text, "--positive", 1, code=1).stderr
    save_model(one, model)
    told = run("predict", model, text, "--threshold", 2).stdout.splitlines()
    X, _ = load_svmlight(text, multilabel=True)
    reached = (one.decision_function(X) >= 2).astype(int)
    assert [float(line) for line in told] == one.classes_[reached].tolist()
    three = PNormPerceptron().fit(X, np.arange(X.shape[0]) % 3)
    three.fitted.reading = one.fitted.reading
    save_model(three, model)
    for command in "predict", "evaluate":
        result = run(command, model, text, "--threshold", 2, code=1)
        assert "is for multilabel models, or two classes without" in result.stderr
    save_model(one, model)
    assert "Leave --top-k 2 out" in run("evaluate", model, text, "--top-k", 2, code=1).stderr


@pytest.fixture
def model(text, tmp_path):
    path = tmp_path / "a.model"
    run("train", text, "-o", path, "-q", "--multilabel", "--algo", "alma", "--seed", "0")
    return path


def predicted(*args):
    return run("predict", *args).stdout.split("\n")[:-1]


def lines_of(labels):
    return [",".join(str(int(label)) for label in row) for row in labels]


def test_multilabel_predictions_are_separated_by_commas(text, model):
    fitted, (X, _) = load_model(model), load_svmlight(text, multilabel=True)
    assert_same(fitted, fit_svmlight(text, "alma", multilabel=True, random_state=0))
    assert "multilabel classes" in run("info", model).stdout
    sure = fitted.predict_labels(X, top_k=2, threshold=0.01)
    assert predicted(model, text, "--top-k", 2, "--threshold", 0.01) == lines_of(sure)
    header, *rows = (line.split("\t") for line in predicted(model, text, "--scores"))
    assert header == ["label", *map(str, range(N_LABELS))]
    labels = [row[0] for row in rows]
    assert labels == predicted(model, text) == lines_of(fitted.predict(X))
    assert "" in labels
    scores = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_array_equal(scores, fitted.decision_function(X))


@pytest.mark.parametrize("chosen", [{}, {"top_k": 1}, {"threshold": 1e9}])
def test_multilabel_figures_agree_with_scikit_learn(text, model, chosen):
    options = [word for name, value in chosen.items() for word in (option_name(name), value)]
    fitted, figures = load_model(model), evaluated(model, text, *options)
    X, y = load_svmlight(text, multilabel=True)
    binarizer = MultiLabelBinarizer(classes=fitted.classes_.tolist()).fit([])
    Y, told = map(binarizer.transform, (y, fitted.predict_labels(X, **chosen)))
    assert figures["rows"] == len(y)
    assert figures["subset_accuracy"] == pytest.approx(accuracy_score(Y, told))
    assert figures["mistakes"] == (told != Y).any(axis=1).sum()
    assert figures["hamming_loss"] == pytest.approx(hamming_loss(Y, told))
    assert_averages(figures, Y, told)
    report = run("evaluate", model, text, *options).stdout
    assert re.search(f"subset accuracy +{100 * figures['subset_accuracy']:.2f} %", report)
    assert "Hamming loss" in report


def predictor(model, path):
    return Predictor(model, svmlight_of(model, open_sources(path)))


def test_outputs_of_a_block_are_computed_in_parts(text, model, tmp_path, monkeypatch):
    X, y = load_svmlight(text, multilabel=True)
    single = write(tmp_path / "rows.svm", X, [max(labels, default=N_LABELS) for labels in y])
    run("train", single, "-o", tmp_path / "one.model", "-q")

    def told():
        both = (model, text), (tmp_path / "one.model", single)
        return [(predicted(*files, "--scores"), evaluated(*files)) for files in both]

    whole = told()
    monkeypatch.setattr(predict, "_OUTPUTS_PER_PART", 3 * N_LABELS)
    assert told() == whole
    blocks = list(predictor(load_model(model), text).blocks())
    assert sum(each.block.n_rows for each in blocks) == 300
    assert all(len(each.outputs) == each.block.n_rows <= 3 for each in blocks)
    # Line numbers in errors count the rows of all parts of a block. The output here is infinite.
    text.write_text("# huge\n\n" + "a,b 1:1\n" * 7 + "b 1:1e308 2:1e308 3:1e308\n")
    huge = PNormPerceptron(normalize=False).fit(sp.csr_matrix(9 * np.eye(3)), [["a"], ["b"], []])
    with pytest.raises(ValueError, match="line 10: the output for this row exceeds"):
        list(predictor(huge, text).blocks())


def test_unknown_labels_count_for_exact_matches_only(model, text):
    known = evaluated(model, text)
    # Add an unknown label to every row that has labels.
    stranger, n_labelled = re.subn(r"(?m)^(\S+)", r"\1,99", text.read_text())
    text.write_text(stranger)
    figures = evaluated(model, text)
    assert figures["unknown_labels"] == [{"label": "99", "rows": n_labelled}]
    for name in "hamming_loss", "micro_f1", "macro_precision", "classes":
        assert figures[name] == known[name]
    assert figures["mistakes"] >= n_labelled
