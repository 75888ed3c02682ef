"""Recipes: what figures come to, what is kept and run again, and what is shown of it."""

import json
import math
import re
from html.parser import HTMLParser

import pytest
from matplotlib.figure import Figure

from papers import run as running
from papers.__main__ import main
from papers.recipe import (
    ALMA,
    Allowed,
    Cell,
    Claim,
    Finding,
    Line,
    Picture,
    Recipe,
    Repeats,
    Table,
    Verdict,
    entry,
    incomparable,
    work,
)
from papers.report import (
    allowed_words,
    as_json,
    html_report,
    text_report,
)

CALLS = []
INTERRUPTED = set()


@pytest.fixture
def run(capsys):
    """Runs the command; what it wrote, once the exit code is what it should be."""

    def call(*args, code=0):
        try:
            found = main([str(arg) for arg in args])
        except SystemExit as ended:
            found = ended.code
        assert found == code
        return capsys.readouterr()

    return call


def measure(size, seed):
    """Done in this process: the tests run on one job."""
    if seed in INTERRUPTED:
        raise KeyboardInterrupt
    CALLS.append((size, seed))
    return {"figures": {"mean": size + seed}, "more": [size, 10 * size]}


ONE, TWO = work(measure, size=1), work(measure, size=2)


def draw(measured):
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([record["figures"]["mean"] for record in measured[ONE]])
    return figure


def parts(quick):
    cell = Cell("1.4", ONE, entry("figures", "mean"), Allowed(0.5), lambda records: "<noted>")
    other = Cell("7", None if quick else TWO, entry("more", 1), Allowed(relative=0.1))
    odd = Cell("100", ONE, entry("more", 0), incomparable("other data"))
    holds = Claim("One is small", (ONE,), lambda measured: Finding(True, "1 < 2"))
    fails = Claim("Two is small", (ONE,), lambda measured: Finding(False, "no"), "known")
    return (
        Table("A table", ("first", "second"), (Line("a", (cell, other)), Line("b", (None, odd)))),
        Picture("A picture", (ONE,), draw, (holds, fails)),
    )


RECIPE = Recipe(
    "tiny", ALMA, "Table 0", "Made up", "none <at all>", "Twice.", parts, Repeats(2, 3),
    remarks=("Nothing & nobody.",),
)  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    CALLS.clear()
    monkeypatch.setattr(running, "recipes", lambda: {"tiny": RECIPE})
    return RECIPE


def run_tiny(folder, quick=True):
    return running.run(running.choose(["tiny"]), quick=quick, n_jobs=1, folder=folder)


# -- figures ---------------------------------------------------------------------------------------


def verdict(printed, values, allowed):
    cell = Cell(printed, ONE, lambda records: values, allowed)
    return cell.compare([{}])


def test_a_figure_is_within_what_is_allowed_rounding_and_standard_errors():
    assert verdict("2.1", [2.15], Allowed()).verdict is Verdict.WITHIN
    assert verdict("2.1", [2.151], Allowed()).verdict is Verdict.OUTSIDE
    assert verdict("2.1", [2.3], Allowed(0.15)).verdict is Verdict.WITHIN
    assert verdict("1,000", [1030.0], Allowed(relative=0.03)).verdict is Verdict.WITHIN
    assert verdict("1,000", [1031.0], Allowed(relative=0.03)).verdict is Verdict.OUTSIDE
    assert verdict("5", [0.0], incomparable("why")).verdict is Verdict.INCOMPARABLE
    found = verdict("5", [5.0, 7.0, 9.0], Allowed(spread=0.25))
    assert found.measured == 7
    assert found.standard_error == pytest.approx(2 / math.sqrt(3))
    assert found.allowed == pytest.approx(0.25 * 2 + 0.5 + 2 * 2 / math.sqrt(3))
    assert found.difference == 2
    assert found.verdict is Verdict.WITHIN
    assert math.isnan(verdict("5", [5.0], Allowed()).standard_error)


# -- running ---------------------------------------------------------------------------------------


def test_work_is_done_once_and_kept(tiny, tmp_path):
    (first,) = run_tiny(tmp_path)
    assert CALLS == [(1, 0), (1, 1)]
    (again,) = run_tiny(tmp_path)
    assert CALLS == [(1, 0), (1, 1)]
    assert as_json(again) == as_json(first)
    (full,) = run_tiny(tmp_path, quick=False)
    assert CALLS[2:] == [(2, 0), (2, 1), (1, 2), (2, 2)]
    (_, first_line), (_, second_line) = full.parts[0].lines
    assert first_line[0].measured == 2
    assert first_line[0].verdict is Verdict.WITHIN
    assert first_line[1].verdict is Verdict.OUTSIDE
    assert second_line[1].verdict is Verdict.INCOMPARABLE
    assert not full.is_as_allowed
    assert [claim.verdict for claim in full.parts[1].claims] == [
        Verdict.HOLDS, Verdict.FORESEEN,
    ]  # fmt: skip


def test_interrupted_it_keeps_what_was_done(tiny, tmp_path):
    INTERRUPTED.add(1)
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tmp_path)
    assert CALLS == [(1, 0)]
    INTERRUPTED.clear()
    run_tiny(tmp_path)
    assert CALLS == [(1, 0), (1, 1)]


