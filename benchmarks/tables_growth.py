"""Tables of growth: exponents, and what a second thread saves."""

from typing import Any

from charter_table import Entries, Table
from measure import markdown_table

TOLD_GROWTHS = ("nonzeros", "features", "labels", "corrections")


def _select_growth(report: Any) -> Entries:
    return [
        {
            "what": name,
            "curve": curve["name"],
            "from": curve["sizes"][0],
            "to": curve["sizes"][-1],
            **curve["exponent"],
        }
        for name in TOLD_GROWTHS
        for curve in report.get(name, {"curves": []})["curves"]
    ]


def _render_growth(entries: Entries) -> str:
    rows = [
        [
            entry["what"], entry["curve"], f"{entry['from']:,.0f} to {entry['to']:,.0f}",
            f"{entry['slope']:.3f} ± {entry['standard_error']:.3f}",
        ]
        for entry in entries
    ]  # fmt: skip
    return markdown_table(["time grows with", "", "range", "to the power of"], rows)


def _select_threads(report: Any) -> Entries:
    return report.get("threads", {"speed_ups": []})["speed_ups"]


def _render_threads(entries: Entries) -> str:
    numbers = list(dict.fromkeys(entry["n_labels"] for entry in entries))
    names = dict.fromkeys(entry["name"] for entry in entries)
    rows = [
        [name, *(f"{entry['times']:.2f} x" for entry in entries if entry["name"] == name)]
        for name in names
    ]
    return markdown_table(["two threads", *(f"{number:,.0f} labels" for number in numbers)], rows)


TABLES = {
    "growth": Table("growth", _select_growth, _render_growth),
    "threads": Table("growth", _select_threads, _render_threads),
}
