"""The targets of the Makefile, and the files named by workflows, scripts and pages, exist."""

import importlib
import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TARGETS = re.findall(r"^([a-z-]+):.* ## ", (ROOT / "Makefile").read_text(), flags=re.M)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
SCRIPTS = [path for path in sorted((ROOT / "fuzz").iterdir()) if path.is_file()]
PAGES = [path for name in ("*.md", "*/*.md", "docs/*/*.md") for path in sorted(ROOT.glob(name))]
# Copies of the tree, such as the sanitized one, have no hidden files.
NAMING = [ROOT / "Makefile", *ROOT.glob(".ci/run"), *WORKFLOWS, *SCRIPTS, *PAGES]
GENERATED = re.compile(
    r"docs/(_build|gallery|notebooks|api/generated)\b|sparsemargin/_engine/planted"
)
FOLDERS = "benchmarks|datasets|docs|examples|fuzz|papers|sparsemargin|tests"
# A path may end in a pattern such as `*.hpp`.
FILE = re.compile(rf"(?<![\w./$-])(?:{FOLDERS})/[\w./*-]*\w")


def run_by(workflow):
    """The commands that a workflow runs."""
    for job in yaml.safe_load(workflow.read_text())["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        yield from matrix.get("command", [])
        yield from (step["run"] for step in job["steps"] if "run" in step)


@pytest.mark.parametrize("target", TARGETS)
def test_every_make_target_starts(target):
    done = subprocess.run(
        ["make", "-n", "PYTHON=python", target], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert f".PHONY: help {' '.join(TARGETS[1:])}\n" in (ROOT / "Makefile").read_text()


@pytest.mark.skipif(not WORKFLOWS, reason="the source distribution has no workflows")
def test_workflows_run_all_targets_but_papers():
    commands = [command for workflow in WORKFLOWS for command in run_by(workflow)]
    run = {command.removeprefix("make ") for command in commands if command.startswith("make ")}
    # The papers take a night, and `clean` and `help` run nothing.
    assert run == {*TARGETS} - {"papers", "clean", "help"}


@pytest.mark.parametrize("path", NAMING, ids=lambda path: str(path.relative_to(ROOT)))
def test_named_files_and_targets_exist(path):
    text = path.read_text()
    # The fuzzers name test files by their path in tests/, without .py.
    absent = [
        name for name in FILE.findall(text)
        if not [*ROOT.glob(name)] and not (ROOT / "tests" / f"{name}.py").exists()
    ]  # fmt: skip
    assert [name for name in absent if not GENERATED.match(name)] == []
    # Targets are the words after `make` at the start of a line of code or of inline code.
    made = r"(?:^|`|run: |- )(?:\w+=\S+ )*make ((?:\.venv/)?[a-z-]+)"
    assert {*re.findall(made, text, flags=re.M)} <= {*TARGETS, ".venv/equipped"}


def test_make_targets_in_comments_exist():
    folders = FOLDERS.replace("|datasets|docs", "").split("|")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.p[yx]*")]
    sources = [path.read_text() for path in paths if path.suffix in (".py", ".pyx", ".pxd", ".pxi")]
    named = {name for text in sources for name in re.findall(r"`make ([a-z-]+)`", text)}
    assert named <= {*TARGETS}


def test_tests_of_the_distributions_exist(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "release")
    distributions = importlib.import_module("distributions")
    assert all((ROOT / "tests" / name).exists() for name in distributions.QUICK_TESTS)
    left_out = [f"test_{name}.py" for name in distributions.LEFT_OUT]
    assert all((ROOT / "tests" / "workshop" / name).exists() for name in left_out)


def test_planted_faults_refer_to_existing_code(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "fuzz")
    known = importlib.import_module("known_faults")
    planted = [*known.FAULTS, *known.SCANNER_BUGS]
    texts = {fault.file: (ROOT / fault.file).read_text() for fault in planted}
    counts = {fault.right: texts[fault.file].count(fault.right) for fault in planted}
    assert {right: n for right, n in counts.items() if n != 1} == {}
    assert {fault.room for fault in known.FAULTS} <= set(known.ROOMS)
    assert set(known.EXPECTED) <= set(counts)
    tests = {f"tests/{name}.py" for names in known.ROOMS.values() for name in names}
    faults = importlib.import_module("faults")
    named = [*tests, *faults.COPIED, *faults.LINKED]
    assert [name for name in named if not (ROOT / name).exists()] == []
