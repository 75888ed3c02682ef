"""The performance charter: what it measures with, how it gathers, and the tables of the pages."""

import importlib.util
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import charter
import charter_aims
import charter_plots
import charter_tables
import counters
import doc_tables
import floor_ratio
import growth
import growth_labels
import growth_rows
import label_race
import race
import vectorized
from charter_parts import Part
from corpora import RCV1_SMALL, draw_corpus
from corpus import GIVEAWAYS, collect_sources
from floor import FloorLabels, FloorPerceptron, row_orders
from growth_fit import share
from label_data import LABELS_A_ROW, draw_labelled, shares

from sparsemargin import fit_csr

TINY = replace(RCV1_SMALL, n_train=120, n_test=40, n_features=900, mean_nnz=15)

MACHINE = {"cpu": "some", "cpus": 2, "numpy": "2.0", "scipy": "1.0", "scikit-learn": "1.0"}


def part_of(report, cpu="some"):
    """A part of the charter, as it is after a full run on a machine."""
    return {"quick": False, "report": report | {"machine": MACHINE | {"cpu": cpu}}}


# ---------------------------------------------------------------------------- figures


def test_what_one_more_adds():
    line = share([1, 2, 3, 4], [12, 14, 16, 18])
    assert (line.each, line.rest) == (pytest.approx(2), pytest.approx(10))


def test_labels_are_as_frequent_as_those_of_rcv1():
    of_103 = shares(103)
    assert of_103.sum() == pytest.approx(LABELS_A_ROW)
    assert (of_103[0], of_103[-1]) == (pytest.approx(0.45), pytest.approx(0.001))
    assert np.all(np.diff(shares(8)) < 0)
    corpus = draw_labelled(TINY, 20)
    drawn = corpus.Y.sum(axis=0)
    assert np.all(np.abs(drawn - 120 * shares(20)) <= 1)
    assert np.all(drawn >= 1)
    np.testing.assert_array_equal(draw_labelled(TINY, 20).Y_test, corpus.Y_test)


def test_the_sweep_over_many_labels_learns_each_as_the_loop_over_one_does():
    corpus = draw_labelled(TINY, 20)
    orders = row_orders(120, 3, shuffle=True, seed=0)
    sweep = FloorLabels(corpus.X, corpus.Y, orders).run()
    for label in range(20):
        y = np.where(corpus.Y[:, label], 1, -1)
        alone = FloorPerceptron(corpus.X, y, orders).run()
        np.testing.assert_allclose(sweep.weights[:, label], alone.weights, atol=1e-4)
    assert sweep.predict(corpus.X_test).shape == corpus.Y_test.shape


# ---------------------------------------------------------------------------- measurements


@pytest.fixture
def tiny(monkeypatch):
    """Measure on a few rows and sizes, in one process."""
    one_process = [each for each in label_race.CONTESTANTS if each.n_jobs == 1]
    for module, name, value in (
        (growth_rows, "RCV1_SMALL", TINY),
        (growth_rows, "MOST_ROWS_QUICK", 640),
        (growth_rows, "MORE_FEATURES", (900, 1800, 3600, 7200, 0, 0)),
        (growth_labels, "RCV1_SMALL", TINY),
        (growth_labels, "N_ROWS_QUICK", 120),
        (growth_labels, "LABELS", (4, 8, 16, 0, 0)),
        (growth_labels, "THREADED_LABELS", (8, 16)),
        (label_race, "CONTESTANTS", one_process),
    ):
        monkeypatch.setattr(module, name, value)


def test_growth_is_measured_told_and_drawn(tiny, tmp_path, capsys):
    report = {name: growth.measure(name, quick=True, n_rounds=1) for name in growth.GROWTHS}
    for measured in report.values():
        growth.show(measured)
    assert "a correction adds" in capsys.readouterr().out
    assert [entry["n_labels"] for entry in report["threads"]["speed_ups"]] == [8, 16, 8, 16]
    for curve in report["nonzeros"]["curves"]:
        assert len(curve["sizes"]) == 6
        assert min(curve["seconds"]) > 0
    parts = {"growth": part_of(json.loads(json.dumps(report)))}
    assert len(charter_plots.draw_all(parts, tmp_path)) == len(growth.GROWTHS)
    assert all(path.read_text().startswith("<?xml") for path in tmp_path.glob("*.svg"))
    tables = charter_tables.render(charter_tables.select(parts))
    assert set(tables) == {"growth", "threads"}
    assert any("two threads" in aim.what for aim in charter_aims.aims(parts))


