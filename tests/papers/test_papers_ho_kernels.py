"""The recipe of Table 3 of Brotto, Gentile & Vitale (2007), on generated rows."""

import pytest
from sklearn.datasets import make_blobs

from papers import ho_kernels
from papers.ho_tables import CS
from papers.kernels import Data
from papers.recipe import Measured, Verdict

(RECIPE,) = ho_kernels.RECIPES


@pytest.fixture
def data(monkeypatch):
    """Few rows of three classes under the names of the digits, and few settings."""
    X, y = make_blobs(160, centers=3, n_features=4, cluster_std=4.0, random_state=0)
    rows = Data(X[:120], y[:120], X[120:], y[120:])
    monkeypatch.setattr(ho_kernels, "load", lambda name: rows)
    monkeypatch.setattr(ho_kernels, "SIGMAS", (2.0, 3.0))
    monkeypatch.setattr(ho_kernels, "DEGREES", (2,))
    monkeypatch.setattr(ho_kernels, "AS", (0.1, 1.0))


def test_settings():
    assert {value for _, value in ho_kernels.settings("HO_2", "gauss")} == set(CS[1:])
    assert {value for _, value in ho_kernels.settings("FO", "poly")} == {0.0}
    sparse = ho_kernels.estimator("mnist", "poly", "sparse HO_2", (4, 0.4))
    assert (sparse.sparse_updates, sparse.degree, sparse.gamma) == (True, 4, 1 / 255)
    gauss = ho_kernels.estimator("usps", "gauss", "SO", (3.0, 0.1))
    assert (gauss.a, gauss.gamma) == (0.1, 1 / 72)


def test_every_figure_is_there_and_a_quick_run_leaves_mnist_out():
    for quick in (True, False):
        tables = RECIPE.parts(quick)
        assert len(tables) == 4
        for table in tables:
            assert [line.name for line in table.lines] == ["FO", "HO_2", "sparse HO_2", "SO"]
            cells = [cell for line in table.lines for cell in line.cells if cell is not None]
            assert len(cells) == 2 * (4 * 2 + 1)
            is_run = not quick or table.title.startswith("USPS")
            assert all((cell.work is not None) == is_run for cell in cells)
            assert len(table.works) == (4 if is_run else 0)


def test_a_line(data):
    records = [ho_kernels.run_line("usps", "gauss", "HO_2", seed) for seed in (0, 1)]
    assert records[0] != records[1]
    for record in records:
        assert record["best"]["error"] <= record["chosen"]["error"]
        assert record["best"]["setting"][0] == record["chosen"]["setting"][0]
        assert record["best"]["matrix_updates"] == record["best"]["updates"]
    line = RECIPE.parts(quick=True)[0].lines[1]
    best, chosen = (line.cells[at].compare(records) for at in (1, 4))
    assert best.measured <= chosen.measured
    assert line.cells[0].note(records)


def test_claims_on_a_quarter(data):
    table = RECIPE.parts(quick=True)[1]
    measured = Measured({work: [work(0)] for work in table.works})
    assert [work.run for work in table.works] == [ho_kernels.run_line] * 4
    for claim in table.claims:
        assert claim.examine(measured).detail
    sparse = measured[table.claims[-1].works[0]]
    assert 0 < sparse[0]["best"]["matrix_updates"] < sparse[0]["best"]["updates"]
    matrix = table.lines[2].cells[2].compare(sparse)
    assert matrix.measured == sparse[0]["best"]["matrix_updates"]
    assert matrix.verdict is Verdict.INCOMPARABLE
