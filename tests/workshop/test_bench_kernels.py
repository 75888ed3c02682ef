"""The contests beside SVC: held in processes of their own, once each."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import kernel_contest
import kernels


def test_contests_in_processes_of_their_own():
    result = kernel_contest.hold_apart(
        kernel_contest.Contest(kernel_contest.BOUNDED, 3000, max_support=50)
    )
    assert result["support"] == 50
    assert result["passed_over"] > 0
    assert result["peak_bytes"] >= result["loaded_bytes"] > 0
    assert 0 < result["error"] < 50


def test_a_contest_is_held_once(monkeypatch, tmp_path):
    held = []

    def hold(contest):
        held.append(contest)
        return {"fit": [3.0, 2.0, 70.0][len(held) - 1], "fit_cpu": 1.0, "predict": 1.0}

    monkeypatch.setattr(kernels, "hold_apart", hold)
    ring = kernels.Ring(tmp_path, 3)
    contest = kernel_contest.Contest(kernel_contest.SVC_RAW, 10)
    assert ring.result(contest) == ring.result(contest)
    assert len(held) == 3
    assert ring.result(contest)["fit"] == 2.0


def test_ratios_are_to_the_peer(monkeypatch, tmp_path, capsys):
    seconds = {kernel_contest.ALMA_4: 2.0, kernel_contest.SVC_RAW: 30.0}

    def hold(contest):
        of = seconds[contest.contestant] / contest.n_jobs
        sizes = {"loaded_bytes": 2**20, "peak_bytes": 3 * 2**20}
        times = {"fit": of, "fit_cpu": 1.0, "predict": 1.0}
        return times | {"error": 1.5, "support": 7, "passed_over": 0} | sizes

    monkeypatch.setattr(kernels, "hold_apart", hold)
    ring = kernels.Ring(tmp_path, 1)
    results = kernels.beside(kernel_contest.ALMA_4, kernel_contest.SVC_RAW, 10, ring)
    assert [each["ratios"]["fit"] for each in results] == [15.0, 30.0, 1.0]
    kernels.show_pair(results)
    assert "ALMA d=4, one epoch, 2 threads" in capsys.readouterr().out
    kernels.plot([results], tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 0


def test_generated_rows_are_of_both_classes():
    data = kernel_contest.generate(4000)
    assert 0.4 < (data.y == 1).mean() < 0.6
    assert data.X.shape == (4000, kernel_contest.N_FEATURES)
    assert len(data.y_test) == kernel_contest.N_TEST
