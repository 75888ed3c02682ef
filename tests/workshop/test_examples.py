"""Notebooks show the output of their code; the demo and the gallery's scripts run."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import nbformat
import pytest

import depth
from sparsemargin import load_model

TESTS = Path(__file__).parents[1]
EXAMPLES = TESTS.parent / "examples"
sys.path.append(str(EXAMPLES))
import notebooks  # noqa: E402

every_notebook = pytest.mark.parametrize("name", notebooks.DATA)


@depth.long
@every_notebook
def test_notebook_shows_what_its_code_gives(name):
    if absent := notebooks.missing(name):
        pytest.skip(f"SPARSEMARGIN_DATA has no {', '.join(absent)}")
    assert not [*notebooks.differences(notebooks.read(name), notebooks.executed(name))]


@every_notebook
def test_stored_notebook_is_complete_and_small(name):
    assert (EXAMPLES / f"{name}.ipynb").stat().st_size < notebooks.LARGEST
    notebook = notebooks.read(name)
    nbformat.validate(notebook)
    told = dict((ident, text) for ident, _, text in notebooks.printed(notebook))
    assert any(told.values())
    pictures = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert pictures


def test_at_most_six_notebooks_exist_and_are_listed():
    names = {path.stem for path in EXAMPLES.glob("*.ipynb")}
    assert names == set(notebooks.DATA)
    assert len(names) <= 6
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    pages = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^notebooks/(\w+)$", pages, flags=re.MULTILINE)) == names
    assert all(f"[`{name}.ipynb`]({name}.ipynb)" in listed for name in names)


def notebook_of(*cells):
    made = nbformat.v4.new_notebook()
    for tags, text in cells:
        cell = nbformat.v4.new_code_cell(metadata={"tags": tags})
        cell.outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
        made.cells.append(cell)
    return made


@pytest.mark.parametrize(("before", "now", "differ"), [
    (([], "error 4.51%\n"), ([], "error 4.52%\n"), False),
    (([], "error 4.51%\n"), ([], "error 4.53%\n"), True),
    (([], "1,234 rows"), ([], "1,235 rows"), False),
    (([], "1,234 rows"), ([], "1,244 rows"), True),
    (([], "a 1"), ([], "b 1"), True),
    (([], "a 1"), ([], ""), True),
    ((["timed"], "took 1.25 s"), (["timed"], "took 101.5 s"), False),
    ((["timed"], "took 1.25 s"), (["timed"], "lost 1.25 s"), True),
])  # fmt: skip
def test_rounding_and_timing_differences_are_ignored(before, now, differ):
    assert bool([*notebooks.differences(notebook_of(before), notebook_of(now))]) == differ


def test_notebook_without_data_is_skipped_with_a_message(monkeypatch, capsys):
    monkeypatch.delenv("SPARSEMARGIN_DATA", raising=False)
    monkeypatch.setattr(sys, "argv", ["notebooks.py", "--check", "rcv1"])
    with pytest.raises(SystemExit) as end:
        notebooks.main()
    assert not end.value.code
    assert "SKIPPED: rcv1" in capsys.readouterr().out


@depth.long
def test_demo_compares_text_classifiers_and_algorithms(tmp_path):
    caches = {"MPLCONFIGDIR": matplotlib.get_cachedir()}
    output = subprocess.check_output(
        [sys.executable, EXAMPLES / "demo.py"], cwd=tmp_path, text=True, env=os.environ | caches
    )
    calls, answers, algorithms = re.split(r"\n\n(?=New texts|The algorithms)", output)
    guess = float(re.search(r"always answering \w+: ([\d.]+) %", calls)[1])
    errors = re.findall(r"^(\S.+?) {2,}([\d.]+) +[\d.,]+$", f"{calls}\n{algorithms}", re.MULTILINE)
    (first, ours), (_, theirs), *_ = errors
    assert first == "fit_text(texts, y)"
    assert float(ours) < float(theirs)
    assert len(errors) == 12
    assert all(0 < float(error) < guess / 2 for _, error in errors)
    assert re.findall(r"^  (numpy|scipy|sklearn)", answers, re.MULTILINE)[:3] == [
        "sklearn", "scipy", "numpy"
    ]  # fmt: skip
    assert load_model(tmp_path / "demo.model").classes_.tolist() == ["numpy", "scipy", "sklearn"]
    assert (tmp_path / "demo-margins.png").stat().st_size > 10_000


def code_of(path):
    if path.suffix == ".py":
        return path.read_text()
    sources = [cell.source for cell in notebooks.read(path.stem).cells if cell.cell_type == "code"]
    return "\n".join(re.sub(r"^%%.*[\s\S]*|^[!%].*", "", source, flags=re.M) for source in sources)


# Most of these files are run by `make test-all` only.
@pytest.mark.parametrize("path", sorted([*EXAMPLES.rglob("*.py"), *EXAMPLES.glob("*.ipynb")]),
                         ids=lambda path: path.name)  # fmt: skip
def test_all_imported_names_exist(path):
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
