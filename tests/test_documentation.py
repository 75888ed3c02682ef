"""What the README and the docstrings show is what comes out."""

import doctest
import importlib
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
MODULES = [
    "sparsemargin.api",
    "sparsemargin.estimators.alma",
    "sparsemargin.estimators.pnorm_perceptron",
    "sparsemargin.datasets._targets",
    "sparsemargin.datasets._text",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_examples_of_the_readme():
    outcome = doctest.testfile(str(README), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0
