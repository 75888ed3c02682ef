"""What gathers and tells the benchmarks' figures: cells, tables, aims, the charter, the pages."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import charter
import scale
import tables
import timing

MACHINE = {"cpu": "some", "cpus": 2, "numpy": "2.0", "scipy": "1.0", "scikit-learn": "1.0"}


def part_of(report, cpu="some"):
    """A part of the charter, as it is after a full run on a machine."""
    return {"quick": False, "report": report | {"machine": MACHINE | {"cpu": cpu}}}


def test_contestants_take_turns_and_are_told_round_by_round():
    order = []
    calls = {
        name: lambda number, name=name: lambda: order.append(name) or (name, number)
        for name in "abc"
    }
    seconds, told = timing.race(calls, 5, lambda name, result: result)
    rounds = {tuple(order[i : i + 3]) for i in range(0, 15, 3)}
    assert len(rounds) > 1
    assert all(sorted(each) == list("abc") for each in rounds)
    assert told == {name: [(name, number) for number in range(5)] for name in "abc"}
    assert all(len(each) == 5 and min(each) >= 0 for each in seconds.values())
    found = timing.minimum_and_median([2, 5, 4])
    assert timing.ratios({"min": 6, "median": 8}, found) == {"min": 3, "median": 2}


@pytest.mark.skipif(not timing.STATUS.exists(), reason="the system doesn't tell peaks")
def test_memory_is_that_of_the_call():
    held = timing.added_by(lambda: None, lambda: np.ones(25_000_000))
    assert 200e6 < held["added_bytes"] < 230e6
    assert timing.added_by(lambda: None, lambda: None)["added_bytes"] < 10e6


def test_tables_are_laid_out_with_units_and_what_is_missing():
    entry = {"share": 0.12345, "s": 0.00125, "bytes": 3 * 2**20, "of": {"min": 2}, "none": None}
    template = "{share:.2%} {s:.2m} {s:,.1u} {s:.0n} {bytes:.1M} {bytes:.2D} {of[min]:.1f}"
    assert tables.cell(template, entry) == "12.35 1.25 1,250.0 1250000 3.0 3.15 2.0"
    for template in ("{none:.2f}", "{none[min]:.2f} x", lambda entry: entry["none"]):
        assert tables.cell(template, entry, "-") == "-"
    with pytest.raises(KeyError):
        tables.cell("{misspelt}", entry)
    entries = [dict(zip("anv", each, strict=True)) for each in (("x", 2, 1.25), ("x", 10, 3.5))]
    entries.append({"a": "y", "n": 10, "v": None})
    rows = [entry | {"of": {"s": 0.5}, "seconds": [1]} for entry in entries]
    assert timing.text_table(rows).splitlines() == [
        "of s: 0.5", "", "a   n     v", "-  --  ----", "x   2  1.25", "x  10   3.5", "y  10     -",
    ]  # fmt: skip
    told = tables.pivot([("who", "{a}")], "n", [("of {n}", "{v:.1f}"), ("twice", "{n}")])(entries)
    assert told.splitlines() == [
        "| who | of 2 | twice | of 10 | twice |", "| --- | --- | --- | --- | --- |",
        "| x | 1.2 | 2 | 3.5 | 10 |", "| y |  |  |  | 10 |",
    ]  # fmt: skip


def test_tables_take_the_place_of_those_between_their_comments():
    text = "a\n<!-- table x -->\nold\n<!-- end of table x -->\nb\n"
    filled = tables.fill(text, {"x": r"| new \1 |"})
    assert filled == "a\n<!-- table x -->\n\n| new \\1 |\n\n<!-- end of table x -->\nb\n"
    assert tables.fill(filled, {"x": r"| new \1 |"}) == filled
    for spoilt in ("", text + text, text.replace("end of ", "")):
        with pytest.raises(ValueError, match="each once"):
            tables.fill(spoilt, {"x": "new"})


def test_the_pages_have_the_tables_of_the_figures(tmp_path):
    figures = json.loads(tables.EXTRACT.read_text())
    pages = tables.pages(tables.render(figures["tables"]))
    pages[scale.PAGE] = scale.render(scale.figures_of(scale.read(scale.FIGURES)))
    assert set(pages[scale.PAGE]) == set(scale.TABLES)
    for page, on_page in pages.items():
        text = page.read_text()
        assert on_page
        assert tables.fill(text, on_page) == text
    scale.draw_pictures(tmp_path)
    drawn = sorted(f"pictures/{path.name}" for path in tmp_path.glob("*.svg"))
    assert sorted(re.findall(r"\{image\} (\S+)", scale.PAGE.read_text())) == drawn
    scale.write(tmp_path / "scale.json", parts := scale.read(scale.FIGURES))
    assert scale.read(tmp_path / "scale.json") == parts
    kept, written = (path.read_text() for path in (scale.FIGURES, tmp_path / "scale.json"))
    assert kept.partition("\n")[2] == written.partition("\n")[2]


def test_the_headline_has_the_figures_of_its_table():
    entries = json.loads(tables.EXTRACT.read_text())["tables"]["text"]["entries"]
    told = {
        entry["contestant"]: entry["times"]
        for entry in entries
        if (entry["shape"], entry["rows"]) == ("text", "unsorted")
    }
    headline = re.search(r"- \*\*Fast\.\*\*(.*?)\n- ", tables.README.read_text(), re.DOTALL)
    assert re.findall(r"([\d.]+) times", headline[1]) == [
        f"{told[name]:.1f}" for name in ("Perceptron, last", "Perceptron, average")
    ]


def test_what_was_measured_in_a_hurry_is_not_told():
    def charter_of(quick):
        speed_ups = [{"name": "Perceptron, last", "n_labels": 8.0, "times": 1.9}]
        part = part_of({"threads": {"speed_ups": speed_ups}}, "new") | {"quick": quick}
        return {"machine": {"cpu": "new"}, "parts": {"growth": part}}

    of_old = {"machine": MACHINE | {"cpu": "old"}, "entries": []}
    earlier = {"tables": {"threads": of_old, "growth": of_old}}
    assert tables.extract(charter_of(True), earlier) == earlier
    told = tables.extract(charter_of(False), earlier)["tables"]
    assert told["threads"]["entries"][0]["times"] == 1.9
    # Each table has the machine that its own figures came from.
    rendered = tables.render(told)
    assert "Measured on new, 2 processors; numpy 2.0" in rendered["threads"]
    assert "Measured on old, 2 processors" in rendered["growth"]


def test_aims_are_judged_by_the_figures():
    def fit(name, vw):
        times = {"x vw": {"min": vw}, "x sklearn": {"min": 29.9}} if vw else {}
        return {"contestant": name, "times": times, "peak_bytes": 100e6}

    def curve(name, slope):
        return {"name": name, "exponent": {"slope": slope}}

    process = {"contestant": "sparsemargin train", "times": {}, "peak_bytes": 50e6}
    twice = {"contestant": "sparsemargin train, twice the text", "peak_bytes": 55e6}
    nonzeros = [("Perceptron, last", 0.9), ("Perceptron, last, random labels", 0.9)]
    nonzeros += [("C loop, shuffled", 2.0)]
    parts = {
        "files": part_of({"fit": [fit(charter.FIT, 3), fit(charter.DEFAULT, None)],
                          "process": [process, twice]}),
        "growth": part_of({"nonzeros": {"curves": [curve(*each) for each in nonzeros]}}),
        "ho": part_of({"race": [{"contestant": "HO", "aim": 2.5, "times_linear_svc": {"min": 2.6}},
                                {"contestant": "SO", "aim": None}]}),
    }  # fmt: skip
    assert charter.aims(parts) == [
        ["time against nonzeros, Perceptron, last: exponent", "<= 1.05", "0.900", "reached"],
        ["time against nonzeros, Perceptron, last, random labels: exponent's gap to 1", "<= 0.05",
         "0.100", "**missed**"],
        [f"{charter.FIT}: times vw", ">= 3", "3.00", "reached"],
        [f"{charter.DEFAULT}: times vw", ">= 3", "-", "not measured"],
        [f"{charter.FIT}: times load_svmlight_file + SGD", ">= 30", "29.90", "**missed**"],
        [f"{charter.DEFAULT}: times load_svmlight_file + SGD", ">= 30", "-", "not measured"],
        [f"{charter.FIT}: peak MB", "<= 120", "100.0", "reached"],
        ["sparsemargin train: peak MB", "<= 120", "50.0", "reached"],
        ["sparsemargin train: times vw", ">= 1", "-", "not measured"],
        ["sparsemargin train, twice the text: peak grows by %", "<= 5", "10.0", "**missed**"],
        ["HO: of LinearSVC's time", "<= 2.5", "2.60", "**missed**"],
    ]  # fmt: skip


SCRIPTS = {
    "margin": """import json, sys; print("measuring")
