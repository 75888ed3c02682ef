"""The commands that reproduce Brotto, Gentile & Vitale (2007), and the figures they compare with.

Real data, which SPARSEMARGIN_DATA has to lead to, stand behind the counts on Lymphoma and the way
from the files to the problems; everything else runs on generated rows.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from published_files import data_folder
from sklearn.base import clone
from sklearn.datasets import make_classification

from sparsemargin.datasets import make_ho_target, make_zipf_text
from sparsemargin.evaluation import random_splits, select_setting

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import ho_claim
import ho_figure2
import ho_growth
import ho_runs
import ho_tables
from ho_paper import FIGURE_2_AXES, FIGURE_2_EPOCHS, TABLE_1, TABLE_2, Printed
from ho_results import run_algorithm

LYMPHOMA_FILES = ("Lymphoma96x4026.arff.gz", "lymphoma_labels.csv")

# ---------------------------------------------------------------------------- the printed figures

# The cells in the order in which a scan of the page reads them.
SCAN_1 = """45.2 23.4 22.1 11.8 21.7 16.4 19.6 10.0 24.5 13.3 18.9 10.0 47.4 15.7 23.0 11.5
    24.5 12.0 20.0 11.5 32.4 13.5 23.1 11.9 29.6 15.0 19.3 9.6"""
SCAN_2 = """993 673 803 767 7.20 6.39 6.14 6.45 941 665 783 762 6.83 5.81 5.94 6.04
    880 677 819 760 6.95 5.48 6.05 6.84"""


def test_table_1_agrees_with_a_scan_of_the_page():
    scan = np.array(SCAN_1.split(), dtype=float).reshape(7, 2, 2)
    printed = [list(column.values()) for column in TABLE_1.values()]
    assert list(TABLE_1) == ["Breast", "Lymphoma"]
    assert (np.array(printed).swapaxes(0, 1) == scan).all()


def test_table_2_agrees_with_a_scan_of_the_page():
    scan = np.array(SCAN_2.split(), dtype=float).reshape(3, 2, 4)
    assert list(TABLE_2) == ["GCAT", "MCAT", "C15", "ECAT"]
    printed = [list(line.values()) for line in TABLE_2.values()]
    assert (np.array(printed).transpose(1, 2, 0) == scan).all()


def test_printed_figures_bear_out_what_the_paper_says_of_them():
    for column in TABLE_1.values():
        assert list(column) == ["FO", "HO_2", "HO_4", "HO_7(0)", "HO_7", "HO_10", "SO"]
        assert column["HO_2"] < column["FO"]
        assert column["HO_7"] < column["HO_7(0)"]
    for line in TABLE_2.values():
        assert list(line) == ["FO", "HO_2", "SO"]
        assert line["HO_2"].error < line["FO"].error


# ----------------------------------------------------------------------------------- the algorithms


def test_names_of_algorithms_stand_for_their_settings():
    settings = ho_runs.algorithms([*TABLE_1["Breast"]], 5)
    p_and_c = {
        name: [(model.p, model.c) for model in of.values()]
        for name, of in settings.items()
        if name != "SO"
    }
    assert p_and_c == {
        "FO": [(2, 0.0)],
        "HO_2": [(2, 0.2), (2, 0.4), (2, 0.6), (2, 0.8)],
        "HO_4": [(4, 0.2), (4, 0.4), (4, 0.6), (4, 0.8)],
        "HO_7(0)": [(7, 0.0)],
        "HO_7": [(7, 0.2), (7, 0.4), (7, 0.6), (7, 0.8)],
        "HO_10": [(10, 0.2), (10, 0.4), (10, 0.6), (10, 0.8)],
    }
    assert [model.a for model in settings["SO"].values()] == list(ho_runs.AS)
    for model in (model for of in settings.values() for model in of.values()):
        assert (model.max_iter, model.shuffle, model.hypothesis) == (5, False, "last")


def test_updates_on_lymphoma():
    data_folder(*LYMPHOMA_FILES)
    problem = ho_runs.lymphoma(100)
    assert (problem.n_repeats, problem.sizes) == (100, "60/36 rows of 4,026 features")
    settings = ho_runs.higher_order(2, [0.4], 5) | ho_runs.second_order([1.0], 5)
    measured = problem.measure(settings, n_jobs=1)
    updates = {name: values.mean() for name, (values, _) in measured.items()}
    assert updates == {"c=0.4": pytest.approx(18.5, abs=1), "a=1": pytest.approx(16.7, abs=1)}


def test_topics_of_rcv1():
    data_folder("rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt")
    problems = ho_runs.rcv1(2).problems
    assert [problem.name for problem in problems] == list(TABLE_2)
    assert all(problem.parts[0].splits is problems[0].parts[0].splits for problem in problems)
    for problem in problems:
        (part,) = problem.parts
        assert [len(rows) for rows in part.splits[0]] == [10_000, 10_000]
        assert not set(part.splits[0][0]) & set(part.splits[0][1])
        assert 0.1 < np.mean(part.y == 1) < 0.3


# ------------------------------------------------------------------------------------- the commands


def small_problem(name, n_repeats):
    """Return noisy rows, few of them."""
    X, y = make_classification(60, 30, n_informative=4, flip_y=0.1, random_state=0)
    splits = random_splits(60, train_size=40, test_size=20, n_splits=n_repeats, random_state=0)
    return ho_runs.Problem(name, 2, (ho_runs.Part(X, 2 * y - 1, splits),))


@pytest.fixture
def command(monkeypatch, tmp_path):
    """Run a command on small problems under the names of the real ones; return its report."""
    of_name = {"lymphoma": "Lymphoma", "breast": "Breast (x)", "colon": "C", "leukemia": "L"}
    for function, name in of_name.items():
        monkeypatch.setattr(
            ho_tables, function, lambda n, labels=None, name=name: small_problem(name, n)
        )
    monkeypatch.setattr(
        ho_tables, "rcv1",
        lambda n: ho_runs.Stories(tuple(small_problem(topic, n) for topic in TABLE_2), "somewhere"),
    )  # fmt: skip
    monkeypatch.setattr(ho_tables, "artificial", lambda noise, n: small_problem(str(noise), n))

    def run(*arguments):
        out = tmp_path / "out" / "report.json"
        ho_tables.main([*arguments, "--jobs", "1", "--out", str(out)])
        return json.loads(out.read_text())

    return run


def test_best_setting_and_the_one_that_cross_validation_chooses():
    problem = small_problem("small", 6)
    settings = ho_runs.higher_order(2, [0.2, 0.8], 2)
    result = run_algorithm("HO_2", settings, Printed(1.5, 2.5), problem, 3, n_jobs=1)
    measured = problem.measure(settings, n_jobs=1)
    means = {name: errors.mean() for name, (_, errors) in measured.items()}
    assert result.best == min(means, key=means.get)
    assert {name: each.error for name, each in result.settings.items()} == pytest.approx(means)
    assert result.best_there == pytest.approx(measured[result.best][1][:3].mean())
    (part,) = problem.parts
    found = select_setting(settings, part.X, part.y, part.splits[:3])
    assert list(result.chosen) == list(dict.fromkeys(found.chosen))
    assert result.cross_validated.error == pytest.approx(
        100 * found.cross_validated.test_errors.mean()
    )
    line = result.line()
    assert line[:4] == ("HO_2", 1.5, 2.5, result.best)
    assert line[5] == means[result.best]


@pytest.mark.parametrize(
    ("name", "data", "algorithms"),
    [
        ("table1", ["Breast (x)", "Lymphoma"], list(TABLE_1["Breast"])),
        ("table2", list(TABLE_2), ["FO", "HO_2", "SO"]),
    ],
)
def test_tables_set_the_paper_beside_measured(command, capsys, name, data, algorithms):
    report = command(name, "--repeats", "3", "--chosen", "2")["data"]
    assert list(report) == data
    out = capsys.readouterr().out
    beginnings = [line.split()[:3] for line in out.splitlines()]
    for problem, facts in report.items():
        assert facts["repeats"] == 3
        assert [result["algorithm"] for result in facts["results"]] == algorithms
        for result in facts["results"]:
            updates, error = (TABLE_1 | TABLE_2)[problem.split()[0]][result["algorithm"]]
            assert result["printed"] == {"updates": updates, "error": error}
            assert sum(result["chosen"].values()) == 2
            assert [result["algorithm"], f"{updates:g}", f"{error:.2f}"] in beginnings


def test_figure_2(command, monkeypatch, tmp_path, capsys):
    def few(noise, random_state):
        return make_ho_target(80, 50, noise=noise, random_state=random_state)

    monkeypatch.setattr(ho_figure2, "make_ho_target", few)
    report = command("figure2", "--repeats", "2")
    assert (tmp_path / "out" / "report.png").stat().st_size > 10_000
    for noise in FIGURE_2_AXES:
        curves, order = report[str(noise)]["curves"], report[str(noise)]["order"]
        assert list(curves) == list(ho_figure2.CURVES)
        for figures in curves.values():
            updates = figures["updates"]["mean"]
            assert len(updates) == len(FIGURE_2_EPOCHS)
            assert updates == sorted(updates)
        first, last = curves["HO_2(0.4)"], curves["FO"]
        assert order[6]["mean_difference"] == pytest.approx(
            first["updates"]["mean"][-1] - last["updates"]["mean"][-1]
        )
    assert "300 to 800" in (out := capsys.readouterr().out)
    assert "16 to 36" in out


def test_claim(command, capsys):
    report = command("claim", "--repeats", "3")
    entries = report["entries"]
    assert len(entries) == (4 + 4 + 2) * 3
    assert [entry["p"] for entry in entries[:3]] == [2, 4, 7]
    assert "30 cases" in capsys.readouterr().out
    measured = small_problem("", 3).measure(ho_runs.higher_order(2, [0.0, 0.4], 2), n_jobs=1)
    for figure, position in (("updates", 0), ("errors", 1)):
        without, with_matrix = (values[position].mean() for values in measured.values())
        assert entries[0][figure]["without"] == pytest.approx(without)
        assert entries[0][figure]["difference"] == pytest.approx(with_matrix - without)


@pytest.mark.parametrize(
    ("difference", "p_value", "verdict"),
    [(-1.0, 0.01, "better"), (1.0, 0.01, "worse"), (-1.0, 0.05, "open"), (0.0, 1.0, "open")],
)
def test_verdict_on_the_claim(difference, p_value, verdict):
    assert ho_claim.Comparison(5.0, 5.0 + difference, difference, p_value).verdict == verdict


def test_usual_and_few_repeats(command):
    assert command("table2", "--quick")["data"]["C15"]["repeats"] == ho_tables.QUICK.text
    with pytest.raises(SystemExit):
        command("table2", "--repeats", "0")


def test_missing_data_tell_how_to_get_them(command, monkeypatch, capsys):
    def absent(n_repeats):
        raise FileNotFoundError("no such file: put it there")

    monkeypatch.setattr(ho_tables, "rcv1", absent)
    with pytest.raises(SystemExit) as end:
        command("table2")
    assert end.value.code != 0
    assert "put it there" in capsys.readouterr().err


# ------------------------------------------------------------------------------- growth of the time


def test_exponent_of_growth():
    mistakes, nonzeros = np.arange(1, 31) * 100, np.geomspace(1e3, 1e6, 30)
    seconds = np.where(mistakes < ho_growth.FITTED_FROM, 1.0, 1e-9 * nonzeros**1.5)
    growth = ho_growth.Growth(mistakes, nonzeros, seconds)
    assert growth.exponent.slope == pytest.approx(1.5)


def test_growth_counts_the_nonzeros_of_the_mistakes():
    X, y = make_zipf_text(1500, 2000, mean_nnz=20, random_state=0)
    y = np.where(y == y[0], 1, -1)
    growths = ho_growth.measure_growth(X, y, n_rounds=1, part=0.1)
    assert list(growths) == list(ho_growth.GROWING)
    for name, growth in growths.items():
        estimator, most_mistakes = ho_growth.GROWING[name]
        model, most = clone(estimator), 0.1 * most_mistakes
        assert most - ho_growth.ROWS_A_CALL < growth.mistakes[-1] < most + ho_growth.ROWS_A_CALL
        assert (np.diff(growth.nonzeros) > 0).all()
        n_first = 2 * growth.nonzeros[0]
        model.partial_fit(X[:250], ho_growth.flip(y)[:250], classes=(-1, 1))
        assert n_first == np.diff(X.indptr)[model.mistakes_].sum()
