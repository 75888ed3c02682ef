"""Tables of growth: exponents, and what a second thread saves."""

from collections.abc import Sequence
from typing import Any

from charter_table import Entries, Table
from measure import markdown_table

from sparsemargin.evaluation import growth_exponent

TOLD_GROWTHS = ("nonzeros", "features", "labels", "corrections")


def _select_growth(report: Any) -> Entries:
    return [
        _entry(name, curve["name"], curve["sizes"], curve["exponent"])
        for name in TOLD_GROWTHS
        for curve in report.get(name, {"curves": []})["curves"]
    ]


def _select_mistakes(report: Any) -> Entries:
    return [
        _entry("nonzeros of the mistakes", f"a mistake, {name}", growth["nonzeros"],
               growth["exponent"])
        for name, growth in report.get("growth", {}).items()
    ]  # fmt: skip


def _select_kernel_rows(report: Any) -> Entries:
    entries = []
    for results in zip(*report["growth"], strict=True):
        sizes = [each["n_rows"] for each in results]
        for step in ("fit", "predict"):
            name = f"{step}, {results[0]['contestant']}, threads: {results[0]['n_jobs']}"
            fitted = growth_exponent(sizes, [each[step] for each in results])
            entries.append(_entry("training rows", name, sizes, fitted._asdict()))
    return entries


def _entry(
    what: str, name: str, sizes: Sequence[float], fitted: dict[str, float]
) -> dict[str, Any]:
    return {"what": what, "curve": name, "from": sizes[0], "to": sizes[-1], **fitted}


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
    "growth-mistakes": Table("ho", _select_mistakes, _render_growth),
    "growth-kernels": Table("kernels", _select_kernel_rows, _render_growth),
    "threads": Table("growth", _select_threads, _render_threads),
}
