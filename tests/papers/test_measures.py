"""Measurements of the recipes: on few rows against separate fits, and on published data against
the papers' figures."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from depth import some
from papers import kernels
from papers.cramma import RECIPES as CRAMMA
from papers.kernels import ALMA, CORRECTIONS, SUPPORT, Printed, run_epochs
from papers.recipe import Verdict
from papers.theory import alma_alpha
from problems.published_files import data_folder
from sparsemargin import ALMAClassifier
from sparsemargin.kernels import PolynomialRBF

SONAR, WBC = ("sonar.mines", "sonar.rocks"), ("breast-cancer-wisconsin.data",)
MOST_UPDATES = some(50_000, 3_000_000)


@pytest.mark.parametrize("number", some([0, 3], range(4)))
def test_cramma_table_has_its_measures(number):
    """The numbers of updates and the largest margin equal those of Tsampouka & Shawe-Taylor
    (2006)."""
    data_folder(*(SONAR if number < 2 else WBC))
    table, largest = CRAMMA[number].parts(quick=True)[:2]
    for line in table.lines:
        if line.cells[-1].number <= MOST_UPDATES:
            record = line.cells[0].work(0)
            assert record["updates"] == line.cells[-1].number, line.name
            verdicts = {cell.compare([record]).verdict for cell in line.cells}
            assert verdicts == {Verdict.WITHIN}, line.name
    ((cell,),) = (line.cells for line in largest.lines)
    found = cell.work(0)
    assert cell.compare([found]).verdict is Verdict.WITHIN
    assert found["upper_bound"] * (1 - 1e-6) <= found["margin"] <= found["upper_bound"]


def test_run_reports_the_results_of_separate_fits(monkeypatch):
    X, y = make_blobs(160, centers=3, n_features=4, cluster_std=4.0, random_state=0)
    rows = kernels.Data(X[:120], y[:120], X[120:], y[120:])
    monkeypatch.setattr(kernels, "load", lambda name: rows)
    run = {"data": "blobs", "algorithm": ALMA, "alpha": 0.9, "kernel": "polyrbf", "degree": 2}
    records = [run_epochs(seed=3, epochs=2, sigma=2.0, **run)]
    rule = {"alpha": alma_alpha(0.9, B=1 / 0.9), "kernel": PolynomialRBF(2, gamma=1 / 8)}
    order = np.random.default_rng(3).permutation(120)
    for hypothesis, epochs in ("last", 0.7), ("average", 1), ("vote", 2), ("last", 2):
        model = ALMAClassifier(**rule, max_iter=epochs, hypothesis=hypothesis, shuffle=False)
        model.fit(rows.X[order], rows.y[order])

        def figure(quantity, label=None, epochs=epochs):
            return Printed(None, quantity, epochs, "", label).values(records)

        error = 100 * np.mean(model.predict(rows.X_test) != rows.y_test)
        assert figure(hypothesis) == pytest.approx([error])
        assert figure(CORRECTIONS) == [model.n_corrections_.sum()]
        assert figure(SUPPORT) == [len(model.support_)]
        for label in range(3):
            assert figure(SUPPORT, label) == [model.n_support_[label]]
            assert figure(CORRECTIONS, label) == [model.n_corrections_[label]]
