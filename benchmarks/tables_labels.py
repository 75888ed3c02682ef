"""Tables of many labels: the race, and the topics of RCV1."""

from typing import Any

from charter_table import Entries, Table, percent
from label_race import FLOOR, OVR
from measure import markdown_table


def _select_labels(report: Any) -> Entries:
    race = report["race"] or {"fits": [], "predictions": []}
    predictions = {(entry["contestant"], entry["n_jobs"]): entry for entry in race["predictions"]}
    return [
        {
            "contestant": entry["contestant"],
            "n_jobs": entry["n_jobs"],
            "ns": entry["ns"]["min"],
            "times_ovr": entry["times_ovr"],
            "of_floor": entry["of_floor"],
            "hamming_error": entry["hamming_error"],
            "micro_f1": entry["micro_f1"],
            "predict_times": predictions[entry["contestant"], entry["n_jobs"]]["times_ovr"],
        }
        for entry in race["fits"]
    ]


def _render_labels(entries: Entries) -> str:
    headers = [
        "", "threads", "ns per nonzero, label and epoch", f"against {OVR}", "of the C sweep's time",
        "label errors %", "micro F1 %", f"predicting, against {OVR}",
    ]  # fmt: skip
    return markdown_table(
        headers,
        [
            [
                entry["contestant"], str(entry["n_jobs"]), f"{entry['ns']:.3f}",
                "" if entry["contestant"] == OVR else f"**{entry['times_ovr']:.1f} x**",
                "" if entry["contestant"] == FLOOR else f"{entry['of_floor']:.2f}",
                percent(entry["hamming_error"]), percent(entry["micro_f1"], 1),
                "" if entry["contestant"] == OVR else f"{entry['predict_times']:.1f} x",
            ]
            for entry in entries
        ],
    )  # fmt: skip


def _select_topics(report: Any) -> Entries:
    return (report["rcv1"] or {"models": []})["models"]


def _render_topics(entries: Entries) -> str:
    rows = [
        [
            entry["contestant"], percent(entry["micro_f1"], 1), percent(entry["macro_f1"], 1),
            f"{entry['fit_seconds']:.2f}", f"{entry['predict_seconds']:.3f}",
        ]
        for entry in entries
    ]  # fmt: skip
    return markdown_table(["", "micro F1 %", "macro F1 %", "fit, s", "predict, s"], rows)


TABLES = {
    "labels": Table("labels", _select_labels, _render_labels),
    "topics": Table("labels", _select_topics, _render_topics),
}
