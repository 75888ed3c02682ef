"""The command that draws Freund & Schapire's Figure 2, on data of a toy's size."""

import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import kernel_figure2
from kernel_figure2 import SHOWN, main, measure, run_of

from sparsemargin.reproduce._digits import Data


def toy():
    rng = np.random.default_rng(0)
    X = 255.0 * rng.integers(2, size=(60, 8))
    y = (X[:, 0] != X[:, 1]).astype(int) + (X[:, 2] > 0)
    return Data(X[:40], y[:40], X[40:], y[40:])


def test_curves_end_where_a_fit_of_that_hypothesis_does():
    data = toy()
    curves = measure(run_of(2), data, 3, 1)
    assert len(curves["epochs"]) == 30
    order = np.random.default_rng(0).permutation(40)
    for name in SHOWN:
        model = run_of(2).estimator(hypothesis=name, random_state=0, max_iter=3)
        model.fit(data.X[order], data.y[order])
        error = 100 * np.mean(model.predict(data.X_test) != data.y_test)
        assert np.isclose(curves["errors"][name][-1], error)
    assert curves["corrections"][-1] == np.sum(model.n_corrections_)


def test_the_command_draws_and_keeps_what_it_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(kernel_figure2, "load", lambda name: toy())
    arguments = ["--degrees", "1", "2", "--epochs", "1", "--jobs", "1", "--out", str(tmp_path)]
    main(arguments)
    assert (tmp_path / "figure2.png").stat().st_size > 1000
    monkeypatch.setattr(kernel_figure2, "load", None)
    main(arguments)
    assert capsys.readouterr().out.count("written") == 2
