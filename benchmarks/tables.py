"""Tables of the documentation, and the picture of the page on accuracy.

As a script it fills the tables of the pages on performance, accuracy and genomes from the results
of the charter. Their figures are kept in charter.json next to this file, each table's with the
machine of the measurement. Tables whose parts are missing in the charter, or come from a quick run,
are not changed.

    python benchmarks/tables.py [--charter results/charter.json]
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markdown_tables import Cell, Entry, cell, fill_page, markdown, pairs, pivot
from matplotlib.figure import Figure
from timing import FOLDER, replace_text

from papers.curves import scale_log
from sparsemargin.plotting import theme
from sparsemargin.plotting.style import line_style

EXTRACT = FOLDER / "charter.json"
README = FOLDER.parent / "README.md"
HIGHER_ORDER = FOLDER.parent / "docs" / "algorithms" / "higher_order.md"
PERFORMANCE = FOLDER.parent / "docs" / "development" / "performance.md"
ACCURACY, GENOMES = (
    FOLDER.parent / "docs" / "guide" / f"{of}.md" for of in ("measurements", "genomes")
)

OURS = ("Perceptron, last", "Perceptron, average", "p-norm p=6, average", "ALMA p=2, average")
ONE_CALL = "fit_csr(X, y)"
OVR = "OneVsRest(Perceptron)"
SHAPES = {
    "rcv1l": "RCV1 shape, 200,000 x 47,236", "news20": "news20 shape, 20,000 x 1,355,191",
    "text": "sources of three libraries", "rcv1m": "RCV1 shape",
    "rcv1m, 5% wrong": "RCV1 shape, 5 % of labels wrong",
}  # fmt: skip
KERNELS = {
    "ALMA d=4, one epoch": "ALMA, d = 4, one epoch",
    "SVC d=4": "`SVC`, d = 4",
    "ALMA d=6, three epochs": "ALMA, d = 6, three epochs",
    "SVC d=4, rows normalised": "`SVC`, d = 4, rows normalised, its best seen",
}
FILES = {
    "fit": ("fit_svmlight, Perceptron", "fit_svmlight, default (AROW)"),
    "process": ("sparsemargin train",),
    "load": ("load_svmlight, 2 threads",),
}
#: Contestants on genomes that the page omits: a similar one has a mean error that is not higher.
UNTOLD = r"NearestCentroid|Higher-order|ALMA|alpha=None|^`([HS]|L|R).*standardised"
#: The data sets of the claims.
CLAIMED = {
    "topics of even rank": "ten RCV1 topics",
    "Zipf text, 0 % wrong": "generated text", "Zipf text, 5 % wrong": "5 % of labels wrong",
    "Zipf text, 15 % wrong": "15 % wrong",
}  # fmt: skip
TIMED = "Zipf text, 5 % wrong"
GROWTHS = ("nonzeros", "features", "labels", "corrections")


class Table(NamedTuple):
    """A table of a part of the charter: `select` chooses the figures to keep, `render` formats
    them."""

    part: str
    caption: str
    select: Callable[[Any], list[Entry]]
    render: Callable[[Iterable[Any]], str]


def at(entry: Any, path: str) -> Any:
    """The value at the end of a path of keys; None if there is none."""
    for key in path.split("/"):
        entry = (entry or {}).get(key)
    return entry


def _picked(entries: Iterable[Entry], *keys: str, **paths: str) -> list[Entry]:
    """Select the values of `keys` from each entry, and those at `paths` under new names."""
    return [
        {key: entry[key] for key in keys} | {name: at(entry, path) for name, path in paths.items()}
        for entry in entries
    ]


def _speeds(entries: list[Entry], names: Sequence[str]) -> list[Entry]:
    """Speeds and errors of some contestants, with those of their baselines."""
    errors = {(e["shape"], e["rows"], e["contestant"]): e["test_error"] for e in entries}
    keys = "shape", "rows", "n_samples", "n_features", "contestant", "baseline", "test_error"
    return [
        {key: e[key] for key in keys}
        | {"times": 1 / e["times_baseline"]["min"], "of_sorted": e["times_sorted"]["min"]}
        | {"baseline_error": errors[e["shape"], e["rows"], e["baseline"]]}
        for name in names
        for e in entries
        if e["contestant"] == name and e["shape"] in SHAPES
    ]


def _select_text(report: Any) -> list[Entry]:
    return _speeds(report["races"], (*OURS, ONE_CALL))


def _select_claims(report: Any) -> list[Entry]:
    """The results of each contestant on all data."""
    sets = {data: {each["contestant"]: each for each in report["claims"][data]} for data in CLAIMED}
    return [
        {"contestant": name} | {data: of.get(name) for data, of in sets.items()}
        for name in sets[TIMED]
    ]


def _claims(entries: Iterable[Entry]) -> str:
    """Test errors, the lowest in bold, with the standard errors, and times."""
    rows = list(entries)

    def error_on(data: str) -> Cell:
        least = min(each[data]["error"] for each in rows if each[data])

        def of(entry: Entry) -> str | None:
            if (found := entry[data]) is None:
                return None
            text = f"{found['error']:.3f}"
            off = f"±{found['standard_error']:.3f}" * (found["less_by_ours"] != 0)
            return (f"**{text}**" if found["error"] == least else text) + off

        return of

    columns = [("test error, %", "{contestant}")]
    columns += [(header, error_on(data)) for data, header in CLAIMED.items()]
    times = (("time, topics", "topics of even rank"), ("time, 5 % wrong", TIMED))
    columns += [(header, f"{{{data}[of_svc_seconds]:.2f}}") for header, data in times]
    return markdown(columns)(rows)


def draw_pictures(folder: Path) -> None:
    """Draw error against time of the claims, on a light and on a dark background."""
    entries = json.loads(EXTRACT.read_text())["tables"]["claims"]["entries"]
    for ground in ("light", "dark"):
        with theme(ground):
            _draw(entries).savefig(folder / f"claims-{ground}.svg", metadata={"Date": None})


def _draw(entries: list[Entry]) -> Figure:
    """Draw a panel for each data set that all contestants were tried on."""
    panels = Figure(figsize=(3.1 * len(CLAIMED), 3.4), layout="constrained")
    for (data, title), axes in zip(CLAIMED.items(), panels.subplots(1, len(CLAIMED)), strict=True):
        for entry in entries:
            x, y = entry[data]["of_svc_seconds"], entry[data]["error"]
            style = line_style(axes, 1, {"linestyle": "", "markersize": 8})
            axes.plot(x, y, label=entry["contestant"], **style)
        scale_log(axes)
        axes.set(title=title, xlabel="time, relative to LinearSVC()")
        axes.margins(0.12)
    panels.axes[0].set_ylabel("test error (%)")
    handles, labels = panels.axes[0].get_legend_handles_labels()
    panels.legend(handles, labels, loc="outside lower center", ncols=4)
    return panels


def _select_epoch(report: Any) -> list[Entry]:
    float64 = [entry for entry in report["epoch"] if entry["dtype"] == "float64"]
    return _speeds(float64, (*OURS, "C loop, shuffled"))


def _select_one_row(report: Any) -> list[Entry]:
    found = {(entry["n_features"], entry["learner"]): entry for entry in report["one_row"]}
    return [
        {
            "call": call, "n_features": n,
            "us": found[n, "Perceptron, average"][call]["median"],
            "sklearn_us": found[n, "sklearn SGD perceptron, average"][call]["median"],
        }
        for call in ("partial_fit", "decision_function")
        for n in dict.fromkeys(n for n, _ in found)
    ]  # fmt: skip


def _select_floor(report: Any) -> list[Entry]:
    keys = "shape", "learned", "loop_ns", "ours_ns", "sklearn_ns", "of_loop", "of_sklearn"
    return list(_picked(report["epochs"], *keys))


def _select_labels(report: Any) -> list[Entry]:
    race = report["race"] or {"fits": [], "predictions": []}
    keys = "contestant", "n_jobs", "times_ovr", "micro_f1"
    pairs = zip(_picked(race["fits"], *keys, ns="ns/min"), race["predictions"], strict=True)
    return [fit | {"predict_times": prediction["times_ovr"]} for fit, prediction in pairs]


def _growth(what: str, curve: str, sizes: Sequence[float], fitted: Entry) -> Entry:
    return {"what": what, "curve": curve, "from": sizes[0], "to": sizes[-1], **fitted}


def _select_growth(report: Any) -> list[Entry]:
    return [
        _growth(name, curve["name"], curve["sizes"], curve["exponent"])
        for name in GROWTHS
        for curve in at(report, f"{name}/curves") or ()
    ]


def _select_files(report: Any) -> list[Entry]:
    runs = [each for of, names in FILES.items() for each in report.get(of, [])
            if each["contestant"] in names]  # fmt: skip
    cached = [
        each | {"contestant": "a further epoch from the row cache", "test_error": None}
        for each in report.get("cache", [])
        if each["contestant"] == "Perceptron, rows in order"
    ]
    keys, speed = ("test_error", "peak_bytes"), "megabytes_per_second"
    return _picked(
        runs, *keys, what="contestant", seconds="seconds/min", megabytes_per_second=speed,
        times_vw="times/x vw/min", times_sklearn="times/x sklearn/min",
    ) + _picked(
        cached, *keys, what="contestant", seconds="further/min",
        megabytes_per_second=f"{speed}/further", times_vw="times/further", times_sklearn="none",
    )  # fmt: skip


def _select_kernels(report: Any) -> list[Entry]:
    keys = "contestant", "n_jobs", "fit", "predict", "error", "support", "peak_bytes"
    paths = {"fit_times": "ratios/fit", "predict_times": "ratios/predict"}
    return _picked([*report["growth"][-1], *report["three epochs"]], *keys, **paths)


def _select_shapes(report: Any) -> list[Entry]:
    keys = "shape", "cpu_seconds", "times_linear_svc", "added_bytes", "test_error"
    return _picked(report["shapes"], *keys, what="contestant")


def _select_genomes(report: Any) -> list[Entry]:
    """Select all errors, each with the fact whether it is the lowest on its data."""
    least: dict[str, float] = {}
    for e in report["genomes"]:
        least[e["of"]] = min(e["error"], least.get(e["of"], 100))
    return [e | {"least": e["error"] == least[e["of"]]} for e in report["genomes"]]


def _genome_error(e: Entry) -> str:
    error = f"**{e['error']:.1f}**" if e["least"] else f"{e['error']:.1f}"
    is_mean = e["of"].startswith("mean") and e["standard_error"]
    return f"{error}±{e['standard_error']:.2f}" if is_mean else error


def _but_of(peer: str, template: str) -> Cell:
    """A cell that is empty for contestants whose names begin with `peer`."""
    return lambda entry: None if entry["contestant"].startswith(peer) else cell(template, entry)


def _beside_loops(e: Entry) -> str:
    """ns per nonzero, and the time relative to the bare loop, if there is one, and to the peer."""
    of_loop = cell("{of_loop:.2f}", e, "-")
    return cell(f"{{ours_ns:.1f}}; {of_loop}; **{{of_sklearn:.2f}}**", e)


TABLES = {
    "text": Table(
        "text", "One shuffled epoch of text as it comes, one thread: speed, test error % (theirs)",
        _select_text,
        pivot(
            [("rows", lambda e: f"{SHAPES[e['shape']]}, {e['n_samples']:,} x {e['n_features']:,}")],
            "contestant",
            [("{contestant}",
              "**{times:.1f} x**: {test_error:.2%} ({baseline_error:.2%})")],
            lambda e: e["rows"] == "unsorted",
        ),
    ),
    "claims": Table("claims", "Errors on text beside others'", _select_claims, _claims),
    "classes": Table(
        "classes", "Text of many classes", lambda report: report["classes"],
        markdown([("", "`{contestant}`"), ("test error, %", "{error:.2f}±{standard_error:.2f}"),
                  ("macro F1, %", "{macro_f1:.1f}")]),
    ),
    "rare": Table(
        "rare", "Balanced weights for rare topics", lambda report: report["rare"],
        pivot([("F1, average precision, %", "`{contestant}`"), ("weights", "{class_weight}")],
              "of", [("{of} of the stories", "{f1:.1f}, {average_precision:.1f}")],
              lambda e: "alpha" not in e["contestant"]),
    ),
    "epoch": Table(
        "epoch",
        "One shuffled epoch of sorted rows in memory, float64, one thread, checks included",
        _select_epoch,
        pivot(
            [("", "{contestant}")], "shape",
            [(lambda e: f"{SHAPES[e['shape']]}: speed", "**{times:.1f} x**"),
             ("test error %, theirs", "{test_error:.2%}, {baseline_error:.2%}")],
            lambda e: not e["contestant"].startswith("C loop"),
        ),
    ),
    "one-row": Table(
        "epoch", "One row a call", _select_one_row,
        pivot(
            [("one row", "`{call}`")], "n_features",
            [("{n_features:,} features", "{us:,.0f} us"),
             ("`SGDClassifier(average=True)`", "{sklearn_us:,.0f} us")],
        ),
    ),
    "floor": Table(
        "floor", "One epoch beside bare loops", _select_floor,
        pivot([("learned", "{learned}")], "shape", [("{shape}", _beside_loops)]),
    ),
    "labels": Table(
        "labels", "103 labels, RCV1 shape, float32, five epochs", _select_labels,
        markdown([
            ("", "{contestant}"), ("ns per nonzero, label and epoch", "{ns:.3f}"),
            (f"against {OVR}", _but_of(OVR, "**{times_ovr:.1f} x**")),
            ("micro F1 %", "{micro_f1:.1%}"),
            (f"predicting, against {OVR}", _but_of(OVR, "{predict_times:.1f} x")),
        ], lambda e: e["n_jobs"] == 1),
    ),
    "growth": Table(
        "growth", "How time grows", _select_growth,
        pivot(
            [("to the power of", lambda e: e["curve"].partition(":")[0])], "what",
            [("{what}", "{slope:.2f} ± {standard_error:.2f}")],
            lambda e: not re.search("random labels|scattered|side by side|^C ", e["curve"]),
        ),
    ),
    "threads": Table(
        "growth", "Two threads against one",
        lambda report: at(report, "threads/speed_ups") or [],
        pivot(
            [("two threads", "{name}")], "n_labels",
            [("{n_labels:,.0f} labels", "{times:.2f} x")],
        ),
    ),
    "files": Table(
        "files", "From svmlight text", _select_files,
        markdown([
            ("", "{what}"), ("seconds", "{seconds:.3f}"), ("MB/s", "{megabytes_per_second:,.0f}"),
            ("against vw", "**{times_vw:.1f} x**"),
            ("against scikit-learn", "**{times_sklearn:.0f} x**"),
            ("test error %", "{test_error:.2%}"), ("peak MB", "{peak_bytes:.0D}"),
        ]),
    ),
    "kernels": Table(
        "kernels", "Kernels on MNIST", _select_kernels,
        markdown([
            ("", lambda e: KERNELS[e["contestant"]]), ("threads", "{n_jobs}"),
            ("fit, s", "{fit:.1f}"), ("against `SVC`", _but_of("SVC", "**{fit_times:.0f} x**")),
            ("predict 10,000, s", "{predict:.2f}"),
            ("against `SVC`", _but_of("SVC", "**{predict_times:.0f} x**")),
            ("test error %", "{error:.2f}"), ("support rows", "{support:,}"),
            ("peak MB", "{peak_bytes:.0M}"),
        ]),
    ),
    "shapes": Table(
        "shapes", "Perceptrons with a matrix at scale", _select_shapes,
        pivot(
            [("", "`{what}`")], "shape",
            [("{shape}", "{times_linear_svc:.2f}; {added_bytes:.0D}; {test_error:.1%}")],
            lambda e: e["times_linear_svc"],
        ),
    ),
    "few": Table(
        "dense", "Test errors % on few features", lambda report: report["few"],
        pairs("as they are", "standardised"),
    ),
    "genomes": Table(
        "genomes", "Test errors % on microarrays", _select_genomes,
        pivot(
            [("", "{contestant}")], "of", [("{of}", _genome_error)],
            lambda e: not re.search(UNTOLD, e["contestant"]) and e["of"] != "mean of four",
        ),
    ),
}  # fmt: skip


def select(parts: dict[str, Any]) -> dict[str, Entry]:
    """Return the figures of all tables for which the parts are available: ``machine`` and
    ``entries`` of each."""
    return {
        name: {"machine": report["machine"], "entries": entries}
        for name, table in TABLES.items()
        if (report := at(parts, f"{table.part}/report")) and (entries := table.select(report))
    }


def render(chosen: dict[str, Entry]) -> dict[str, str]:
    """Return the tables of these figures in Markdown, each with its machine."""
    rendered = {}
    for name, figures in chosen.items():
        measured = measured_on(figures["machine"])
        rendered[name] = f"{TABLES[name].render(figures['entries'])}\n\n{measured}"
    return rendered


def measured_on(machine: Entry) -> str:
    """Return the line below a table that describes the machine."""
    of = "{cpu}, {cpus} processors; scikit-learn {scikit-learn}"
    return f"*{of.format(**machine)}.*"


def extract(charter: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the tables; those that were not measured again are kept."""
    parts = {name: part for name, part in charter["parts"].items() if not part["quick"]}
    return {"tables": earlier.get("tables", {}) | select(parts)}


def pages(tables: dict[str, str]) -> dict[Path, dict[str, str]]:
    """Return the pages, with the tables of each."""
    on_accuracy = "claims", "rare", "classes"
    # Tables of other pages, and those that only charter.md has.
    elsewhere = *on_accuracy, "genomes", "few", "epoch", "growth", "threads"
    of_speed = {name: table for name, table in tables.items() if name not in elsewhere}
    return {
        PERFORMANCE: of_speed, ACCURACY: {name: tables[name] for name in on_accuracy},
        GENOMES: {"genomes": tables["genomes"]},
        HIGHER_ORDER: {"few": tables["few"]},
    }  # fmt: skip


def main() -> None:
    """Update the figures and the pages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--charter", type=Path, default=Path("results/charter.json"))
    options = parser.parse_args()
    figures = json.loads(EXTRACT.read_text())
    if options.charter.exists():
        figures = extract(json.loads(options.charter.read_text()), figures)
        replace_text(EXTRACT, json.dumps(figures, indent=1) + "\n")
    else:
        print(f"{options.charter} is not there: the tables are made from {EXTRACT.name} again")
    for page, tables in pages(render(figures["tables"])).items():
        fill_page(page, tables)


if __name__ == "__main__":
    main()
