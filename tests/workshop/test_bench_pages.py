"""The timing of the benchmarks, and the figures on the pages."""

import json
import os
import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import markdown_tables
import probabilities
import scale
import tables
import texts
import timing


def test_contestants_take_turns_in_every_round():
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


@pytest.mark.parametrize(("given", "out"), [
    ([], "results/epoch.json"), (["--quick"], "results/quick/epoch.json"),
    (["--quick", "--out", "results/epoch.json"], "results/epoch.json"),
])  # fmt: skip
def test_quick_run_does_not_overwrite_full_results(given, out):
    parser = timing.parser_of("words", "results/epoch.json")
    parser.add_argument("--quick", action="store_true")
    assert parser.parse_args(given).out == Path(out)


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizers take memory, too")
@pytest.mark.skipif(not timing.STATUS.exists(), reason="the system doesn't tell peaks")
def test_memory_of_a_call_is_measured():
    held = timing.added_by(lambda: None, lambda: np.ones(25_000_000))
    # The system counts resident pages in batches of some dozens.
    assert 199e6 < held["added_bytes"] < 230e6
    assert timing.added_by(lambda: None, lambda: None)["added_bytes"] < 10e6


def test_pages_have_the_tables_of_the_stored_figures(tmp_path):
    figures = json.loads(tables.EXTRACT.read_text())
    pages = tables.pages(tables.render(figures["tables"]))
    pages[scale.PAGE] = scale.render(scale.figures_of(scale.FIGURES))
    assert set(pages[scale.PAGE]) == set(scale.TABLES)
    for page, on_page in pages.items():
        text = page.read_text()
        assert on_page
        assert markdown_tables.fill(text, on_page) == text
    for modules, page in ((scale,), scale.PAGE), ((tables, probabilities), tables.ACCURACY):
        folder = tmp_path / page.stem
        folder.mkdir()
        for module in modules:
            module.draw_pictures(folder)
        drawn = {path.name for path in folder.glob("*-light.svg")}
        assert {*re.findall(r"\]\(\.\./_static/(\S+\.svg)\)", page.read_text())} == drawn
    scale.write(tmp_path / "scale.json", parts := scale.read(scale.FIGURES))
    assert scale.read(tmp_path / "scale.json") == parts
    kept, written = (path.read_text() for path in (scale.FIGURES, tmp_path / "scale.json"))
    assert kept.partition("\n")[2] == written.partition("\n")[2]


def test_short_performance_page_quotes_the_full_page():
    of_users = tables.PERFORMANCE.parents[1] / "performance.md"
    told = re.findall(r"\| \*\*([\d.]+(?: x| us)?)\*\*", of_users.read_text())
    found = re.findall(r"[\d.]+(?: x| us)?", tables.PERFORMANCE.read_text())
    assert len(told) == 6
    assert set(told) <= set(found)


def test_headline_agrees_with_the_stored_figures():
    headline = " ".join(tables.README.read_text().partition("```")[0].split())
    sets = json.loads(texts.FIGURES.read_text())["sets"]
    ours, theirs = "fit_text(texts, y)", "LinearSVC(), words and pairs"
    large = sets[texts.LARGE]
    for of, unit in ("error", "%"), ("seconds", "s"):
        first, second = (f"{large[name][of]:.1f} {unit}" for name in (ours, theirs))
        assert f"{first} against {second}" in headline
    assert all(figures[ours]["error"] < figures[theirs]["error"] for figures in sets.values())
    small = [sum(sets[of][name]["seconds"] for of in texts.SMALL) for name in (ours, theirs)]
    assert small[0] < small[1]
    ratio = large[theirs]["seconds"] / large[ours]["seconds"]
    assert (
        f"takes {ratio:.1f} times as long"
        in (tables.PERFORMANCE.parents[1] / "index.md").read_text()
    )


def test_names_on_the_chart_of_texts_neither_overlap_nor_leave_it():
    figure = texts.draw(json.loads(texts.FIGURES.read_text())["sets"])
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    (axes,) = figure.axes
    boxes = [name.get_window_extent(renderer) for name in axes.texts]
    assert len(boxes) == len(axes.lines) > 1
    assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
    left, right = axes.bbox.x0, figure.bbox.x1
    assert all(left < box.x0 and box.x1 < right for box in boxes)
    marks = [line.get_window_extent(renderer) for line in axes.lines]
    assert not any(name.overlaps(mark) for name in boxes for mark in marks)


def test_chart_and_table_of_texts_match_the_figures(tmp_path, monkeypatch):
    kept = json.loads(texts.FIGURES.read_text())
    monkeypatch.setattr(texts, "PICTURES", tmp_path)
    page, names = tmp_path / "page", ("texts", "texts-apart")
    page.write_text(
        "\n".join(f"<!-- table {name} -->\n<!-- end of table {name} -->" for name in names)
    )
    monkeypatch.setattr(texts, "ACCURACY", page)
    texts.show(kept)
    for name in names:
        filled = page.read_text().partition(f"<!-- table {name} -->")[2].partition("<!--")[0]
        assert filled in tables.ACCURACY.read_text()
    for ground in ("light", "dark"):
        name = f"texts-{ground}.svg"
        assert f"docs/_static/{name}" in tables.README.read_text()
        assert (tables.FOLDER.parent / "docs" / "_static" / name).stat().st_size < 100_000
        assert (tmp_path / name).exists()
