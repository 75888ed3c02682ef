"""Runs of the command `sparsemargin`, and files for it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import precision_recall_fscore_support

from sparsemargin.cli.app import main
from sparsemargin.datasets import make_zipf_text

ROOT = Path(__file__).parents[2]


def run(*args, code=0):
    """Run a command in this process and return its result. The exit code must be `code`; None means
    0 or 1."""
    result = CliRunner().invoke(main, [str(arg) for arg in args])
    codes = (0, 1) if code is None else (code,)
    assert result.exit_code in codes, (result.exit_code, result.stderr, result.exception)
    return result


def process(*args, env=(), start=("-m", "sparsemargin"), **settings):
    """Start a command as a new process, with these additions to the environment."""
    command = [sys.executable, *start, *map(str, args)]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, **dict(env)}
    return subprocess.Popen(command, env=environment, **{**piped, **settings})


def contents():
    """All files of the working directory, by name."""
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def evaluated(*args):
    """The output of ``evaluate`` for a model on files."""
    return json.loads(run("evaluate", *args, "--json").stdout)


def assert_averages(figures, y, guess, **labels):
    """Assert that averages and per-class values of precision, recall and F1 equal
    scikit-learn's."""
    for kind in "micro", "macro", None:
        how = {"average": kind, "zero_division": 0, **labels}
        expected = precision_recall_fscore_support(y, guess, **how)
        for name, values in zip(("precision", "recall", "f1", "rows"), expected, strict=True):
            if kind is None:
                told = [entry[name] for entry in figures["classes"]]
                assert told == pytest.approx(values, abs=1e-15)
            elif values is not None:
                assert figures[f"{kind}_{name}"] == pytest.approx(values, abs=1e-15)


def write(path, X, y, **settings):
    dump_svmlight_file(X, y, str(path), **{"zero_based": False, **settings})
    return path


def two_classes(folder):
    """Training and test files with labels -1 and 1; the test file has more features."""
    X, y = make_zipf_text(600, 3000, mean_nnz=12, random_state=0)
    half = X[:400]
    half.data[half.indices >= 2500] = 0
    half.eliminate_zeros()
    return write(folder / "train.svm", half, y[:400]), write(folder / "test.svm", X[400:], y[400:])


def three_classes(folder):
    """Training and test files with the labels ham, eggs and spam."""
    X, y = make_zipf_text(600, 3000, mean_nnz=12, n_classes=3, random_state=0)
    train = write(folder / "train3.svm", X[:400], y[:400])
    test = write(folder / "test3.svm", X[400:], y[400:])
    words = {"0": "ham", "1": "eggs", "2": "spam"}
    for path in train, test:
        path.write_text(re.sub(r"(?m)^\d", lambda label: words[label[0]], path.read_text()))
    return train, test