def test_many_labels_are_raced_with_their_errors(tiny, capsys):
    corpus = draw_labelled(TINY, 8)
    fits, models = label_race.fit_race(corpus, 1)
    predictions = label_race.predict_race(corpus, models, 1)
    label_race.show_fits(corpus, fits, 1)
    label_race.show_predictions(corpus, predictions)
    assert "Hamming error" in capsys.readouterr().out
    by_name = {entry["contestant"]: entry for entry in fits}
    assert by_name[label_race.OVR]["times_ovr"] == by_name[label_race.FLOOR]["of_floor"] == 1
    assert all(0 < entry["hamming_error"] < 0.5 for entry in fits)
    assert by_name["Perceptron, last"]["hamming_error"] == pytest.approx(
        by_name[label_race.OVR]["hamming_error"], abs=0.1
    )


def test_an_epoch_beside_the_loop_is_told_in_parts(capsys):
    entries = list(floor_ratio.measure(draw_corpus(TINY), 2))
    floor_ratio.show(entries, 2)
    assert "checks" in capsys.readouterr().out
    assert [entry["shuffled"] for entry in entries] == [False, True]
    for entry in entries:
        ours, beyond = entry["ours_ns"], entry["beyond_ns"]
        assert ours["first"] == pytest.approx(ours["further"] + sum(beyond.values()))
        assert entry["ratio"]["first"] == ours["first"] / entry["floor_ns"]["first"]
    # In order, both make the same corrections.
    assert entries[0]["test_error"] == entries[0]["floor_error"]


def test_counts_are_those_that_two_more_epochs_add(tmp_path):
    (tmp_path / "rows.npz").touch()
    fits = list(counters._fits(tmp_path))
    for number, (_, _, _, n_epochs) in enumerate(fits):
        counted = " ".join(str(7 + n_epochs * events) for events in range(1, 6))
        (tmp_path / f"callgrind.{number}").write_text(
            f"desc: Trigger: dump {number}\nevents: Ir Dr Dw D1mr D1mw\nsummary: {counted}\n"
        )
    (tmp_path / "callgrind").write_text("desc: Trigger: Program termination\n")
    dumps = counters._read_dumps(tmp_path)
    assert set(dumps) == set(fits)
    few, many = (dumps["rows", "C loop", True, n_epochs] for n_epochs in counters.EPOCHS)
    for events in few, many:
        events.update(DLmr=0, DLmw=0)
    per_epoch = counters._per_epoch(few, many, unit=10)
    assert per_epoch["instructions"] == pytest.approx(0.1)
    assert per_epoch["first-level misses"] == pytest.approx(0.9)


# ---------------------------------------------------------------------------- text as it comes


def test_a_corpus_is_renumbered_and_sorted_again():
    drawn = draw_corpus(TINY)
    unsorted = drawn.renumbered()
    assert not unsorted.X.has_sorted_indices
    np.testing.assert_array_equal(unsorted.X.data, drawn.X.data)
    # A word has one number in all rows, and its own.
    numbers = dict(zip(drawn.X.indices, unsorted.X.indices, strict=True))
    assert len(set(numbers.values())) == len(numbers)
    np.testing.assert_array_equal(unsorted.X.indices, [numbers[j] for j in drawn.X.indices])
    by_row = unsorted.with_sorted_rows()
    assert by_row.X.has_sorted_indices
    for own, other in ((unsorted.X, by_row.X), (unsorted.X_test, by_row.X_test)):
        np.testing.assert_array_equal(own.toarray(), other.toarray())


def test_a_share_of_the_labels_to_learn_from_is_wrong():
    drawn = draw_corpus(TINY)
    noisy = drawn.mislabelled(0.05)
    assert np.sum(noisy.y == -drawn.y) == 6
    assert np.sum(noisy.y == drawn.y) == 114
    np.testing.assert_array_equal(noisy.y_test, drawn.y_test)


@pytest.fixture(scope="module")
def some_text():
    return vectorized.read_texts(step=40)


