"""The data of the benchmarks, their computations, and a tiny run of each."""

import json
import re
import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import depth
import sparsemargin
from depth import long
from sparsemargin import fit_csr

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import charter
import corpora
import defaults
import epoch
import floor
import growth
import higher_order
import labels
import launch
import scale
import soak
import tables
import timing
from scale_problems import SEED

import files

TINY = replace(corpora.RCV1_SMALL, n_train=120, n_test=40, n_features=900, mean_nnz=15)
PNORM = scale.FIRST_ORDER["p-norm, p=2"]


def test_loop_over_many_labels_equals_single_loops():
    corpus = corpora.draw_labelled(TINY, 20)
    orders = floor.row_orders(120, 3, shuffle=True, seed=0)
    sweep = floor.FloorLabels(corpus.X, corpus.y, orders).run()
    for label in range(20):
        y = np.where(corpus.y[:, label], 1, -1)
        alone = floor.FloorLoop(corpus.X, y, orders).run()
        np.testing.assert_allclose(sweep.weights[:, label], alone.numbers[:, 0], atol=1e-4)


def noisy_rows():
    rng = np.random.default_rng(0)
    X = sp.random(3000, 80, 0.1, "csr", random_state=rng)
    X = X[np.diff(X.indptr) > 0]
    y = np.where(X @ rng.normal(size=80) > 0, 1, -1)
    return X, np.where(rng.random(len(y)) < 0.1, -y, y)


@pytest.mark.parametrize("p", [2, 6])
@pytest.mark.parametrize("alpha", [None, 0.5])
def test_reference_of_the_soak_equals_the_algorithm(p, alpha):
    X, y = noisy_rows()
    reference, estimator = soak.Reference(X.shape[1], p, alpha), soak.make_estimator(p, alpha=alpha)
    for part in (slice(0, 1000), slice(1000, None)):
        reference.learn(X[part], y[part], soak.norms_of(X[part], p))
        estimator.partial_fit(X[part], y[part], classes=[-1, 1])
    assert reference.model.corrections == estimator.n_corrections_ > len(y) // 10
    expected = estimator.coef_[0][reference.watched]
    assert np.abs(reference.average - expected).max() <= 1e-12 * np.abs(expected).max()
    assert abs(reference.theta_norm / estimator.theta_norm_[0] - 1) <= 1e-14


def part_of(report):
    machine = dict.fromkeys(("cpu", "cpus", "scikit-learn"), "some")
    return {"quick": False, "report": json.loads(json.dumps(report)) | {"machine": machine}}


def test_text_is_raced_unsorted_and_sorted():
    text = epoch.read_texts(step=40)
    assert not text.X.has_sorted_indices
    each = {epoch.UNSORTED: text, epoch.SORTED: text.with_sorted_rows()}
    races = epoch.race(each, epoch.IN_LIFE, 1)
    found = {(entry["rows"], entry["contestant"]): entry for entry in races}
    for name in (*tables.OURS, tables.ONE_CALL):
        unsorted, by_row = (found[rows, name] for rows in each)
        assert unsorted["test_error"] == pytest.approx(by_row["test_error"], abs=0.02)
        of_sorted = unsorted["seconds"] / by_row["seconds"]
        assert unsorted["times_sorted"]["min"] == pytest.approx(of_sorted)
    parts = {"text": part_of({"races": races})}
    assert set(tables.render(tables.select(parts))) == {"text"}
    # One figure for each of ours on sorted rows, two for its own fit, and one for scikit-learn.
    assert len(charter.aims(parts)) == len(tables.OURS) + 2 + 1


def test_epochs_are_compared_with_the_loop():
    corpus = corpora.draw_corpus(TINY)
    entries = floor.measure("text", corpus, 1, {"last": 1.4})
    beside = [entry for entry in entries if entry["loop_ns"]]
    assert {entry["learned"] for entry in beside} == set(floor.AIMS)
    assert all(each["of_loop"] == each["ours_ns"] / each["loop_ns"] for each in beside)
    races = epoch.race({epoch.SORTED: corpus}, epoch.CONTESTANTS, 1)
    report = {"epoch": [each | {"shape": "rcv1l"} for each in races]}
    report |= {"one_row": epoch.one_row_calls(TINY, 5)}
    parts = {"epoch": part_of(report), "floor": part_of({"epochs": entries})}
    assert set(tables.render(tables.select(parts))) == {"epoch", "one-row", "floor"}
    assert len(charter.aims(parts)) == 1


