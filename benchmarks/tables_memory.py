"""Tables of fits in memory: text as it comes, sorted rows, one row a call, beside the C loop."""

from typing import Any

from charter_table import Entries, Table, percent
from measure import markdown_table
from vectorized import ONE_CALL, OURS, UNSORTED

EPOCH_SHAPES = {
    "rcv1l": "RCV1 shape, 200,000 x 47,236",
    "news20": "news20 shape, 20,000 x 1,355,191",
}
EPOCH_NAMES = (*OURS, "C loop, shuffled")


def _select_epoch(report: Any) -> Entries:
    found = {(entry["shape"], entry["contestant"]): entry for entry in report["epoch"]
             if entry["dtype"] == "float64"}  # fmt: skip
    shapes = [shape for shape in EPOCH_SHAPES if (shape, EPOCH_NAMES[0]) in found]
    return [
        {
            "contestant": name,
            "baseline": found[shape, name]["baseline"],
            "shape": shape,
            "times": 1 / found[shape, name]["times_baseline"]["min"],
            "test_error": found[shape, name]["test_error"],
            "baseline_error": found[shape, found[shape, name]["baseline"]]["test_error"],
        }
        for name in EPOCH_NAMES
        for shape in shapes
    ]


def _render_epoch(entries: Entries) -> str:
    shapes = list(dict.fromkeys(entry["shape"] for entry in entries))
    headers = ["", "against"]
    for shape in shapes:
        headers += [f"{EPOCH_SHAPES[shape]}: speed", "test error %, theirs"]
    rows = []
    for name in dict.fromkeys(entry["contestant"] for entry in entries):
        own = {entry["shape"]: entry for entry in entries if entry["contestant"] == name}
        row = [name, own[shapes[0]]["baseline"]]
        for shape in shapes:
            entry = own[shape]
            errors = percent(entry["test_error"]), percent(entry["baseline_error"])
            row += [f"**{entry['times']:.1f} x**", ", ".join(errors)]
        rows.append(row)
    return markdown_table(headers, rows)


TEXT_SHAPES = {
    "text": "sources of three libraries",
    "rcv1m": "RCV1 shape",
    "rcv1m, 5% wrong": "RCV1 shape, 5 % of labels wrong",
}
TEXT_NAMES = (*OURS, ONE_CALL)


def _select_text(report: Any) -> Entries:
    found = {
        (entry["shape"], entry["rows"], entry["contestant"]): entry for entry in report["races"]
    }
    return [
        {key: entry[key] for key in ("shape", "rows", "n_samples", "n_features", "contestant",
                                     "baseline", "test_error")}
        | {"times": 1 / entry["times_baseline"]["min"], "of_sorted": entry["times_sorted"]["min"]}
        | {"baseline_error": found[shape, rows, entry["baseline"]]["test_error"]}
        for (shape, rows, name), entry in found.items()
        if shape in TEXT_SHAPES and name in TEXT_NAMES
    ]  # fmt: skip


def _render_text(entries: Entries) -> str:
    against = {entry["contestant"]: entry["baseline"] for entry in entries}
    headers = ["rows", *(f"{name}, against {theirs}" for name, theirs in against.items())]
    lines: dict[str, list[str]] = {}
    for entry in entries:
        size = f"{entry['n_samples']:,} x {entry['n_features']:,}"
        what = f"{TEXT_SHAPES[entry['shape']]}, {size}, {entry['rows']}"
        errors = percent(entry["test_error"]), percent(entry["baseline_error"])
        cell = f"**{entry['times']:.1f} x**: {errors[0]} ({errors[1]})"
        lines.setdefault(what, [what]).append(cell)
    return markdown_table(headers, lines.values())


def _render_order(entries: Entries) -> str:
    unsorted = [entry for entry in entries if entry["rows"] == UNSORTED]
    shapes = dict.fromkeys(entry["shape"] for entry in unsorted)
    headers = ["unsorted rows, of sorted rows' time", *(TEXT_SHAPES[shape] for shape in shapes)]
    lines: dict[str, list[str]] = {}
    for entry in unsorted:
        name = entry["contestant"]
        lines.setdefault(name, [name]).append(f"{entry['of_sorted']:.2f} x")
    return markdown_table(headers, lines.values())


def _select_one_row(report: Any) -> Entries:
    ours, theirs = "Perceptron, average", "sklearn SGD perceptron, average"
    found = {(entry["n_features"], entry["learner"]): entry for entry in report["one_row"]}
    return [
        {
            "call": call,
            "n_features": n_features,
            "us": found[n_features, ours][call]["median"],
            "sklearn_us": found[n_features, theirs][call]["median"],
        }
        for call in ("partial_fit", "decision_function")
        for n_features in dict.fromkeys(n for n, _ in found)
    ]


def _render_one_row(entries: Entries) -> str:
    widths = list(dict.fromkeys(entry["n_features"] for entry in entries))
    headers = ["one-row call, Perceptron, average; median"]
    for width in widths:
        headers += [f"{width:,} features", "`SGDClassifier(average=True)`"]
    calls = dict.fromkeys(entry["call"] for entry in entries)
    return markdown_table(
        headers,
        [
            [f"`{call}`", *(f"{entry[key]:,.0f} us" for entry in entries if entry["call"] == call
                            for key in ("us", "sklearn_us"))]
            for call in calls
        ],
    )  # fmt: skip


def _select_floor(report: Any) -> Entries:
    return [
        {
            "shape": entry["shape"],
            "dtype": entry["dtype"],
            "order": "shuffled" if entry["shuffled"] else "in order",
            "floor_ns": entry["floor_ns"]["further"],
            "first": entry["ratio"]["first"],
            "further": entry["ratio"]["further"],
        }
        for entry in report["epochs"]
    ]


def _render_floor(entries: Entries) -> str:
    headers = [
        "",
        "rows",
        "C loop, ns per nonzero",
        "a fit of one epoch, of its time",
        "a further epoch",
    ]
    rows = [
        [
            f"{entry['shape']}, {entry['dtype']}", entry["order"], f"{entry['floor_ns']:.2f}",
            f"{entry['first']:.2f} x", f"{entry['further']:.2f} x",
        ]
        for entry in entries
    ]  # fmt: skip
    return markdown_table(headers, rows)


TABLES = {
    "text": Table("text", _select_text, _render_text),
    "order": Table("text", _select_text, _render_order),
    "epoch": Table("epoch", _select_epoch, _render_epoch),
    "one-row": Table("epoch", _select_one_row, _render_one_row),
    "floor": Table("floor", _select_floor, _render_floor),
}