def test_real_text_comes_unsorted_and_no_file_is_on_both_sides(some_text):
    assert not some_text.X.has_sorted_indices
    assert set(some_text.y) == {"numpy", "scipy", "sklearn"}
    documents = collect_sources(40)
    assert some_text.X.shape[0] + some_text.X_test.shape[0] == len(documents.texts)
    for text in documents.texts:
        assert re.match(r"\s*(async def|def|class) ", text)
        assert not GIVEAWAYS.search(text)
    assert any("assert" in text for text in documents.texts)


def test_text_is_raced_unsorted_and_sorted(some_text, capsys):
    each = {vectorized.UNSORTED: some_text, race.SORTED: some_text.with_sorted_rows()}
    races = race.race(each, vectorized.IN_LIFE, 1)
    race.show(some_text, races, 1)
    assert "x sorted" in capsys.readouterr().out
    found = {(entry["rows"], entry["contestant"]): entry for entry in races}
    assert len(found) == 2 * len(vectorized.IN_LIFE)
    for name in (*vectorized.OURS, vectorized.ONE_CALL):
        unsorted, by_row = (found[rows, name] for rows in each)
        assert unsorted["test_error"] == pytest.approx(by_row["test_error"], abs=0.02)
        assert unsorted["times_sorted"]["min"] == pytest.approx(
            unsorted["seconds"] / by_row["seconds"]
        )
        assert by_row["times_sorted"] == {"min": 1, "median": 1}
    own, call = (found["sorted", n] for n in (vectorized.ITS_FIT, vectorized.ONE_CALL))
    assert call["test_error"] == own["test_error"]
    assert call["times_baseline"]["min"] == pytest.approx(call["seconds"] / own["seconds"])
    parts = {"text": part_of({"races": races})}
    tables = charter_tables.render(charter_tables.select(parts))
    assert set(tables) == {"text", "order"}
    assert f"{some_text.X.shape[0]:,} x {some_text.X.shape[1]:,}, unsorted" in tables["text"]
    # Of sorted rows' time for each of ours; beside its own fit, twice; and beside scikit-learn.
    assert len(charter_aims.aims(parts)) == len(vectorized.OURS) + 2 + 1


def test_fit_csr_is_measured_against_the_estimator_that_it_makes():
    corpus = draw_corpus(replace(TINY, n_train=600))
    made = fit_csr(corpus.X, corpus.y, random_state=3)
    own = vectorized.make_default(3)
    assert type(made) is type(own)
    assert made.get_params() == own.get_params()


# ---------------------------------------------------------------------------- gathering

MEASURES = """
import json, sys
print("measuring")
out = sys.argv[sys.argv.index("--out") + 1]
json.dump({"arguments": sys.argv[1:]}, open(out, "w"))
"""
FAILS = "raise RuntimeError('no luck')"
CANNOT = """
import sys
print("first", "valgrind is missing", sep="\\n", file=sys.stderr)
sys.exit(2)
"""


@pytest.fixture
def parts(monkeypatch, tmp_path):
    """Parts that are soon over: one measures, one fails, one can't run here."""
    made = {}
    for name, code in (("counters", MEASURES), ("epoch", FAILS), ("ho", CANNOT)):
        script = tmp_path / f"{name}.py"
        script.write_text(code)
        made[name] = Part(name.title(), str(script))
    for module in charter, charter.charter_report:
        monkeypatch.setattr(module, "PARTS", made)
    return made


def _gathered(folder):
    return json.loads((folder / "charter.json").read_text())["parts"]


def test_parts_are_gathered_whatever_becomes_of_one(parts, tmp_path, capsys):
    parts["counters"] = replace(parts["counters"], quick=("--quick", "--hurry"))
    folder = tmp_path / "results"
    assert charter.main(["--quick", "--out", str(folder)]) == 1
    found = _gathered(folder)
    assert {name: part["status"] for name, part in found.items()} == {
        "counters": "measured", "epoch": "failed", "ho": "left out",
    }  # fmt: skip
    assert found["counters"]["report"]["arguments"][:2] == ["--quick", "--hurry"]
    assert found["counters"]["printed"] == "measuring\n"
    assert found["epoch"]["why"] == "RuntimeError: no luck"
    assert found["ho"]["why"] == "valgrind is missing"
    page = (folder / "charter.md").read_text()
    assert "`ho` is left out: valgrind is missing" in page
    assert "measuring" in page
    assert "ho: left out" in capsys.readouterr().out