@pytest.mark.parametrize("text", [b"", b"\x80", b"no pickle"])
def test_a_record_that_was_cut_short_is_measured_again(tiny, tmp_path, text):
    (whole,) = run_tiny(tmp_path)
    CALLS.clear()
    next(tmp_path.rglob("output.pkl")).write_bytes(text)
    (again,) = run_tiny(tmp_path)
    assert len(CALLS) == 1
    assert as_json(again) == as_json(whole)


def test_data_not_at_hand_are_told(tiny, tmp_path, monkeypatch):
    recipe = Recipe(**{**vars(RECIPE), "needs": ("sonar",)})
    monkeypatch.setattr(running, "recipes", lambda: {"tiny": recipe})
    monkeypatch.setenv("SPARSEMARGIN_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    (outcome,) = run_tiny(tmp_path)
    assert not CALLS
    assert "python -m sparsemargin.datasets download sonar" in outcome.missing
    assert "NOT RUN: sonar.mines" in text_report(outcome, 100)


# -- reports ---------------------------------------------------------------------------------------


class Page(HTMLParser):
    """What a page holds: its text, its tags, and whether tags are closed."""

    VOID = frozenset(["meta", "img", "source", "br"])

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_page_shows_figures_claims_and_pictures_and_needs_nothing_else(tiny, tmp_path):
    outcomes = run_tiny(tmp_path, quick=False)
    html = html_report(outcomes, quick=False)
    page = Page(html)
    assert not page.open
    text = " ".join(" ".join(page.words).split())
    assert "Printed figures: 3, of which 1 within, 1 outside, 1 not comparable" in text
    assert "allowed in 1 cell: 0.5 allowed in 1 cell: 10 % of the printed figure" in text
    assert "not compared in 1 cell (other data)" in text
    assert "none <at all>" in text
    assert "Nothing & nobody." in text
    assert "<noted>" in text
    assert "2.00 ±0.58" in text
    assert "+0.60" in text
    addresses = [v for _, attrs in page.tags for k, v in attrs.items() if k in ("src", "srcset")]
    assert len(addresses) == 2
    assert addresses[0] != addresses[1]
    assert all(address.startswith("data:image/svg+xml;base64,") for address in addresses)
    links = [attrs["href"] for tag, attrs in page.tags if "href" in attrs]
    assert links == ["#tiny"]
    assert "http" not in re.sub(r"base64,[\w+/=]+", "", html)


def test_text_shows_figures_and_claims_and_fits_its_width(tiny, tmp_path):
    (outcome,) = run_tiny(tmp_path)
    wide, narrow = text_report(outcome, 200), text_report(outcome, 50)
    assert max(map(len, narrow.splitlines())) <= 50
    assert "1.4 1.50 ±0.50 +0.10 ✓ [<noted>]" in wide
    assert "not compared in 1 cell (other data)" in wide
    assert "✓ One is small: 1 < 2" in wide
    assert "○ Two is small: no (known beforehand: known)" in wide
    assert "Printed figures: 1 within, 1 not comparable, 1 not run" in wide
    assert "Statements: 1 confirmed, 1 known beforehand not to hold here" in wide
    for figure in ("±0.50", "[<noted>]", "–"):
        assert figure in narrow


@pytest.mark.parametrize(
    ("alike", "words"),
    [
        ([Allowed()] * 2, "allowed in 2 cells: no difference"),
        ([Allowed(0.6, why="other digits")], "allowed in 1 cell: 0.6 (other digits)"),
        (
            [Allowed(3.0, 0.025, spread=2.0)] * 4,
            "allowed in 4 cells: 3 or, if that is more, 2.5 % of the printed figure, "
            "and 2 standard deviations of one repeat",
        ),
    ],
)  # fmt: skip
def test_what_is_allowed_is_told(alike, words):
    assert allowed_words(alike) == words


def test_command_writes_page_and_figures(tiny, tmp_path, run):
    result = run("tiny", "--quick", "-o", tmp_path)
    assert "tiny: Gentile (2001), Table 0. Made up" in result.out
    assert "100%" in result.err
    report = json.loads((tmp_path / "report.json").read_text())
    (figures, _) = report["recipes"][0]["parts"]
    assert [figure["verdict"] for figure in figures["figures"]] == [
        "within", "not run", "not comparable",
    ]  # fmt: skip
    assert figures["figures"][0]["measured"] == 1.5
    assert Page((tmp_path / "report.html").read_text()).words
    run("tiny", "-o", tmp_path, code=1)


def test_command_lists_recipes_and_refuses_unknown_ones(tiny, tmp_path, run):
    assert "tiny" in run().out
    assert "tiny" in run("all", "--list").out
    assert "no recipe 'tiney'. Did you mean 'tiny'? Choose from: all, " in run("tiney", code=2).err
    assert "--jobs" in run("tiny", "--jobs", "0", code=2).err
    assert not list(tmp_path.iterdir())


# -- the recipes there are -------------------------------------------------------------------------


def test_names_and_works_of_all_recipes():
    for name, recipe in running.recipes().items():
        assert re.fullmatch(r"(alma|nips|voted|ho|cramma)-[a-z0-9]+", name), name
        for quick in (True, False):
            titles = [part.title for part in recipe.parts(quick)]
            assert len(set(titles)) == len(titles) > 0
            works = recipe.works(quick)
            assert works
            json.dumps([piece.arguments for piece, _ in works])
            for part in recipe.parts(quick):
                if isinstance(part, Table):
                    assert all(len(line.cells) == len(part.columns) for line in part.lines)
        assert recipe.repeats.quick <= recipe.repeats.full
        assert not recipe.data.endswith(".")
