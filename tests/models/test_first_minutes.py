"""What a newcomer meets first: names to complete, messages, reprs, and the shell's completion."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline

import sparsemargin
from problems.command_line import ROOT, run
from sparsemargin import ALMAClassifier, HigherOrderPerceptron, fit_csr, load_model
from sparsemargin.cli import main
from sparsemargin.evaluation import learning_curve_over_epochs, margins, trade_off_over_alpha


def test_packages_are_there_without_an_import_of_their_own():
    code = (
        "import sparsemargin, sys; names = dir(sparsemargin);"
        "heavy = {'matplotlib', 'sklearn'} & set(sys.modules);"
        "found = sparsemargin.datasets.make_zipf_text, sparsemargin.evaluation.margins;"
        "found = sparsemargin.plotting.theme, sparsemargin.plotting.GrowthDisplay;"
        "print(not heavy, 'matplotlib' not in sys.modules, 'plotting' in names, 'fit_csr' in names)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["True"] * 4
    with pytest.raises(AttributeError, match="no attribute 'fit_cvs'"):
        _ = sparsemargin.fit_cvs
    with pytest.raises(AttributeError, match="is now python -m papers"):
        _ = sparsemargin.reproduce


def test_only_what_is_for_users_is_offered():
    offered = {name for name in dir(sparsemargin) if not name.startswith("__")}
    parts = {"datasets", "distributed", "evaluation", "plotting"}
    assert offered == {*sparsemargin.__all__, *parts}
    assert set(sparsemargin.__all__) == {
        "ALMAClassifier", "CRAMMAClassifier", "HigherOrderPerceptron", "MarginPerceptron",
        "MaxMarginClassifier", "PNormPerceptron", "ROMMAClassifier", "SecondOrderPerceptron",
        "fit_csr", "fit_svmlight", "load_model", "load_svmlight", "save_model",
        "write_readable",
    }  # fmt: skip
    for name in sparsemargin.__all__:
        assert getattr(sparsemargin, name).__doc__


@pytest.mark.parametrize(("algo", "settings", "told"), [
    ("almma", {}, r"algo='almma'\. Did you mean 'alma'\?"),
    ("Alma", {}, r"Did you mean 'alma'\?"),
    ("svm", {}, "algo='svm'"),
    ("", {}, "algo=''"),
    (("alma",), {}, r"algo=\('alma',\)"),
    (["alma"], {}, r"algo=\['alma'\]"),
    (3, {}, "algo=3"),
    (ALMAClassifier(), {}, r"Did you mean 'alma'\?"),
    (HigherOrderPerceptron, {}, r"Did you mean 'ho'\?"),
    ("PNormPerceptron", {}, r"Did you mean 'pnorm'\?"),
    ("alma", {"alpa": 0.5}, r"'alpa' for algo='alma'\. Did you mean 'alpha'\?"),
    ("ho", {"max_itr": 3}, r"Did you mean 'max_iter'\?"),
    ("alma", {"epochs": 3}, r"Did you mean 'max_iter'\?"),
    (None, {"eta": 1.0}, "'eta'"),
    ("perceptron", {"normalize": True}, "It is a parameter of 'pnorm', 'alma'"),
    ("romma", {"p": 4}, r"It is a parameter of 'pnorm', 'alma', 'ho', 'margin', 'maxmargin'\."),
    ("pnorm", {"alpha": 0.5}, r"It is a parameter of 'alma'\."),
])  # fmt: skip
def test_unknown_names_are_answered_by_those_meant(algo, settings, told):
    with pytest.raises(ValueError, match=told) as refusal:
        fit_csr(np.eye(2), [0, 1], algo, **settings)
    known = str(refusal.value).partition("Known are: ")[2].rstrip(".").split(", ")
    there_are = {"max_iter"} if settings else {"'perceptron'", "'pnorm'", "'alma'"}
    assert there_are <= {*known}
    assert not {*settings} & {*known}


def test_probabilities_are_not_there_and_the_error_says_where_they_are():
    model = fit_csr(np.eye(2), [0, 1])
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match="CalibratedClassifierCV"):
        model.predict_proba(np.eye(2))


def test_a_pipeline_is_told_to_pass_its_last_step(tmp_path):
    texts, labels = ["good film", "bad film"], ["good", "bad"]
    model = make_pipeline(CountVectorizer(), ALMAClassifier()).fit(texts, labels)
    with pytest.raises(ValueError, match=r"pipeline\[-1\].*joblib\.dump"):
        sparsemargin.save_model(model, tmp_path / "film.model")
    with pytest.raises(ValueError, match=r"pipeline\[-1\], with X as"):
        margins(model, texts, labels)
    with pytest.raises(ValueError, match=r"pipeline\[-1\], with X as"):
        trade_off_over_alpha(model, texts, labels, p=[2], alpha=[0.9])


def test_a_picture_names_features_by_the_vectorizer():
    plotting = pytest.importorskip("sparsemargin.plotting")
    pytest.importorskip("matplotlib").use("Agg")
    texts, labels = ["good film", "bad film", "good plot", "bad plot"], ["good", "bad"] * 2
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts)
    display = plotting.StrongestFeaturesDisplay.from_estimator(
        fit_csr(X, labels, random_state=0), feature_names=vectorizer, top=2
    )
    assert set(display.weights["good"].names) == {"good", "bad"}
    splits = [(np.arange(4), np.arange(4))] * 2
    display = plotting.SelectionStabilityDisplay.from_estimator(
        ALMAClassifier(), X, labels, splits=splits, top=2, feature_names=vectorizer
    )
    assert list(display.feature_names) == ["bad", "film", "good", "plot"]


def test_rows_with_several_labels_are_told_what_each_command_can_do(tmp_path):
    one, several = tmp_path / "one.svm", tmp_path / "several.svm"
    bare, model = tmp_path / "bare.svm", tmp_path / "one.model"
    one.write_text("a 1:1\nb 2:1\n")
    several.write_text("a,b 1:1\n")
    bare.write_text("1:1\n")
    run("train", one, "-o", model)
    told = run("evaluate", model, several, code=1).stderr
    assert "positive=LABEL, to tell that one from all others." in told
    told = run("train", bare, "-o", model, code=1).stderr
    assert "Put one first, or pass multilabel=True" in told
    several.write_text("a,b 1:1\na 2:1\n")
    told = run("train", several, "-o", model, "--multilabel").stderr
    assert "corrections" in told
    assert "one-step-ahead" not in told


def test_inspect_counts_the_features_that_weigh_without_the_intercept(tmp_path):
    file, model = tmp_path / "two.svm", tmp_path / "two.model"
    file.write_text("a 1:1 2:0.5\nb 2:1\na 1:1\n")
    run("train", file, "-o", model)
    assert load_model(model).intercept_[0] != 0
    assert json.loads(run("inspect", model, "--json").stdout)["n_nonzero"] == 2


@pytest.mark.parametrize("texts", [
    ["good film", "bad film"], np.array(["good film", "bad film"]), ("good film", "bad film"),
    "good film", [b"good film", b"bad film"],
])  # fmt: skip
def test_texts_are_told_what_turns_them_into_numbers(texts):
    for call in (lambda X: fit_csr(X, [0, 1]), fit_csr(np.eye(2), [0, 1]).predict):
        with pytest.raises(
            ValueError, match=r"X holds text, such as b?'good film'.*TfidfVectorizer"
        ):
            call(texts)


@pytest.mark.parametrize(("call", "told"), [
    (lambda: fit_csr([{"good": 1}, {"bad": 2}], [0, 1]), "X holds dicts.*DictVectorizer"),
    (lambda: fit_csr(np.eye(2), None), "Give a label for each row of X"),
    (lambda: fit_csr(coo_array(np.ones(3)), [0]), "Give a matrix of rows and columns"),
    (lambda: sparsemargin.write_readable(fit_csr(np.eye(2), [0, 1]), "weights.txt"),
     r"got str\. The file comes before it"),
    (lambda: learning_curve_over_epochs(
        ALMAClassifier(), np.eye(2), [0, 1], np.eye(2), [0, 1], epochs=3),
     r"such as range\(1, 11\), got 3"),
    (lambda: learning_curve_over_epochs(
        ALMAClassifier(), np.eye(2), [1, 1], np.eye(2), [0, 1], epochs=[1]),
     "y has one class only"),
    (lambda: sparsemargin.fit_svmlight(csr_matrix(np.eye(2))),
     r"got a csr_matrix\. Pass it to fit_csr\."),
])  # fmt: skip
def test_arguments_that_do_not_fit_are_told_what_helps(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@pytest.mark.parametrize("classifier", [ALMAClassifier, HigherOrderPerceptron])
def test_the_constructor_is_called_by_the_classifiers_name(classifier):
    with pytest.raises(TypeError, match=rf"^{classifier.__name__}\.__init__\(\) got an unexpected"):
        classifier(alpah=0.5)


def test_reprs_show_what_differs_from_the_defaults():
    assert repr(ALMAClassifier(p=4, random_state=0)) == "ALMAClassifier(p=4, random_state=0)"
    html = HigherOrderPerceptron(p=7)._repr_html_()
    assert "HigherOrderPerceptron" in html
    assert "7" in html


def test_help_fits_and_ends_no_line_early():
    for command in ([], ["train"]):
        text = run(*command, "--help").stdout
        assert "..." not in text.partition("Commands:")[2].partition("Examples:")[0]
        assert max(map(len, text.splitlines())) <= 100


@pytest.mark.parametrize(("words", "offered"), [
    (["tr"], "plain,train"),
    (["train", "--al"], "plain,--algo"),
    (["train", "--algo", "r"], "plain,romma"),
    (["train", "x"], "file,x"),
    (["train", "x", "-o", "m"], "file,m"),
])  # fmt: skip
def test_the_shell_completes_commands_options_values_and_files(words, offered, monkeypatch, capsys):
    monkeypatch.setenv("_SPARSEMARGIN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["sparsemargin", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setattr("sys.argv", ["sparsemargin"])
    with pytest.raises(SystemExit):
        main()
    assert offered in capsys.readouterr().out.splitlines()
