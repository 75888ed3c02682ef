"""The command that reproduces Table 3 of Brotto, Gentile & Vitale (2007), on generated rows."""

import sys
from pathlib import Path

import pytest
from sklearn.datasets import make_blobs

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import ho_table3
from ho_paper import CS, TABLE_3

from sparsemargin.reproduce._digits import Data


@pytest.fixture
def data():
    X, y = make_blobs(160, centers=3, n_features=4, cluster_std=4.0, random_state=0)
    return Data(X[:120], y[:120], X[120:], y[120:])


def test_table_3_settings():
    for printed in TABLE_3.values():
        assert list(printed) == ["FO", "HO_2", "sparse HO_2", "SO"]
    assert {value for _, value in ho_table3.settings("HO_2", "gauss")} == set(CS[1:])
    assert {value for _, value in ho_table3.settings("FO", "poly")} == {0.0}
    sparse = ho_table3.estimator("mnist", "poly", "sparse HO_2", (4, 0.4))
    assert (sparse.sparse_updates, sparse.degree, sparse.gamma) == (True, 4, 1 / 255)
    gauss = ho_table3.estimator("usps", "gauss", "SO", (3.0, 0.1))
    assert (gauss.a, gauss.gamma) == (0.1, 1 / 72)


def test_table_3_line(data):
    line = ho_table3.run_line("usps", "gauss", "HO_2", data, cv_rows=90, n_jobs=1)
    assert len(line["all"]) == len(CS) - 1
    assert line["chosen"] in line["all"]
    assert line["best"]["error"] == min(result["error"] for result in line["all"])


def test_command(monkeypatch, tmp_path, capsys, data):
    monkeypatch.setattr(ho_table3, "load", lambda name: data)
    monkeypatch.setattr(ho_table3, "SIGMAS", (3.0,))
    monkeypatch.setattr(ho_table3, "DEGREES", (2,))
    monkeypatch.setattr(ho_table3, "AS", (1.0,))
    arguments = ["--data", "usps", "--jobs", "1", "--out", str(tmp_path)]
    ho_table3.main(arguments)
    out, err = capsys.readouterr()
    assert err.count(" ...") == 8
    lines = [line for line in out.splitlines() if line.startswith("sparse HO_2")]
    assert ["(440)" in line for line in lines] == [True, False]
    ho_table3.main(arguments)
    assert capsys.readouterr().err == ""
