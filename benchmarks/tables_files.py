"""The table of what is read from files."""

from typing import Any

from charter_table import Entries, Table, percent
from files_race import MEGABYTE
from measure import markdown_table

FILE_LINES = {
    "fit": ("fit_svmlight, Perceptron", "fit_svmlight, default (ALMA)"),
    "process": ("sparsemargin train",),
    "load": ("load_svmlight, 2 threads",),
}


def _select_files(report: Any) -> Entries:
    entries = [
        {
            "what": entry["contestant"],
            "seconds": entry["seconds"]["min"],
            "megabytes_per_second": entry["megabytes_per_second"],
            "times_vw": entry["times"].get("x vw", {}).get("min"),
            "times_sklearn": entry["times"].get("x sklearn", {}).get("min"),
            "test_error": entry["test_error"],
            "peak_bytes": entry["peak_bytes"],
        }
        for measurement, names in FILE_LINES.items()
        for entry in report.get(measurement, [])
        if entry["contestant"] in names
    ]
    cached = report.get("cache", [])
    return entries + [
        {
            "what": "a further epoch from the row cache",
            "seconds": entry["further"]["min"],
            "megabytes_per_second": entry["megabytes_per_second"]["further"],
            "times_vw": entry["times"].get("further"),
            "times_sklearn": None,
            "test_error": None,
            "peak_bytes": entry["peak_bytes"],
        }
        for entry in cached
        if entry["contestant"] == "Perceptron, rows in order"
    ]


def _render_files(entries: Entries) -> str:
    headers = [
        "", "seconds", "MB/s", "against vw", "against scikit-learn", "test error %", "peak MB",
    ]  # fmt: skip
    return markdown_table(
        headers,
        [
            [
                entry["what"], f"{entry['seconds']:.3f}",
                f"{entry['megabytes_per_second']:,.0f}",
                "" if entry["times_vw"] is None else f"**{entry['times_vw']:.1f} x**",
                "" if entry["times_sklearn"] is None else f"**{entry['times_sklearn']:.0f} x**",
                "" if entry["test_error"] is None else percent(entry["test_error"]),
                f"{entry['peak_bytes'] / MEGABYTE:.0f}",
            ]
            for entry in entries
        ],
    )  # fmt: skip


TABLES = {
    "files": Table("files", _select_files, _render_files),
}