@pytest.fixture
def tiny(monkeypatch):
    """Measure with few rows and small sizes, in one process."""
    for module, name, value in (
        (growth, "RCV1_SMALL", TINY),
        (growth, "MOST_ROWS_QUICK", 640),
        (growth, "MORE_FEATURES", (900, 1800, 3600, 7200, 0, 0)),
        (growth, "N_ROWS_QUICK", 120),
        (growth, "LABELS", (4, 8, 16, 0, 0)),
        (growth, "THREADED_LABELS", (8, 16)),
        (labels, "RCV1_SMALL", TINY),
        (labels, "QUICK_ROWS", 120),
        (labels, "CONTESTANTS", [each for each in labels.CONTESTANTS if each.n_jobs == 1]),
    ):
        monkeypatch.setattr(module, name, value)
    return Namespace(quick=True, rounds=1)


@long
def test_growth_is_measured(tiny):
    report = {}
    for measure in growth.GROWTHS.values():
        report |= measure(tiny)
    assert [entry["n_labels"] for entry in report["threads"]["speed_ups"]] == [8, 16, 8, 16]
    assert all(len(curve["sizes"]) == 6 for curve in report["nonzeros"]["curves"])
    parts = {"growth": part_of(report)}
    assert set(tables.render(tables.select(parts))) == {"growth", "threads"}
    assert any("two threads" in aim[0] for aim in charter.aims(parts))


def test_many_labels_are_raced_with_their_errors(tiny):
    report = labels.race(tiny)
    by_name = {entry["contestant"]: entry for entry in report["race"]["fits"]}
    assert by_name[tables.OVR]["times_ovr"] == by_name[labels.FLOOR]["of_floor"] == 1
    assert all(0 < entry["hamming_error"] < 0.5 for entry in by_name.values())
    own, theirs = (by_name[name]["hamming_error"] for name in ("Perceptron, last", tables.OVR))
    assert own == pytest.approx(theirs, abs=0.1)
    parts = {"labels": part_of(report | {"rcv1": None, "memory": None})}
    assert set(tables.render(tables.select(parts))) == {"labels"}
    assert len(charter.aims(parts)) == 5


@depth.long
def test_rotated_genomes_give_equal_errors(monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 60))
    y = np.where(X[:, 0] > 0, 1, -1)
    rows, others = defaults.turned(X[:20], X[20:])
    np.testing.assert_allclose(others @ rows.T, X[20:] @ X[:20].T, atol=1e-12)
    np.testing.assert_allclose(np.sum(others**2, axis=1), np.sum(X[20:] ** 2, axis=1))
    some = [name for name in defaults.OF_GENES if "SVC" in name or name == f"`{tables.ONE_CALL}`"]
    chosen = {name: defaults.OF_GENES[name] for name in some}
    monkeypatch.setattr(defaults, "OF_GENES", chosen)
    draws = {name: lambda k=k, **_: (X[:, k:], y) for k, name in enumerate(defaults.GENOMES)}
    monkeypatch.setattr(defaults, "GENOMES", draws)
    report = defaults.genomes(Namespace(quick=True))
    found = {(e["contestant"], e["of"]): e for e in report["genomes"]}
    ours, svc = (found[name, "mean of five"] for name in some[:2])
    assert svc["less_by_ours"] == pytest.approx(svc["error"] - ours["error"])
    assert ours["less_by_ours"] == ours["standard_error"] == 0 < svc["standard_error"]
    parts = {"genomes": part_of(report)}
    assert set(tables.render(tables.select(parts))) == {"genomes"}
    assert len(charter.aims(parts)) == 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@depth.long
def test_dense_rows_are_measured_with_and_without_centering(monkeypatch):
    X = np.random.default_rng(0).lognormal(8, size=(40, 60))
    draws = {of: lambda **_: (X, np.where(X[:, 0] > 3000, 1, -1)) for of in defaults.GENOMES}
    monkeypatch.setattr(defaults, "GENOMES", draws)
    for name in ("load_usps", "load_letter", "load_digits"):
        monkeypatch.setattr(defaults, name, defaults.load_wine)
    report = defaults.dense(Namespace(rounds=1))
    rendered = tables.render(tables.select({"dense": part_of(report)}))
    assert len(report["logs"]) == 45
    assert "as they are; standardised" in rendered["few"]
    lines = re.findall(r"^\| `.*", rendered["few"], re.M)
    assert len(lines) == len({each["contestant"] for each in report["few"]})
    error = next(each["error"] for each in report["few"] if each["values"] == "standardised")
    assert f"; {error:.1f} |" in lines[0]