json.dump({"arguments": sys.argv[1:]}, open(sys.argv[-1], "w"))""",
    "epoch": "raise RuntimeError('no luck')",
    "ho": "import sys; print('first\\nvalgrind is missing', file=sys.stderr); sys.exit(2)",
}


def test_parts_are_gathered_whatever_becomes_of_one(monkeypatch, tmp_path):
    made = {}
    for name, code in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(code)
        made[name] = charter.Part(name.title(), str(tmp_path / f"{name}.py"), ("--always",))
    monkeypatch.setattr(charter, "PARTS", made)
    folder = tmp_path / "results"
    assert charter.main(["--quick", "--out", str(folder)]) == 1
    found = json.loads((folder / "charter.json").read_text())["parts"]
    assert {name: part["status"] for name, part in found.items()} == {
        "margin": "measured", "epoch": "failed", "ho": "left out",
    }  # fmt: skip
    assert found["margin"]["report"]["arguments"][:2] == ["--always", "--quick"]
    assert found["margin"]["printed"] == "measuring\n"
    assert found["epoch"]["why"] == "RuntimeError: no luck"
    page = (folder / "charter.md").read_text()
    assert "`ho` is left out: valgrind is missing" in page
    assert "measuring" in page
    # Parts that are not asked for again are kept.
    assert charter.main(["--only", "ho", "--out", str(folder)]) == 0
    again = json.loads((folder / "charter.json").read_text())["parts"]
    assert list(again) == list(found)
    assert again["margin"] == found["margin"]

    def interrupted(name, quick, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(charter, "run", interrupted)
    assert charter.main(["--out", str(folder)]) == charter.INTERRUPTED
    assert json.loads((folder / "charter.json").read_text())["parts"] == again