def test_parts_that_are_not_asked_for_are_kept(parts, tmp_path):
    charter.main(["--quick", "--only", "counters", "--out", str(tmp_path)])
    before = _gathered(tmp_path)
    assert charter.main(["--only", "ho", "--out", str(tmp_path)]) == 0
    after = _gathered(tmp_path)
    assert list(after) == ["counters", "ho"]
    assert after["counters"] == before["counters"]


def test_an_interrupted_run_keeps_what_it_measured(parts, tmp_path, monkeypatch):
    def interrupted(name, part, quick, folder):
        if name == "epoch":
            raise KeyboardInterrupt
        return charter_run(name, part, quick, folder)

    charter_run = charter.run
    monkeypatch.setattr(charter, "run", interrupted)
    assert charter.main(["--out", str(tmp_path)]) == charter.INTERRUPTED
    assert list(_gathered(tmp_path)) == ["counters"]
    assert (tmp_path / "charter.md").exists()


# ---------------------------------------------------------------------------- the pages


def test_the_pages_have_the_tables_of_the_figures():
    figures = json.loads(doc_tables.EXTRACT.read_text())
    tables = charter_tables.render(figures["tables"])
    assert tables
    for page, on_page in doc_tables.pages(tables).items():
        text = page.read_text()
        assert on_page
        assert doc_tables.fill(text, on_page) == text


def test_the_headline_has_the_figures_of_its_table():
    entries = json.loads(doc_tables.EXTRACT.read_text())["tables"]["text"]["entries"]
    told = {
        entry["contestant"]: entry["times"]
        for entry in entries
        if (entry["shape"], entry["rows"]) == (vectorized.TEXT, vectorized.UNSORTED)
    }
    headline = re.search(r"- \*\*Fast\.\*\*(.*?)\n- ", doc_tables.README.read_text(), re.DOTALL)
    assert re.findall(r"([\d.]+) times", headline[1]) == [
        f"{told[name]:.1f}" for name in ("Perceptron, last", "Perceptron, average")
    ]


def test_tables_take_the_place_of_those_between_their_comments():
    text = "a\n<!-- table x -->\nold\n<!-- end of table x -->\nb\n"
    filled = doc_tables.fill(text, {"x": r"| new \1 |"})
    assert filled == "a\n<!-- table x -->\n\n| new \\1 |\n\n<!-- end of table x -->\nb\n"
    assert doc_tables.fill(filled, {"x": r"| new \1 |"}) == filled
    for spoilt in ("", text + text, text.replace("end of ", "")):
        with pytest.raises(ValueError, match="each once"):
            doc_tables.fill(spoilt, {"x": "new"})


def test_what_was_measured_in_a_hurry_is_not_told():
    def charter_of(quick):
        speed_ups = [{"name": "Perceptron, last", "n_labels": 8.0, "times": 1.9}]
        part = part_of({"threads": {"speed_ups": speed_ups}}, "new") | {"quick": quick}
        return {"machine": {"cpu": "new"}, "parts": {"growth": part}}

    of_old = {"machine": MACHINE | {"cpu": "old"}, "entries": []}
    earlier = {"tables": {"threads": of_old, "growth": of_old}}
    assert doc_tables.extract(charter_of(True), earlier) == earlier
    told = doc_tables.extract(charter_of(False), earlier)["tables"]
    assert told["threads"]["entries"][0]["times"] == 1.9
    # Each table has the machine that its own figures came from.
    tables = charter_tables.render(told)
    assert "Measured on new, 2 processors; numpy 2.0" in tables["threads"]
    assert "Measured on old, 2 processors" in tables["growth"]


# ---------------------------------------------------------------------------- asv


def _benchmarks(module):
    """The classes of a module. Its package has the name of the tool, which may be installed."""
    path = doc_tables.FOLDER / "asv" / f"{module}.py"
    spec = importlib.util.spec_from_file_location(f"followed_{module}", path)
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return [each for each in vars(loaded).values() if hasattr(each, "setup")]


@pytest.mark.parametrize("module", ["epochs", "files", "spaces"])
def test_what_asv_follows_can_be_run(module):
    for benchmark in _benchmarks(module):
        chosen = [values[0] for values in getattr(benchmark, "params", [])]
        for name in dir(benchmark):
            if name.startswith(("time_", "track_", "peakmem_")):
                instance = benchmark()
                instance.n_rows = 300
                instance.setup(*chosen)
                getattr(instance, name)(*chosen)
                getattr(instance, "teardown", lambda: None)()
