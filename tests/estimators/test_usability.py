"""First steps of a new user: completion of names, messages, reprs, and shell completion."""

import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_matrix
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import sparsemargin
from problems.command_line import ROOT, run
from sparsemargin import (
    ALMAClassifier,
    AROWClassifier,
    HigherOrderPerceptron,
    fit_csr,
    load_model,
)
from sparsemargin.cli import main
from sparsemargin.evaluation import explain_row, margins


def test_subpackages_are_imported_on_access():
    code = (
        "import sparsemargin, sys;"
        "assert not {'matplotlib', 'sklearn'} & set(sys.modules);"
        "sparsemargin.datasets.make_zipf_text, sparsemargin.evaluation.margins;"
        "assert 'matplotlib' not in sys.modules;"
        "sparsemargin.plotting.theme, sparsemargin.plotting.CertificateDisplay"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    with pytest.raises(AttributeError, match="no attribute 'fit_cvs'"):
        _ = sparsemargin.fit_cvs


def test_dir_lists_public_names_only():
    offered = {name for name in dir(sparsemargin) if not name.startswith("__")}
    parts = {"datasets", "distributed", "evaluation", "genomes", "kernels", "plotting", "text"}
    assert offered == {*sparsemargin.__all__, *parts}
    for name in sparsemargin.__all__:
        assert getattr(sparsemargin, name).__doc__


def test_attributes_that_no_model_of_a_class_has_are_not_listed():
    for absent in "gamma_", "support_", "dual_coef_", "relative_deviation_":
        assert absent not in AROWClassifier.__doc__
        assert absent in ALMAClassifier.__doc__


@pytest.mark.parametrize(("algo", "settings", "told"), [
    ("almma", {}, r"algo='almma'\. Did you mean 'alma'\?"),
    (["alma"], {}, r"algo=\['alma'\]"),
    (ALMAClassifier(), {}, r"Did you mean 'alma'\?"),
    (HigherOrderPerceptron, {}, r"Did you mean 'ho'\?"),
    ("PNormPerceptron", {}, r"Did you mean 'pnorm'\?"),
    ("alma", {"alpa": 0.5}, r"'alpa' for algo='alma'\. Did you mean 'alpha'\?"),
    ("alma", {"epochs": 3}, r"Did you mean 'max_iter'\?"),
    (None, {"eta": 1.0}, "'eta'"),
    ("romma", {"p": 4}, "p is a parameter of algo='pnorm', algo='alma', algo='ho', algo='margin'"),
])  # fmt: skip
def test_unknown_attribute_suggests_similar_names(algo, settings, told):
    with pytest.raises(ValueError, match=told) as refusal:
        fit_csr(np.eye(2), [0, 1], algo, **settings)
    known = str(refusal.value).partition("Known are: ")[2].rstrip(".").split(", ")
    there_are = {"max_iter"} if settings else {"'perceptron'", "'pnorm'", "'alma'"}
    assert there_are <= {*known}
    assert not {*settings} & {*known}


def test_missing_predict_proba_error_explains_the_remedy():
    with pytest.raises(AttributeError) as refusal:
        _ = fit_csr(np.eye(2), [0, 1], "perceptron", hypothesis="vote").predict_proba
    assert "CalibratedClassifierCV" in str(refusal.value.__cause__)


def test_pipeline_can_be_saved_unchanged(tmp_path):
    texts, labels = ["good film", "bad film"] * 3, ["good", "bad"] * 3
    model = make_pipeline(CountVectorizer(), ALMAClassifier()).fit(texts, labels)
    sparsemargin.save_model(model, tmp_path / "film.model")
    again = sparsemargin.load_model(tmp_path / "film.model")
    assert again.predict(texts).tolist() == labels
    model.steps.insert(1, ("round", FunctionTransformer(np.round)))
    with pytest.raises(ValueError, match=r"pipeline\[-1\].*joblib\.dump"):
        sparsemargin.save_model(model, tmp_path / "film.model")
    assert (margins(model, texts, labels) > 0).all()


def test_multilabel_rows_are_explained_by_each_command(tmp_path):
    one, several = tmp_path / "one.svm", tmp_path / "several.svm"
    bare, model = tmp_path / "bare.svm", tmp_path / "one.model"
    one.write_text("a 1:1 2:0.5\nb 2:1\na 1:1\n")
    several.write_text("a,b 1:1\na 2:1\n")
    bare.write_text("1:1\n")
    run("train", one, "-o", model)
    assert load_model(model).intercept_[0] != 0  # the intercept does not count as a feature
    assert json.loads(run("inspect", model, "--json").stdout)["n_nonzero"] == 2
    told = run("evaluate", model, several, code=1).stderr
    assert "or pass --positive LABEL if the model was trained with it." in told
    told = run("train", bare, "-o", model, code=1).stderr
    assert "Put a label first, or pass --multilabel" in told
    told = run("train", several, "-o", model, "--multilabel").stderr
    assert "corrections" in told
    assert "progressive error" not in told


@pytest.mark.parametrize("texts", [
    ["good film", "bad film"], np.array(["good film", "bad film"]), "good film", [b"good film"] * 2,
])  # fmt: skip
def test_texts_as_X_suggest_a_vectorizer(texts):
    for call in (lambda X: fit_csr(X, [0, 1]), fit_csr(np.eye(2), [0, 1]).predict):
        with pytest.raises(ValueError, match=r"X holds text, such as .*film'.*TfidfVectorizer"):
            call(texts)


class AnnData:
    """A class like anndata's. numpy can't see its shape, and would iterate over all its items."""

    X, obs = np.eye(2), {"cell_type": ["T", "B"]}

    def __len__(self):
        return 2

    def __getitem__(self, i):
        raise AssertionError("its rows were asked for")


def test_anndata_as_X_suggests_its_matrix():
    adata = AnnData()
    model = fit_csr(adata.X, adata.obs["cell_type"])
    for call in (
        lambda X: fit_csr(X, [0, 1]), lambda X: fit_csr(X, [0, 1], "alma"),
        lambda X: AROWClassifier().fit(X, [0, 1]), lambda X: model.partial_fit(X, ["T", "B"]),
        model.predict, model.decision_function, lambda X: explain_row(model, X),
        lambda X: margins(model, X, ["T", "B"]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"X is an AnnData.*adata\.X.*adata\.layers"):
            call(adata)


@pytest.mark.parametrize(("call", "told"), [
    (lambda: fit_csr([{"good": 1}, {"bad": 2}], [0, 1]), "X holds dicts.*DictVectorizer"),
    (lambda: fit_csr(np.eye(2), None), "Give a label for each row of X"),
    (lambda: fit_csr(coo_array(np.ones(3)), [0]), "Give a matrix of rows and columns"),
    (lambda: sparsemargin.write_readable(fit_csr(np.eye(2), [0, 1]), "weights.txt"),
     r"got str\. The file is the first argument"),
    (lambda: sparsemargin.fit_svmlight(csr_matrix(np.eye(2))),
     r"got a csr_matrix\. Pass it to fit_csr\."),
])  # fmt: skip
def test_unsuitable_arguments_suggest_a_remedy(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@pytest.mark.parametrize("classifier", [ALMAClassifier, HigherOrderPerceptron])
def test_constructor_errors_and_repr_name_the_classifier(classifier):
    with pytest.raises(TypeError, match=rf"^{classifier.__name__}\.__init__\(\) got an unexpected"):
        classifier(alpah=0.5)
    model = classifier(p=7, random_state=0)
    assert repr(model) == f"{classifier.__name__}(p=7, random_state=0)"
    assert classifier.__name__ in model._repr_html_()


@pytest.mark.parametrize(("words", "offered"), [
    (["train", "--al"], "plain,--algo"),
    (["train", "--algo", "r"], "plain,romma"),
    (["train", "x"], "file,x"),
])  # fmt: skip
def test_shell_completion_offers_commands_options_and_files(words, offered, monkeypatch, capsys):
    monkeypatch.setenv("_SPARSEMARGIN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["sparsemargin", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    monkeypatch.setattr("sys.argv", ["sparsemargin"])
    with pytest.raises(SystemExit):
        main()
    assert offered in capsys.readouterr().out.splitlines()
