"""The commands that reproduce the papers' kernel tables, and the figures they compare with.

They run here on generated rows; the papers' own are for the commands.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import kernel_runs
import kernel_scale
import kernel_tables
from kernel_cells import (
    ALMA,
    AVERAGE,
    CORRECTIONS,
    LAST,
    PERCEPTRON,
    SUPPORT,
    VOTE,
    Cell,
    Line,
    Run,
    Table,
)
from kernel_tables import TABLES

from sparsemargin import ALMAClassifier, PNormPerceptron
from sparsemargin.reproduce import _digits
from sparsemargin.reproduce._digits import Data

# ---------------------------------------------------------------------------- the printed figures


def cells(table, quantity, epochs, label=None):
    return [
        cell for cell in TABLES[table].cells(30)
        if (cell.quantity, cell.epochs, cell.label) == (quantity, epochs, label)
    ]  # fmt: skip


def test_every_table_has_all_its_cells():
    sizes = {name: (len(table.lines), len(list(table.cells(30)))) for name, table in TABLES.items()}
    assert sizes == {
        "alma1": (8, 48), "alma2": (18, 180), "alma3": (18, 108), "alma4": (18, 180),
        "alma5": (8, 48), "nips1": (9, 54),
        # Of seven columns d = 1 has six.
        "voted1": (54, 54 * 7 - 9), "voted2": (28, 280), "voted3": (42, 42 * 7 - 7),
    }  # fmt: skip


@pytest.mark.parametrize(("by_class", "totals"), [("alma2", "alma1"), ("alma4", "alma3")])
def test_classes_sum_to_the_totals_of_the_other_table(by_class, totals):
    """But for rounding, each of ten means by half a correction."""
    printed = {
        (cell.run, cell.epochs): cell.paper for cell in TABLES[totals].cells(3)
        if cell.quantity == CORRECTIONS
    }  # fmt: skip
    sums = dict.fromkeys([(cell.run, cell.epochs) for cell in TABLES[by_class].cells(3)], 0.0)
    for cell in TABLES[by_class].cells(3):
        sums[cell.run, cell.epochs] += cell.paper * (cell.quantity == CORRECTIONS)
    for key, total in sums.items():
        assert total == pytest.approx(printed[key], abs=5), key


def test_papers_agree_on_what_they_share():
    """With the same figures the one calls voted what to the other is the average."""
    journal = {
        (c.run, c.quantity.replace(AVERAGE, VOTE), c.epochs): c.printed
        for c in TABLES["alma3"].cells(3)
    }
    for cell in TABLES["nips1"].cells(3):
        assert journal[cell.run, cell.quantity, cell.epochs] == cell.printed


def test_single_classes_sum_to_the_ten_together():
    """Mistakes of Tables 1, 2 and 3, printed as means."""
    together = {c.run.degree: c.paper for c in cells("voted1", CORRECTIONS, 1)}
    apart = sum(c.paper for c in cells("voted2", CORRECTIONS, 1))
    assert apart == pytest.approx(together[4], abs=5)
    (nine,) = (c.paper for c in cells("voted3", CORRECTIONS, 1) if c.run.degree == 4)
    assert [c.paper for c in cells("voted2", CORRECTIONS, 1)][9] == nine


def test_support_never_exceeds_mistakes():
    for table in ("voted1", "voted2", "voted3"):
        for epochs in (0.1, 1, 10):
            pairs = zip(
                cells(table, SUPPORT, epochs), cells(table, CORRECTIONS, epochs), strict=True
            )
            assert all(support.paper <= mistakes.paper for support, mistakes in pairs)


def test_settings_are_the_papers():
    alma = Run("mnist", ALMA, "poly", 6, alpha=0.9)
    assert cells("alma3", AVERAGE, 1)[5].run == alma
    model = alma.estimator()
    assert (model.B, model.degree, model.gamma, model.coef0) == (1 / 0.9, 6, 1 / 255, 1.0)
    assert model.normalize is True
    runs = {run.algorithm: run for run in TABLES["alma5"].runs(3)}
    assert runs[PERCEPTRON].estimator().gamma == 1 / 32
    assert runs[ALMA].estimator().gamma == 1 / 18
    raw = cells("voted1", LAST, 1)[0].run.estimator()
    assert isinstance(raw, PNormPerceptron)
    assert (raw.normalize, raw.shuffle) == (False, False)


# ---------------------------------------------------------------------------------------- a run

RUN = Run("blobs", ALMA, "polyrbf", 2, sigma=2.0, alpha=0.9)


@pytest.fixture(scope="module")
def data():
    X, y = make_blobs(160, centers=3, n_features=4, cluster_std=4.0, random_state=0)
    return Data(X[:120], y[:120], X[120:], y[120:])


@pytest.fixture(scope="module")
def record(data):
    return kernel_runs.measure(RUN, data, seed=3, most_epochs=2, n_jobs=1)


@pytest.mark.parametrize("hypothesis", ["last", "average", "vote"])
@pytest.mark.parametrize("epochs", [1, 2])
def test_a_run_tells_what_fits_of_their_own_would(data, record, hypothesis, epochs):
    order = np.random.default_rng(3).permutation(120)
    model = ALMAClassifier(
        alpha=0.9, B=1 / 0.9, kernel="polyrbf", degree=2, gamma=1 / 8, max_iter=epochs,
        shuffle=False, hypothesis=hypothesis,
    ).fit(data.X[order], data.y[order])  # fmt: skip
    error = 100 * np.mean(model.predict(data.X_test) != data.y_test)
    assert kernel_runs.look_up(Cell(RUN, hypothesis, epochs, "1.0"), record) == error
    total = kernel_runs.look_up(Cell(RUN, CORRECTIONS, epochs, "1"), record)
    assert total == model.n_corrections_.sum()
    assert kernel_runs.look_up(Cell(RUN, SUPPORT, epochs, "1"), record) == len(model.support_)
    for label in range(3):
        of_label = Cell(RUN, SUPPORT, epochs, "1", label)
        assert kernel_runs.look_up(of_label, record) == model.n_support_[label]


def test_moments_within_the_run(record):
    assert record["epochs"] == [0.1, 1, 2]


def test_a_run_goes_on_when_there_is_nothing_left_to_correct():
    X, y = make_blobs(60, centers=2, n_features=4, cluster_std=0.1, random_state=0)
    run = Run("blobs", PERCEPTRON, "rbf", sigma=5.0)
    record = kernel_runs.measure(run, Data(X, y, X, y), seed=0, most_epochs=10, n_jobs=1)
    assert record["epochs"] == [0.1, 1, 2, 3, 4, 10]
    assert record[CORRECTIONS][-1] == record[CORRECTIONS][1]
    assert record["errors"]["vote"][-1] == 0


def test_one_class_against_the_rest(monkeypatch, data):
    monkeypatch.setattr(_digits, "_whole", lambda name: data)
    y = _digits.load("mnist 2").y
    assert np.array_equal(y == 1, data.y == 2)
    assert set(y) == {-1, 1}


# ------------------------------------------------------------------------------------ the command

TABLE = Table(
    "Table 0",
    ("T=1", "corrections", "T=30"),
    (
        Line("ALMA last", (
            Cell(RUN, LAST, 1, "50.00"), Cell(RUN, CORRECTIONS, 1, "100"), Cell(RUN, LAST, 30, "1"),
        )),
        Line("nothing", (None, None, Cell(RUN, LAST, 30, "1"))),
    ),
)  # fmt: skip


@pytest.fixture
def command(monkeypatch, tmp_path, data):
    """Run the command on the one table, its rows generated."""
    monkeypatch.setattr(kernel_tables, "TABLES", {"zero": TABLE})
    monkeypatch.setattr(kernel_tables, "load", lambda name: data)

    def run(*arguments):
        kernel_tables.main([*arguments, "--jobs", "1", "--out", str(tmp_path)])

    return run


def test_paper_beside_measured(command, capsys, tmp_path, data):
    command("zero", "--permutations", "2")
    out, err = capsys.readouterr()
    assert err.count("epochs ...") == 2
    report = json.loads((tmp_path / "zero.json").read_text())
    measured = report["cells"][0]["measured"]
    assert len(measured) == 2
    (line,) = (line for line in out.splitlines() if line.startswith("ALMA last"))
    assert line.split()[2:4] == ["50.00", f"{np.mean(measured):.2f}"]
    # Of more than the four epochs that are usual there is neither column nor line.
    assert "T=30" not in out
    assert "nothing" not in out


def test_what_was_run_is_not_run_again(command, capsys):
    command()
    first = capsys.readouterr()
    command()
    again = capsys.readouterr()
    assert "epochs ..." in first.err
    assert again.err == ""
    assert again.out == first.out


def test_interrupted_it_goes_on(command, capsys, monkeypatch):
    whole = kernel_tables.measure

    def interrupt(run, data, seed, epochs, n_jobs):
        if seed == 1:
            raise KeyboardInterrupt
        return whole(run, data, seed, epochs, n_jobs)

    monkeypatch.setattr(kernel_tables, "measure", interrupt)
    command("--permutations", "2")
    assert "goes on from here" in capsys.readouterr().err
    monkeypatch.setattr(kernel_tables, "measure", whole)
    command("--permutations", "2")
    err = capsys.readouterr().err
    assert "permutation 2" in err
    assert "permutation 1" not in err


def test_show_runs_nothing(command, capsys):
    command("--show")
    out, err = capsys.readouterr()
    assert err == ""
    assert "50.00" in out


def test_unknown_table_is_refused(command, capsys):
    with pytest.raises(SystemExit):
        command("alma7")
    assert "no such table: alma7; there are zero" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data_name", "quantity", "printed", "measured", "outside"),
    [
        ("mnist", LAST, "2.10", 2.24, False),
        ("mnist", LAST, "2.10", 1.94, True),
        ("mnist 9", CORRECTIONS, "1,000", 1029, False),
        ("mnist", CORRECTIONS, "1000", 1031, True),
        ("usps", CORRECTIONS, "1000", 5000, False),
    ],
)
def test_aims(data_name, quantity, printed, measured, outside):
    cell = Cell(Run(data_name, ALMA, "poly"), quantity, 1, printed)
    assert kernel_tables.is_outside(cell, measured) == outside


def test_summary_of_differences():
    run = Run("mnist", ALMA, "poly")
    pairs = [(Cell(run, LAST, 1, "2.0"), 2.1), (Cell(run, LAST, 2, "2.0"), 1.8)]
    summary = kernel_tables._summary(LAST, pairs)
    assert (summary["cells"], summary["within"]) == (2, 1)
    assert summary["mean"] == pytest.approx(-0.05)
    assert summary["largest"] == pytest.approx(-0.2)


# --------------------------------------------------------------------------- the other commands


def test_scale_by_the_smallest_deviation():
    entries = [
        {"scale": scale, **{name: {"difference": d} for name in kernel_scale.QUANTITIES}}
        for scale, d in ((1, 0.03), (255, -0.01), (255, 0.01), (1, 0.04))
    ]
    deviations = {scale: rest for scale, *rest in kernel_scale.deviations(entries)}
    assert deviations[255] == pytest.approx([0.01, 0.01])
    assert deviations[1] == pytest.approx([np.sqrt(0.00125), 0.04])
    assert kernel_scale.printed(4) == (7977, 6338)
