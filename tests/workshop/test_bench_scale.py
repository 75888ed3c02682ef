"""The benchmark of learning in shards: its rows, its figures, and what is worked out from them."""

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsemargin import fit_csr
from sparsemargin.distributed import fit_distributed

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import scale
import scale_data
import scale_estimate
import scale_pages
import scale_shards
import scale_speed
import scale_tables
import scale_touched
from doc_tables import fill
from scale_learners import FIRST_ORDER, SEED

PNORM = FIRST_ORDER["p-norm, p=2"]


@pytest.fixture(scope="module")
def problem():
    return scale_data.generated(replace(scale_data.SMALL, n_train=600, n_test=200))


# ---------------------------------------------------------------------------- rows


def test_one_training_label_in_twenty_is_wrong(problem):
    model = fit_csr(problem.X, problem.y, random_state=0)
    assert problem.X.shape == (600, 20_000)
    assert 40 < problem.X.nnz / 600 < 60
    assert abs(problem.y_test.mean()) < 0.2
    assert model.score(problem.X_test, problem.y_test) > 0.6


def test_row_caches_hold_the_shards(problem, tmp_path):
    options = {**PNORM, "shuffle": False, "max_iter": 2}
    pairs = fit_distributed(problem.shards(3), **options)
    caches = fit_distributed(problem.caches(3, tmp_path), **options)
    np.testing.assert_array_equal(pairs.coef_, caches.coef_)


def test_curves_are_those_of_the_shards(problem):
    (curve,) = scale_shards.curves([problem], {"pnorm": PNORM}, 2, [1])
    for epochs, error in enumerate(curve["errors"], start=1):
        model = fit_csr(problem.X, problem.y, max_iter=epochs, random_state=SEED, **PNORM)
        assert error == pytest.approx(1 - model.score(problem.X_test, problem.y_test), abs=1e-6)
    both = scale_shards.curves([problem], {"pnorm": PNORM}, 1, [1, 2], [2])
    assert [(each["shards"], each["mixing"]) for each in both] == [
        (1, "uniform"), (2, "uniform"), (2, "errors"),
    ]  # fmt: skip


def test_bytes_tell_the_coordinates_that_were_touched(problem):
    shards = problem.shards(4)
    (first,) = scale_speed.rounds_of(shards, PNORM, n_epochs=1)
    told = scale_touched.touched(first.bytes_received, value=4)
    moved = sum(
        np.count_nonzero(
            fit_csr(X, y, max_iter=1, random_state=0, hypothesis="last", **PNORM).coef_
        )
        for X, y in shards
    )
    assert told == pytest.approx(moved, rel=0.1)


# ---------------------------------------------------------------------------- figures


def test_the_busiest_worker_is_told_for_each_round():
    def task(start, stop, worker, key="sparsemargin-learn_epoch-1", action="compute"):
        span = {"action": action, "start": start, "stop": stop}
        return {"key": key, "worker": worker, "startstops": [span]}

    tasks = [
        task(10, 13, "a"), task(10, 12, "b"), task(13, 14, "b"), task(0, 1, "a"), task(0, 1, "b"),
        task(1, 3, "a"), task(2, 9, "a", key="survey-1"), task(2, 9, "a", action="transfer"),
    ]  # fmt: skip
    assert scale_speed._learned(tasks, 2) == [3, 3]


def test_the_law_of_touched_coordinates_leaves_whole_vectors_out():
    rows = [1000, 2000, 4000, 8000]
    entry = {"rows": rows, "coordinates": [100, 200, 283, 9999], "whole": [False] * 3 + [True]}
    law = scale_touched.law(entry)
    assert law["last"] == [4000, 283]
    assert law["tail"] == pytest.approx(0.5, abs=0.01)
    assert 0.5 < law["exponent"] < 1


def test_costs_are_told_apart_by_the_shards():
    n, nonzeros = 1000, 10**6
    cost = scale_estimate.Costs(3e-9, 5e-8, 7e-9, 60, 4)

    def contestant(n_shards):
        mixing = n_shards * n * cost.mixed
        learning = nonzeros * cost.nonzero + n_shards * n * cost.coordinate
        return {"seconds": learning + mixing, "mixing": mixing}

    speed = {
        "learner": "p-norm, p=2", "n_features": n, "n_entries": nonzeros,
        "contestants": {
            **dict.fromkeys((scale_speed.TWO, scale_speed.ONE_WORKER), contestant(2)),
            scale_speed.TWO_WORKERS: {"seconds": 1.0, "mixing": 1.0},
            scale_speed.MANY_SHARDS: contestant(scale_speed.MANY),
        },
    }  # fmt: skip
    found = scale_estimate.costs(speed, 60)
    assert vars(found) == pytest.approx(vars(cost))


def test_an_epoch_is_worked_out():
    touched = {"n_features": 10**6, "last": [10**6, 10**5], "tail": 0.5}
    cost = scale_estimate.Costs(1e-9, 1e-8, 1e-8, 60, 4)
    assumed = scale_estimate.ASSUMED
    found = scale_estimate.estimate(cost, touched)
    assert found.learning == pytest.approx(0.5)
    # sqrt(10) as many coordinates as a tenth of the rows touches, a place and a value, twice.
    assert found.update == pytest.approx(16 * 10**5.5)
    assert found.up == pytest.approx(2 * 100 * found.update / 1.25e9)
    assert found.mixing == pytest.approx(1.0)
    assert found.down == pytest.approx(9 * 4e6 / 1.25e9)
    assert found.seconds == pytest.approx(0.5 + 0.01 + found.up + 1.0 + found.down)
    wider = {**touched, "last": [10**6, 10**6]}
    assert scale_estimate.estimate(cost, wider).update == 8 * 10**6

    def seconds(machines):
        update = found.update * machines * assumed.hops / assumed.network
        return 0.5 * assumed.machines / machines + update + machines * 1e-8 * 10**6

    assert min(range(2, 1000), key=seconds) == pytest.approx(found.best, abs=1)


# ---------------------------------------------------------------------------- the page


def test_figures_are_kept_as_they_were(tmp_path):
    parts = {
        "rcv1": {"quick": True, "figures": {"topics": ["C15"], "curves": [{"a": 1}, {"a": 2}]}},
        "touched": {"quick": False, "figures": [{"rows": [1, 2]}]},
        "memory": {"quick": False, "figures": {"p-norm, p=2": 1.5}},
    }
    scale.write(tmp_path / "scale.json", parts)
    assert scale.read(tmp_path / "scale.json") == parts
    assert scale.read(tmp_path / "none.json") == {}


def test_the_page_has_the_tables_of_the_figures():
    figures = scale_pages.figures_of(scale.read(scale_pages.FIGURES))
    tables = scale_tables.render(figures)
    assert set(tables) <= set(scale_tables.TABLES)
    assert {"shards-rcv1", "shards-generated"} <= set(tables)
    text = scale_pages.PAGE.read_text()
    assert fill(text, tables) == text


def test_the_pictures_of_the_page_are_drawn(tmp_path):
    scale_pages.draw_pictures(tmp_path)
    drawn = sorted(f"pictures/{path.name}" for path in tmp_path.iterdir())
    assert sorted(re.findall(r"\{image\} (\S+)", scale_pages.PAGE.read_text())) == drawn
    assert all(path.read_text().startswith("<?xml") for path in tmp_path.iterdir())
