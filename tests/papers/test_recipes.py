"""Recipes: computed figures, stored and repeated results, and reports."""

import json
import re
from html import unescape

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
from papers.report import as_json, text_report

CALLS = []
INTERRUPTED = set()


def measure(size, seed):
    """Run in this process, because the tests use one job."""
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


def run_tiny(folder, quick=True):
    return running.run(running.choose(["tiny"]), quick=quick, n_jobs=1, folder=folder)


@pytest.mark.parametrize(("printed", "values", "allowed", "verdict"), [
    ("2.1", [2.15], Allowed(), Verdict.WITHIN), ("2.1", [2.151], Allowed(), Verdict.OUTSIDE),
    ("2.1", [2.3], Allowed(0.15), Verdict.WITHIN),
    ("1,000", [1030.0], Allowed(relative=0.03), Verdict.WITHIN),
    ("1,000", [1031.0], Allowed(relative=0.03), Verdict.OUTSIDE),
    ("5", [0.0], incomparable("why"), Verdict.INCOMPARABLE),
    # 0.25 standard deviations of 2, half a unit of rounding, two standard errors of 2 / sqrt(3).
    ("3.7", [5.0, 7.0, 9.0], Allowed(spread=0.25), Verdict.OUTSIDE),
    ("4.2", [5.0, 7.0, 9.0], Allowed(spread=0.25), Verdict.WITHIN),
])  # fmt: skip
def test_figures_agree_within_tolerance_and_rounding(printed, values, allowed, verdict):
    assert Cell(printed, ONE, lambda records: values, allowed).compare([{}]).verdict is verdict


def test_finished_work_is_reused_and_interrupted_work_repeated(tiny, tmp_path):
    INTERRUPTED.add(1)
    with pytest.raises(KeyboardInterrupt):
        run_tiny(tmp_path)
    assert CALLS == [(1, 0)]
    INTERRUPTED.clear()
    (first,), (again,) = run_tiny(tmp_path), run_tiny(tmp_path)
    assert CALLS == [(1, 0), (1, 1)]
    next(tmp_path.rglob("output.pkl")).write_bytes(b"\x80")
    (mended,) = run_tiny(tmp_path)
    assert len(CALLS) == 3
    assert as_json(again) == as_json(mended) == as_json(first)
    run_tiny(tmp_path, quick=False)
    assert CALLS[3:] == [(2, 0), (2, 1), (1, 2), (2, 2)]


def test_missing_data_is_reported(tiny, tmp_path, monkeypatch):
    recipe = Recipe(**{**vars(RECIPE), "needs": ("sonar",)})
    monkeypatch.setattr(running, "recipes", lambda: {"tiny": recipe})
    monkeypatch.setenv("SPARSEMARGIN_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    (outcome,) = run_tiny(tmp_path)
    assert not CALLS
    assert "NOT RUN: sonar.mines" in text_report(outcome, 100)


def test_command_writes_and_prints_figures_and_claims(tiny, tmp_path, capsys, monkeypatch):
    assert main(["tiny", "-o", str(tmp_path)]) == 1
    (told,) = json.loads((tmp_path / "report.json").read_text())["recipes"]
    figures = told["parts"][0]["figures"]
    assert [each["verdict"] for each in figures] == ["within", "outside", "not comparable"]
    assert figures[0]["measured"] == 2
    html = (tmp_path / "report.html").read_text()
    text = " ".join(unescape(re.sub("<[^>]*>", " ", html)).split())
    for words in (
        "Printed figures: 3, of which 1 within, 1 outside, 1 not comparable",
        "allowed in 1 cell: 0.5 allowed in 1 cell: 10 % of the printed figure",
        "not compared in 1 cell (other data)", "none <at all>", "Nothing & nobody.", "<noted>",
        "2.00 ±0.58", "+0.60",
    ):  # fmt: skip
        assert words in text
    addresses = re.findall(r'\bsrc(?:set)?="data:image/svg\+xml;base64,([\w+/=]+)"', html)
    assert len(set(addresses)) == len(addresses) == 2
    assert re.findall('href="(.*?)"', html) == ["#tiny"]
    assert "http" not in re.sub(r"base64,[\w+/=]+", "", html)
    # The width of the output is that of the terminal.
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    assert main(["tiny", "--quick", "-o", str(tmp_path)]) == 0
    wide = capsys.readouterr().out
    for words in (
        "tiny: Gentile (2001), Table 0. Made up",
        "1.4 1.50 ±0.50 +0.10 (≤1.55) ✓ [<noted>]", "✗ outside",
        "not compared in 1 cell (other data)",
        "✓ One is small: 1 < 2", "○ Two is small: no (known beforehand: known)",
        "Printed figures: 1 within, 1 not comparable, 1 not run",
        "Statements: 1 confirmed, 1 known beforehand not to hold here",
    ):  # fmt: skip
        assert words in wide
    (outcome,) = run_tiny(tmp_path)
    narrow = text_report(outcome, 50)
    assert max(map(len, narrow.splitlines())) <= 50
    assert "[<noted>]" in narrow


def test_command_lists_recipes_and_rejects_unknown_ones(tiny, capsys):
    for arguments in [], ["all", "--list"]:
        assert main(arguments) == 0
        assert "tiny" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="2"):
        main(["tiney"])
    assert "Did you mean 'tiny'?" in capsys.readouterr().err


def test_names_and_works_of_all_recipes():
    for name, recipe in running.recipes().items():
        assert re.fullmatch(r"(alma|nips|voted|ho|cramma)-[a-z0-9]+", name), name
        for quick in (True, False):
            parts = recipe.parts(quick)
            assert len({part.title for part in parts}) == len(parts) > 0
            assert json.dumps([piece.arguments for piece, _ in recipe.works(quick)]) != "[]"
        assert recipe.repeats.quick <= recipe.repeats.full
