"""Notebooks and scripts in examples/, in the quick form, on published data where they are there."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

import depth
from problems.notebook_claims import CLEARLY_BELOW_CHANCE

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples"
sys.path.append(str(EXAMPLES))
import report  # noqa: E402

# How many pictures a notebook draws, and the files it reads where they are at hand.
NOTEBOOKS = {
    "getting_started": (3, ""),
    "svmlight_files": (1, ""),
    "max_margin": (3, "sonar.mines sonar.rocks"),
    "choosing_p_and_alpha": (4, "rcv1_subsets_topics.svm.bz2 rcv1_topics.txt"),
    "rcv1": (6, "rcv1_subsets_topics.svm.bz2 rcv1_topics.txt"),
    "microarrays": (4, "Lymphoma96x4026.arff.gz lymphoma_labels.csv breast_er_west2001.csv.gz "
                       "colon_alon1999.csv.gz leukemia_golub1999.csv.gz"),
    "cells": (2, ""),
    "mnist": (4, "train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz "
                 "t10k-images-idx3-ubyte.gz t10k-labels-idx1-ubyte.gz"),
}  # fmt: skip
ASK = """
import json, sys
from types import SimpleNamespace
sys.path.append({tests!r})
from problems import notebook_claims
print(json.dumps(notebook_claims.{name}(SimpleNamespace(**globals()))))
"""


def environment(folder, files=None):
    """A quick run: with published files only where these are named, and all of them there."""
    quick = os.environ | {report.QUICK_VARIABLE: "1"}
    data = os.environ.get("SPARSEMARGIN_DATA")
    if files is not None and data and all(Path(data, file).exists() for file in files.split()):
        return quick
    caches = dict.fromkeys(["XDG_CACHE_HOME", "SCIKIT_LEARN_DATA"], str(folder))
    # The list of fonts shall not be made anew, as it would in the empty folder.
    return quick | {"SPARSEMARGIN_DATA": "", "MPLCONFIGDIR": matplotlib.get_cachedir(), **caches}


def printed_by(script, folder):
    command, own = [sys.executable, EXAMPLES / f"{script}.py"], environment(folder)
    return subprocess.check_output(command, env=own, cwd=folder, text=True)


@depth.long
@pytest.mark.parametrize(
    ("study", "n_learners", "repeats"), [("rcv1", 13, 2), ("microarrays", 20, 3)]
)
def test_script_prints_a_table_of_errors_below_chance(study, n_learners, repeats, tmp_path):
    head, _, table = printed_by(study, tmp_path).partition("mistakes in training")
    assert "GENERATED" in head
    assert f"{repeats} random splits" in head
    chances = np.array(re.findall(r"([\d.]+)%", head), dtype=float)
    errors = np.array([re.findall(r"([\d.]+)±", line) for line in table.splitlines()[3:]], float)
    assert errors.shape == (n_learners, 4)
    assert (errors.mean(axis=0) < CLEARLY_BELOW_CHANCE * chances).all()


@depth.long
def test_demo_begins_with_the_calls_of_a_user(tmp_path):
    output = printed_by("demo", tmp_path)
    head, *tables = re.split(r"^ +error %.*\n-+\n", output, flags=re.MULTILINE)
    guess = float(re.search(r"always answering \w+: ([\d.]+) %", head)[1])
    calls, algorithms = (
        {name: float(error) for name, error in re.findall(r"^(\S.+?) {2,}([\d.]+) ", table, re.M)}
        for table in tables
    )
    ours, svc, *others, matrix = calls
    assert (ours, svc) == ("fit_csr(X, y)", "LinearSVC()")
    assert others[:2] == ["SGDClassifier(average=True)", "LogisticRegression()"]
    assert [name.partition(",")[0] for name in others if name.endswith(", tuned")] == [
        "AROWClassifier", "LinearSVC", "SGDClassifier"
    ]  # fmt: skip
    assert matrix == 'fit_csr(X, y, algo="ho", p=7)'
    assert all(0 < error < CLEARLY_BELOW_CHANCE * guess for error in calls.values())
    assert abs(calls[ours] - calls[svc]) < 5
    assert sum(name.startswith(("Perceptron", "ALMA")) for name in algorithms) == 12
    assert (tmp_path / "demo-margins.png").stat().st_size > 10_000


def read(name):
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


@depth.long
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook_shows_what_it_says(name, tmp_path):
    n_pictures, files = NOTEBOOKS[name]
    notebook = read(name)
    notebook.cells.append(nbformat.v4.new_code_cell(ASK.format(tests=str(TESTS), name=name)))
    place = {"metadata": {"path": str(EXAMPLES)}}
    client = NotebookClient(notebook, timeout=300, resources=place)  # seconds, of a cell
    client.execute(env=environment(tmp_path, files))
    *cells, asked = [cell for cell in notebook.cells if cell.cell_type == "code"]
    pictures = [o for cell in cells for o in cell.outputs if "image/png" in o.get("data", {})]
    assert len(pictures) == n_pictures
    printed = {cell.id: "".join(o.get("text", "") for o in cell.outputs) for cell in cells}
    assert "A QUICK run" in printed[cells[0].id]
    for cell, texts in (json.loads(asked.outputs[0].text) or {}).items():
        assert all(text in " ".join(printed[cell].split()) for text in texts)


def test_every_notebook_is_run_and_listed_and_stored_without_outputs():
    names = {path.stem for path in EXAMPLES.glob("*.ipynb")}
    assert names == set(NOTEBOOKS)
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    pages = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^notebooks/(\w+)$", pages, flags=re.MULTILINE)) == names
    for name in names:
        assert f"[`{name}.ipynb`]({name}.ipynb)" in listed
        notebook = read(name)
        nbformat.validate(notebook)
        assert not any(
            cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells
        )
        text = " ".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        assert names.issuperset(re.findall(r"\]\((\w+)\.ipynb\)", text)), name


def code_of(path):
    if path.suffix == ".py":
        return path.read_text()
    sources = [cell.source for cell in read(path.stem).cells if cell.cell_type == "code"]
    return "\n".join(re.sub(r"^%%.*[\s\S]*|^[!%].*", "", source, flags=re.M) for source in sources)


# Most of them are run by `make test-all` alone.
@pytest.mark.parametrize("path", sorted([*EXAMPLES.rglob("*.py"), *EXAMPLES.glob("*.ipynb")]),
                         ids=lambda path: path.name)  # fmt: skip
def test_everything_that_is_imported_is_there(path):
    modules = {}
    tree = ast.parse(code_of(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                modules[alias.asname or alias.name] = importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module)
            assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            assert module is None or hasattr(module, node.attr), ast.unparse(node)


def test_size_of_a_run_comes_from_the_environment(monkeypatch):
    for value, size in {"": 50, "0": 50, "1": 3}.items():
        monkeypatch.setenv(report.QUICK_VARIABLE, value)
        assert report.sized(50, quick=3) == size
    monkeypatch.setenv(report.QUICK_VARIABLE, "yes")
    with pytest.raises(ValueError, match="SPARSEMARGIN_QUICK must be 1 for a quick run, or 0"):
        report.sized(50, quick=3)
