"""What a newcomer meets first: names to complete, messages, reprs, and the shell's completion."""

import subprocess
import sys

import numpy as np
import pytest
from command_line import ROOT, run
from scipy.sparse import coo_array

import sparsemargin
from sparsemargin import ALMAClassifier, HigherOrderPerceptron, fit_csr
from sparsemargin.datasets import make_zipf_text


def test_packages_are_there_without_an_import_of_their_own():
    code = (
        "import sparsemargin, sys; names = dir(sparsemargin); heavy = 'sklearn' in sys.modules;"
        "found = [sparsemargin.datasets.make_zipf_text, sparsemargin.evaluation.margins,"
        "sparsemargin.plotting.theme, sparsemargin.reproduce.recipes];"
        "print(heavy, 'plotting' in names, 'fit_csr' in names)"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert printed.split() == ["False", "True", "True"]
    with pytest.raises(AttributeError, match="no attribute 'fit_cvs'"):
        _ = sparsemargin.fit_cvs


@pytest.mark.parametrize(("settings", "meant"), [
    ({"algo": "almma"}, "alma"),
    ({"algo": "alma", "alpa": 0.5}, "alpha"),
    ({"algo": "ho", "max_itr": 3}, "max_iter"),
])  # fmt: skip
def test_a_misspelt_name_is_answered_by_the_nearest(settings, meant):
    X, y = make_zipf_text(50, random_state=0)
    with pytest.raises(ValueError, match=f"Did you mean '{meant}'\\? Known are: "):
        fit_csr(X, y, **settings)


@pytest.mark.parametrize("texts", [
    ["good film", "bad film"], np.array(["good film", "bad film"]), ("good film", "bad film"),
    "good film", [b"good film", b"bad film"],
])  # fmt: skip
def test_texts_are_told_what_turns_them_into_numbers(texts):
    with pytest.raises(ValueError, match=r"X holds text, such as b?'good film'.*TfidfVectorizer"):
        fit_csr(texts, [0, 1])
    model = fit_csr(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="TfidfVectorizer"):
        model.predict(texts)


def test_a_sparse_vector_is_no_text():
    with pytest.raises(ValueError, match="Expected 2D input"):
        ALMAClassifier().fit(coo_array(np.ones(3)), [0])


def test_reprs_show_what_differs_from_the_defaults():
    assert repr(ALMAClassifier(p=4, random_state=0)) == "ALMAClassifier(p=4, random_state=0)"
    html = HigherOrderPerceptron(p=7)._repr_html_()
    assert "HigherOrderPerceptron" in html
    assert "7" in html


def test_help_fits_and_ends_no_line_early():
    for command in ([], ["train"], ["reproduce"]):
        text = run(*command, "--help").stdout
        assert "..." not in text.partition("Commands:")[2].partition("Examples:")[0]
        assert max(map(len, text.splitlines())) <= 100


def complete(*words):
    """What a shell is offered for the last word."""
    environment = {
        "_SPARSEMARGIN_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(["sparsemargin", *words]),
        "COMP_CWORD": str(len(words)),
        "PYTHONPATH": str(ROOT),
    }
    code = "from sparsemargin.cli import main; main()"
    printed = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    return [line.partition(",") for line in printed.splitlines()]


def test_the_shell_completes_commands_options_values_and_files():
    assert ("plain", ",", "train") in complete("tr")
    assert ("plain", ",", "--algo") in complete("train", "--al")
    assert ("plain", ",", "romma") in complete("train", "--algo", "r")
    assert complete("train", "x") == [("file", ",", "x")]
    assert complete("train", "x", "-o", "m") == [("file", ",", "m")]
    assert ("plain", ",", "alma-table6") in complete("reproduce", "alma")
