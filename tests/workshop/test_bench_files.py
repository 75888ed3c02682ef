"""What the benchmark of files measures with: its texts, its launcher, its calls, its figures."""

import gzip
import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import sparsemargin

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import files_peers
import files_race
from corpora import RCV1_LARGE, draw_corpus
from files_calls import error_of
from files_race import Contestant, at_least, call_on, race, table
from files_texts import FEW_ROWS, open_texts

SHAPE = replace(RCV1_LARGE, n_train=500, n_test=100, n_features=3000, mean_nnz=20)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    return open_texts(tmp_path_factory.mktemp("texts"), SHAPE)


# ---------------------------------------------------------------------------- the texts


def test_svmlight_text_holds_the_rows_that_were_drawn(texts):
    corpus = draw_corpus(SHAPE)
    for name, drawn, labels in (
        ("train", corpus.X, corpus.y),
        ("test", corpus.X_test, corpus.y_test),
    ):
        X, y = sparsemargin.load_svmlight(
            texts.path(name), n_features=SHAPE.n_features, zero_based=False
        )
        np.testing.assert_array_equal(y, labels)
        np.testing.assert_array_equal(X.indices, drawn.indices)
        np.testing.assert_array_equal(X.indptr, drawn.indptr)
        np.testing.assert_allclose(X.data, drawn.data, atol=5e-7)


def test_vw_text_holds_the_same(texts):
    ours = texts.path("train").read_text().splitlines()
    theirs = texts.path("train", "vw").read_text().splitlines()
    for line, other in zip(ours, theirs, strict=True):
        label, _, features = line.partition(" ")
        assert label in ("+1", "-1")
        assert other == f"{int(label)} |f {features}"


def test_other_texts_are_made_of_these(texts):
    for kind in "svm", "vw":
        train = texts.path("train", kind).read_bytes()
        assert texts.path("train-twice", kind).read_bytes() == 2 * train
        few = texts.path("few", kind).read_bytes()
        assert train.startswith(few)
        assert few.count(b"\n") == FEW_ROWS
    packed = texts.path("train", "svm.gz").read_bytes()
    assert gzip.decompress(packed) == texts.path("train").read_bytes()


def test_texts_that_are_there_are_kept(texts):
    before = {path: path.stat().st_mtime_ns for path in texts.folder.iterdir()}
    assert open_texts(texts.folder.parent, SHAPE) == texts
    assert {path: path.stat().st_mtime_ns for path in texts.folder.iterdir()} == before


# ---------------------------------------------------------------------------- runs


def _python(code, **rest):
    return Contestant("code", (sys.executable, "-c", code), 10**6, **rest)


def test_peak_memory_is_the_commands_own():
    ballast = bytearray(300_000_000)
    small = files_race.run(_python("pass"))["peak_bytes"]
    large = files_race.run(_python("x = bytearray(150_000_000)"))["peak_bytes"]
    del ballast
    assert small < 50e6
    assert small + 140e6 < large < small + 200e6


def test_a_command_that_fails_is_not_measured():
    with pytest.raises(subprocess.CalledProcessError):
        files_race.run(_python("raise SystemExit(3)"))


def test_files_that_must_not_be_there_are_removed(tmp_path):
    stale = tmp_path / "cache"
    stale.write_text("stale")
    code = f"import os; raise SystemExit(os.path.exists({str(stale)!r}))"
    files_race.run(_python(code, fresh=(stale,)))


def test_a_call_tells_what_came_of_it(texts):
    command = call_on(texts, "fit_svmlight", algo="perceptron")
    facts = files_race.run(Contestant("ours", command, 1, reports=True))
    model = sparsemargin.fit_svmlight(texts.path("train"), "perceptron")
    X, y = sparsemargin.load_svmlight(texts.path("test"))
    X.resize(X.shape[0], model.n_features_in_)
    assert facts["test_error"] == pytest.approx(1 - model.score(X, y))
    assert 0 <= facts["added_bytes"] < facts["peak_bytes"]


def test_a_cached_call_reads_the_cache_that_the_first_one_made(texts):
    command = call_on(texts, "fit_svmlight", algo="perceptron", cached=True)
    cache = texts.path("train", "svm.float64.smcache")
    files_race.run(Contestant("first", command, 1, reports=True, fresh=(cache,)))
    made = cache.stat().st_mtime_ns
    files_race.run(Contestant("second", command, 1, reports=True))
    assert cache.stat().st_mtime_ns == made


def test_loaders_are_told_apart_by_what_they_read(texts):
    contents = [
        files_race.run(Contestant(call, call_on(texts, call), 1, reports=True))["contents"]
        for call in ("load_svmlight", "load_svmlight_file")
    ]
    assert contents[0] == contents[1]
    assert contents[0][0] == SHAPE.n_train


@pytest.mark.skipif(not files_peers.has_vw(), reason="vw is not installed: sparsemargin[bench]")
def test_vw_is_judged_alike_in_process_and_out(texts, tmp_path):
    inside = files_race.run(Contestant("vw", call_on(texts, "vw", kind="vw"), 1, reports=True))
    model, train = tmp_path / "model", texts.path("train", "vw")
    outside = files_race.run(
        Contestant(
            "vw", (*files_peers.VW, "-d", str(train), "-f", str(model)), 1,
            judge=lambda: files_peers.vw_error(model, texts),
        )
    )  # fmt: skip
    assert inside["test_error"] == outside["test_error"] < 0.5


# ---------------------------------------------------------------------------- figures


def test_errors_are_counted_by_sign(tmp_path):
    predictions, text = tmp_path / "predictions", tmp_path / "text"
    predictions.write_text("0.5\n-2\n1\n-0.1\n")
    text.write_text("+1 1:1\n-1 |f 1:1\n-1 1:1\n1 1:1\n")
    assert error_of(predictions, text) == 0.5
    predictions.write_text("0.5\n")
    with pytest.raises(ValueError, match="zip"):
        error_of(predictions, text)


def _told(name, seconds, **rest):
    """A contestant whose runs tell of these seconds, one after the other."""
    facts = [
        {"seconds": s, "cpu_seconds": s, "peak_bytes": int(1e7 * s), "test_error": s / 100}
        for s in seconds
    ]
    return Contestant(name, tuple(map(json.dumps, facts)), 4 * 10**6, reports=True, **rest)


def test_ratios_are_of_minima_and_of_medians(monkeypatch):
    turn = dict.fromkeys(("ours", "theirs"), 0)

    def run(contestant):
        turn[contestant.name] += 1
        return json.loads(contestant.command[turn[contestant.name] - 1])

    monkeypatch.setattr(files_race, "run", run)
    ours = _told("ours", [2, 5, 4], against={"x peer": "theirs", "x absent": "nobody"})
    entries = race("race", [ours, _told("theirs", [6, 9, 8])], 3)
    entry = entries[0]
    assert entry["seconds"] == {"min": 2, "median": 4}
    assert entry["times"] == {"x peer": {"min": 3, "median": 2}}
    assert entry["megabytes_per_second"] == 2
    assert entry["peak_bytes"] == 5e7
    assert entry["test_error"] == pytest.approx(11 / 300)
    reached = [at_least("", wanted, entries, "ours", "x peer").reached for wanted in (3, 3.1)]
    assert reached == [True, False]
    assert at_least("", 1, entries, "ours", "x absent").reached is None
    lines = table(entries, ["x peer", "x absent"]).splitlines()
    assert lines[0].count("|") == 9  # nobody has a ratio to the absent, or has told what it added
    assert all(line.count("|") == other.count("|") for line, other in pairwise(lines))