@depth.long
def test_genotypes_are_measured_for_each_seed(monkeypatch):
    one = dict(list(defaults.OF_GENOTYPES.items())[1:2])
    monkeypatch.setattr(defaults, "OF_GENOTYPES", one)
    report = defaults.genotypes(Namespace(quick=True))
    assert [entry["of"] for entry in report["genotypes"]] == ["seed 0", "seed 1"]
    assert all(70 < entry["accuracy"] < entry["auc"] for entry in report["genotypes"])


@pytest.mark.skipif(not timing.STATUS.exists(), reason="the system doesn't tell peaks")
@depth.long
def test_matrix_perceptrons_are_measured_beside_linear_svc(monkeypatch):
    name = "100,000 documents"
    shape = higher_order._documents(4000, tuple(higher_order.AS_THEY_COME)[:2])
    monkeypatch.setattr(higher_order, "SHAPES", {name: shape})
    report = higher_order.shapes(Namespace(quick=False))
    svc, ours = report["shapes"]
    assert (svc["times_linear_svc"], svc["mistakes"]) == (1, None)
    assert ours["times_linear_svc"] == ours["cpu_seconds"] / svc["cpu_seconds"] > 0
    assert ours["updates"] == 100
    assert 0.05 < ours["test_error"] < 0.2
    parts = {"shapes": part_of(report)}
    assert set(tables.render(tables.select(parts))) == {"shapes"}
    assert len(charter.aims(parts)) == 1


def test_curves_over_shards_are_those_of_the_models():
    problem = scale.generated(replace(scale.SMALL, n_train=600, n_test=200))
    assert fit_csr(problem.X, problem.y).score(problem.X_test, problem.y_test) > 0.6
    both = scale.curves([problem], {"pnorm": PNORM}, 2, [1, 2])
    assert [each["shards"] for each in both] == [1, 2]
    for epochs, error in enumerate(both[0]["errors"], start=1):
        model = fit_csr(problem.X, problem.y, max_iter=epochs, random_state=SEED, **PNORM)
        assert error == pytest.approx(1 - model.score(problem.X_test, problem.y_test), abs=1e-6)


SHAPE = replace(corpora.RCV1_LARGE, n_train=500, n_test=100, n_features=3000, mean_nnz=20)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return files.open_texts(tmp_path_factory.mktemp("texts"), SHAPE)


def test_texts_contain_the_drawn_rows_and_are_reused(texts):
    corpus = corpora.draw_corpus(SHAPE)
    read = {"n_features": SHAPE.n_features, "zero_based": False}
    X, y = sparsemargin.load_svmlight(texts.path("train"), **read)
    np.testing.assert_array_equal(y, corpus.y)
    np.testing.assert_array_equal(X.indices, corpus.X.indices)
    np.testing.assert_allclose(X.data, corpus.X.data, atol=5e-7)
    pairs = (texts.path("train", kind).read_text().splitlines() for kind in ("svm", "vw"))
    for ours, theirs in zip(*pairs, strict=True):
        label, _, features = ours.partition(" ")
        assert theirs == f"{int(label)} |f {features}"


def test_commands_run_in_separate_processes(tmp_path):
    def peak(n):
        code = f"x = bytearray({n})"
        return files.run(files.Contestant("", (sys.executable, "-c", code), 1))["peak_bytes"]

    ballast = bytearray(300_000_000)
    assert (small := peak(1)) < 50e6
    assert small + 140e6 < peak(150_000_000) < small + 200e6
    del ballast
    (text := tmp_path / "text").write_text("+1 1:1\n-1 |f 1:1\n-1 1:1\n1 1:1\n")
    (predictions := tmp_path / "predictions").write_text("0.5\n-2\n1\n-0.1\n")
    assert launch.error_of(predictions, text) == 0.5


@depth.long
def test_calls_and_loads_report_their_results(texts, monkeypatch):
    monkeypatch.setattr(files, "FITS", dict([*files.FITS.items()][:1]))
    monkeypatch.setattr(files, "LOADS", dict([*files.LOADS.items()][1:]))
    (fit,) = files.fit(texts, 1)
    model = sparsemargin.fit_svmlight(texts.path("train"), "perceptron", fit_intercept=False)
    X, y = sparsemargin.load_svmlight(texts.path("test"))
    X.resize(X.shape[0], model.n_features_in_)
    assert fit["test_error"] == pytest.approx(1 - model.score(X, y))
    loads = files.load(texts, 1)
    assert loads[0]["times"]["x sklearn"]["min"] > 0
    assert loads[0]["contents"][0] == SHAPE.n_train
    loads[0]["contents"][2] += 1
    with pytest.raises(SystemExit, match="read"):
        files.check_contents(loads)
