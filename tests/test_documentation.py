"""What the README and the docstrings show is what comes out."""

import doctest
import importlib
from pathlib import Path

import pytest
from published_files import data_folder

README = Path(__file__).parent.parent / "README.md"
MODULES = [
    "sparsemargin.api",
    "sparsemargin.learners._cramma_rate",
    "sparsemargin.estimators.alma",
    "sparsemargin.estimators.higher_order",
    "sparsemargin.estimators.pnorm_perceptron",
    "sparsemargin.estimators.second_order",
    "sparsemargin.evaluation._margins",
    "sparsemargin.evaluation.theory.alma",
    "sparsemargin.evaluation.growth",
    "sparsemargin.evaluation.hypotheses",
    "sparsemargin.evaluation.passes",
    "sparsemargin.evaluation.protocols",
    "sparsemargin.evaluation.selection",
    "sparsemargin.evaluation.significance",
    "sparsemargin.evaluation.stability",
    "sparsemargin.evaluation.strongest",
    "sparsemargin.evaluation.trade_off",
    "sparsemargin.evaluation.theory.cramma",
    "sparsemargin.evaluation.theory.higher_order",
    "sparsemargin.evaluation.theory.higher_order_run",
    "sparsemargin.evaluation.theory.perceptron",
    "sparsemargin.datasets._targets",
    "sparsemargin.datasets._text",
    "sparsemargin.cli.errors",
    "sparsemargin.cli.tables",
    "sparsemargin.io.labels",
    "sparsemargin.io.row_cache",
    "sparsemargin.plotting._certificate",
    "sparsemargin.plotting._epochs",
    "sparsemargin.plotting._features",
    "sparsemargin.plotting._growth",
    "sparsemargin.plotting._hypotheses",
    "sparsemargin.plotting._margins",
    "sparsemargin.plotting._stability",
    "sparsemargin.plotting._style",
    "sparsemargin.plotting._trade_off",
]
# The loaders' examples read these files.
LOADER_MODULES = {
    "sparsemargin.datasets._breast_er": ["breast_er_west2001.csv.gz"],
    "sparsemargin.datasets._colon": ["colon_alon1999.csv.gz"],
    "sparsemargin.datasets._letter": ["letter-recognition.data.gz"],
    "sparsemargin.datasets._leukemia": ["leukemia_golub1999.csv.gz"],
    "sparsemargin.datasets._lymphoma": ["Lymphoma96x4026.arff.gz", "lymphoma_labels.csv"],
    "sparsemargin.datasets._mnist": ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"],
    "sparsemargin.datasets._rcv1": ["rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt"],
    "sparsemargin.datasets._sonar": ["sonar.mines", "sonar.rocks"],
    "sparsemargin.datasets._usps": ["zip.test.gz"],
    "sparsemargin.datasets._wbc": ["breast-cancer-wisconsin.data"],
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


@pytest.mark.parametrize("name", LOADER_MODULES)
def test_examples_of_loaders(name):
    data_folder(*LOADER_MODULES[name])
    test_examples_of_docstrings(name)


def test_examples_of_the_readme():
    outcome = doctest.testfile(str(README), module_relative=False)
    assert outcome.attempted > 0
    assert outcome.failed == 0
