"""The table of kernels on MNIST, beside SVC."""

from typing import Any

from charter_table import Entries, Table
from kernel_contest import ALMA_4, ALMA_6, SVC_RAW, SVC_UNIT
from measure import markdown_table

KERNEL_NAMES = {
    ALMA_4: "ALMA, d = 4, one epoch",
    SVC_RAW: "`SVC`, d = 4",
    ALMA_6: "ALMA, d = 6, three epochs",
    SVC_UNIT: "`SVC`, d = 4, rows normalised, its best seen",
}


def _select_kernels(report: Any) -> Entries:
    return [
        {
            "contestant": entry["contestant"],
            "n_jobs": entry["n_jobs"],
            **{key: entry[key] for key in ("fit", "predict", "error", "support", "peak_bytes")},
            "fit_times": entry["ratios"]["fit"],
            "predict_times": entry["ratios"]["predict"],
        }
        for entry in [*report["growth"][-1], *report["three epochs"]]
    ]


def _render_kernels(entries: Entries) -> str:
    headers = [
        "", "threads", "fit, s", "against `SVC`", "predict 10,000, s", "against `SVC`",
        "test error %", "support rows", "peak MB",
    ]  # fmt: skip
    return markdown_table(
        headers,
        [
            [
                KERNEL_NAMES[entry["contestant"]], str(entry["n_jobs"]), f"{entry['fit']:.1f}",
                *_against_svc(entry, "fit_times"), f"{entry['predict']:.2f}",
                *_against_svc(entry, "predict_times"), f"{entry['error']:.2f}",
                f"{entry['support']:,}", f"{entry['peak_bytes'] / 2**20:.0f}",
            ]
            for entry in entries
        ],
    )  # fmt: skip


def _against_svc(entry: dict[str, Any], key: str) -> list[str]:
    return ["" if entry["contestant"] in (SVC_RAW, SVC_UNIT) else f"**{entry[key]:.0f} x**"]


TABLES = {
    "kernels": Table("kernels", _select_kernels, _render_kernels),
}
