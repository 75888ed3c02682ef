"""The claims of this library about speed, memory and microarrays, measured in one run.

The benchmarks run one after the other, each in a new process, so that a crash or the memory
of one does not affect the others. Their results are collected in charter.json; charter.md has the
targets and all tables. After Ctrl-C the results so far are kept, and `--only` repeats parts. The
tables of the documentation are made from charter.json by tables.py.

    python benchmarks/charter.py [--quick] [--only epoch labels ...] [--out results]

Missing peers and data are left out, with a line that says so: vw (pip install
"sparsemargin[bench]"), and the files in the folder named by SPARSEMARGIN_DATA.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import tables
from markdown_tables import cell, markdown_table
from tables import ONE_CALL, OURS, OVR, at
from timing import CANNOT_RUN, FOLDER, describe_machine, machine, parser_of, replace_text, timed


class Part(NamedTuple):
    """A benchmark: its script in this folder, its options, and further options of a full run."""

    title: str
    script: str
    always: tuple[str, ...] = ()
    full: tuple[str, ...] = ()


PARTS = {
    "texts": Part("From texts", "text_speed.py"),
    "text": Part("Text as TfidfVectorizer leaves it", "epoch.py", ("--only", "text")),
    "claims": Part("Errors on text beside others'", "defaults.py", ("--only", "claims")),
    "classes": Part("Errors on text of many classes", "defaults.py", ("--only", "classes")),
    "rare": Part("Balanced weights for rare topics", "defaults.py", ("--only", "rare")),
    "epoch": Part(
        "One epoch in memory, one-row calls, and peak memory", "epoch.py",
        ("--only", "race", "rows", "memory", "order"),
    ),
    "floor": Part("One epoch beside bare loops", "floor.py"),
    "labels": Part("Many labels at once", "labels.py"),
    "growth": Part("Growth of an epoch", "growth.py"),
    "files": Part("From files", "files.py", full=("--rounds", "3")),
    "ho": Part(
        "Higher-order and Second-order Perceptrons", "higher_order.py",
        ("--only", "race", "growth"), ("--rounds", "9"),
    ),
    "shapes": Part("Perceptrons with a matrix at scale", "higher_order.py", ("--only", "shapes")),
    # The nine soft-margin problems of RCV1 are left out, because they take more than five minutes.
    "margin": Part(
        "Margins with their proofs", "margin.py",
        full=("--data", "leukemia", "colon", "lymphoma", "sonar"),
    ),
    "kernels": Part("Kernels", "kernels.py", ("--rounds", "1")),
    "genomes": Part("Errors on microarrays", "defaults.py", ("--only", "genomes")),
    "dense": Part("Errors on dense rows", "defaults.py", ("--only", "dense")),
    "genotypes": Part("Genotypes", "defaults.py", ("--only", "genotypes")),
}  # fmt: skip


MEGABYTE = 2**20
LAST, AVERAGE = "Perceptron, last", "Perceptron, average"
THREADS = 1.8  # speedup over one thread
#: Largest deviation of an exponent from its target. For text, the exponent may be smaller, because
#: later rows have fewer corrections.
SLOPE_OFF = 0.05


class Aim(NamedTuple):
    """A figure of each entry that `find` returns from the report of a part, with its lower
    (`least`) or upper target. `figure` returns None if it could not be measured."""

    part: str
    find: Callable[[Any], Iterable[dict[str, Any]]]
    what: str
    figure: Callable[[dict[str, Any]], float | None]
    least: bool
    limit: float | Callable[[dict[str, Any]], float]
    digits: int = 2


Find = Callable[[Any], Iterable[dict[str, Any]]]


def _of(path: str, *names: str, **settings: Any) -> Find:
    """Find the entries of these contestants, or of all, with these settings."""

    def find(report: Any) -> Iterator[dict[str, Any]]:
        for entry in at(report, path) or ():
            wanted = all(entry[key] == value for key, value in settings.items())
            if wanted and (not names or entry["contestant"] in names):
                yield entry

    return find


def _figure(path: str) -> Callable[[dict[str, Any]], float | None]:
    return lambda entry: at(entry, path)


def _labels(kind: str, *names: str) -> Find:
    """Find entries of the race over many labels, with those of OneVsRest and the last
    hypothesis."""

    def find(report: Any) -> Iterator[dict[str, Any]]:
        path = f"race/{kind}"
        by_name = {(entry["contestant"], entry["n_jobs"]): entry for entry in _of(path)(report)}
        for entry in _of(path, *names)(report):
            others = {"ovr": OVR, "last": LAST}
            yield entry | {key: by_name[name, entry["n_jobs"]] for key, name in others.items()}

    return find


def _epochs(report: Any) -> Iterator[dict[str, Any]]:
    for entry in report["epochs"]:
        if entry["aim"]:
            yield entry


def _slopes(name: str, text: bool) -> Find:
    """Find the curves of this library. `text` selects those over text, else all others."""

    def find(report: Any) -> Iterator[dict[str, Any]]:
        for curve in at(report, f"{name}/curves") or ():
            own = not curve["name"].startswith(("C loop", "sklearn Perceptron"))
            if own and text == (name == "nonzeros" and not curve["name"].endswith("labels")):
                yield curve

    return find


def _pair(path: str, figure: str, first: str, second: str) -> Find:
    """Make one entry: the ratio of two contestants' figures."""

    def find(report: Any) -> Iterator[dict[str, Any]]:
        found = {
            entry["contestant"]: at(entry, figure) for entry in _of(path, first, second)(report)
        }
        if found:
            yield {"times": found[first] / found[second]}

    return find


def _cached(epoch: str, *names: str) -> Find:
    path = f"times/{epoch}"
    return lambda report: [
        entry | {"epoch": epoch, "of": at(entry, path)} for entry in _of("cache", *names)(report)
    ]


TEXT = {"text": 4, "rcv1m, 5% wrong": 2}
FIT, DEFAULT = "fit_svmlight, Perceptron", "fit_svmlight, default (AROW)"
TRAIN, TWO_THREADS = "sparsemargin train", "load_svmlight, 2 threads"
IN_ORDER, SHUFFLED = "Perceptron, rows in order", "Perceptron, shuffled"
PEERS = ("`LinearSVC", "`LogisticRegression", "`RidgeClassifier", "`NearestCentroid")
#: Targets for the speedup over scikit-learn's vectorizers.
TIMES = {"hashing": 10, "hashing tfidf": 12, "char_wb": 15, "char_wb tfidf": 15,
         "cyrillic count": 8, "cyrillic tfidf": 8, "cyrillic char_wb": 8}  # fmt: skip
AIMS = [
    Aim("texts", _of("vectorizers"), "{contestant}: times scikit-learn's", _figure("ratio"), True,
        lambda e: TIMES.get(e["contestant"], 12), 1),
    Aim("texts", _of("vectorizers"), "{contestant}: two threads, times one", _figure("threads"),
        True, 1.5),
    Aim("texts", _of("vectorizers"), "{contestant}: of scikit-learn's memory", _figure("memory"),
        False, 0.67),
    Aim("texts", _of("stream"), "`sparsemargin train` of texts, {contestant}: peak MB",
        lambda e: e["peak_bytes"] / 1e6, False, 300, 0),
    Aim("texts", _of("one"), "one text, {contestant}: microseconds", _figure("us"), False, 100, 0),
    Aim("text", _of("races", ONE_CALL), "{shape}, {rows}, {contestant}: of averaged SGD's time",
        _figure("times_baseline/min"), False, 1.0),
    Aim("text", lambda r: [e for e in _of("races", LAST, rows="unsorted")(r) if e["shape"] in TEXT],
        "{shape}, {rows}, {contestant}: times sklearn Perceptron",
        lambda e: 1 / e["times_baseline"]["min"], True, lambda e: TEXT[e["shape"]], 1),
    Aim("text", _of("races", *OURS, rows="unsorted"),
        "{shape}, {rows}, {contestant}: of sorted rows' time", _figure("times_sorted/min"), False,
        1.15),
    Aim("floor", _epochs, "{shape}, {learned}: of the bare loop's time", _figure("of_loop"), False,
        lambda e: e["aim"]),
    Aim("labels", _labels("fits", LAST), f"103 labels, threads: {{n_jobs}}, last: times {OVR}",
        _figure("times_ovr"), True, 15, 1),
    Aim("labels", _labels("fits", LAST),
        f"103 labels, threads: {{n_jobs}}, last: label errors off {OVR}'s, points",
        lambda e: 100 * abs(e["hamming_error"] - e["ovr"]["hamming_error"]), False, 0.2, 3),
    Aim("labels", _labels("fits", AVERAGE),
        "103 labels, threads: {n_jobs}, average: times last",
        lambda e: e["ns"]["min"] / e["last"]["ns"]["min"], False, 1.5),
    Aim("labels", _labels("predictions", LAST, AVERAGE),
        f"predicting 103 labels, threads: {{n_jobs}}, {{contestant}}: times {OVR}",
        _figure("times_ovr"), True, 5, 1),
    Aim("labels", lambda r: [r["memory"]] if r.get("memory") else [],
        "{n_labels:,} labels x {n_features:,} features: peak MB",
        lambda e: e["peak_bytes"] / MEGABYTE, False, 4096, 0),
    Aim("growth", _slopes("nonzeros", True), "time against nonzeros, {name}: exponent",
        lambda e: e["exponent"]["slope"], False, 1 + SLOPE_OFF, 3),
    Aim("growth", _slopes("nonzeros", False), "time against nonzeros, {name}: exponent's gap to 1",
        lambda e: abs(e["exponent"]["slope"] - 1), False, SLOPE_OFF, 3),
    Aim("growth", _slopes("features", False), "time against features, {name}: exponent's size",
        lambda e: abs(e["exponent"]["slope"]), False, SLOPE_OFF, 3),
    Aim("growth", _of("threads/speed_ups"), "two threads, {name}, {n_labels:.0f} labels: times one",
        _figure("times"), True, THREADS),
    Aim("files", _of("fit", FIT, DEFAULT), "{contestant}: times vw", _figure("times/x vw/min"),
        True, 3),
    Aim("files", _of("fit", FIT, DEFAULT), "{contestant}: times load_svmlight_file + SGD",
        _figure("times/x sklearn/min"), True, 30),
    Aim("files", lambda r: [*_of("fit", FIT)(r), *_of("process", TRAIN)(r)],
        "{contestant}: peak MB", lambda e: e["peak_bytes"] / 1e6, False, 120, 1),
    Aim("files", _of("process", TRAIN), "{contestant}: times vw", _figure("times/x vw/min"), True,
        1),
    Aim("files", _of("process", f"{TRAIN}, 100 rows"), "{contestant}: s", _figure("seconds/min"),
        False, 0.35, 3),
    Aim("files", _pair("process", "peak_bytes", f"{TRAIN}, twice the text", TRAIN),
        f"{TRAIN}, twice the text: peak grows by %", lambda e: 100 * (e["times"] - 1), False, 5, 1),
    Aim("files", _cached("first", IN_ORDER), "{contestant}, {epoch} epoch from the cache: times vw",
        _figure("of"), True, 2),
    Aim("files", _cached("further", IN_ORDER, SHUFFLED),
        "{contestant}, {epoch} epoch from the cache: times vw", _figure("of"), True, 2),
    Aim("files", _of("load", TWO_THREADS), "{contestant}: times load_svmlight_file",
        _figure("times/x sklearn/min"), True, 40),
    Aim("files", _pair("load", "seconds/min", "load_svmlight, 1 thread", TWO_THREADS),
        "load_svmlight, two threads: times one", _figure("times"), True, THREADS),
    Aim("ho", lambda r: [e for e in _of("race")(r) if e["aim"] is not None],
        "{contestant}: of LinearSVC's time", _figure("times_linear_svc/min"), False,
        _figure("aim")),
    Aim("shapes", _of("shapes", "HigherOrderPerceptron(p=7)", shape="100,000 documents"),
        "{shape}, {contestant}: of LinearSVC's CPU time", _figure("times_linear_svc"), False, 1),
    Aim("shapes", _of("shapes", "HigherOrderPerceptron(p=7)", shape="800,000 documents"),
        "{shape}, {contestant}: seconds of CPU time", _figure("cpu_seconds"), False, 60, 1),
    Aim("genomes", lambda r: [e for e in _of("genomes", of="mean of four")(r)
                              if e["contestant"].startswith(PEERS)],
        "Four microarrays, {contestant}: errs more than fit_csr(X, y) by, standard errors",
        lambda e: e["less_by_ours"] / e["standard_error"], True, 2, 1),
]  # fmt: skip


def aims(parts: dict[str, Any]) -> list[list[str]]:
    """The targets of all measured figures, the figures, and whether they are met."""
    rows = []
    for aim in AIMS:
        for entry in aim.find(report) if (report := at(parts, f"{aim.part}/report")) else ():
            limit = aim.limit(entry) if callable(aim.limit) else aim.limit
            figure = aim.figure(entry)
            measured, verdict = "-", "not measured"
            if figure is not None:
                reached = figure >= limit if aim.least else figure <= limit
                measured = f"{figure:.{aim.digits}f}"
                verdict = "reached" if reached else "**missed**"
            wanted = f"{'>=' if aim.least else '<='} {limit:g}"
            rows.append([cell(aim.what, entry), wanted, measured, verdict])
    return rows


def run(name: str, quick: bool, folder: Path) -> dict[str, Any]:
    """Run a part. The result has its ``report`` if it was measured, else the reason, ``why``."""
    part, out = PARTS[name], folder / f"{name}.json"
    # The result of an earlier run must not be mistaken for this one's.
    out.unlink(missing_ok=True)
    options = [*part.always, *(["--quick"] if quick else part.full)]
    command = [sys.executable, str(FOLDER / part.script), *options, "--out", str(out)]
    seconds, (lines, status) = timed(partial(_listen, command))
    entry = {
        "quick": quick, "seconds": seconds, "printed": "".join(lines),
        "command": " ".join(["python", f"benchmarks/{part.script}", *options]),
    }  # fmt: skip
    if status == 0:
        return entry | {"status": "measured", "report": json.loads(out.read_text())}
    kind = "left out" if status == CANNOT_RUN else "failed"
    return entry | {"status": kind, "why": lines[-1].strip() if lines else f"status {status}"}


def _listen(command: list[str]) -> tuple[list[str], int]:
    """Run a command and pass on its output; return its lines and its status."""
    lines = []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **pipes) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return lines, process.returncode


HEAD = """\
# Performance charter

Everything was measured side by side in one run, so quote the ratios; the times belong to the
machine. A part's own contestants took turns, and the part says what it measured, and how, in what
it printed, below.
"""


def report(parts: dict[str, Any]) -> str:
    """Return the page of Markdown: targets, short tables, and everything that was printed."""
    rows = [
        [
            PARTS[name].title, f"`{part['command']}`", f"{part['seconds'] / 60:.1f}",
            part["status"] + (", in a hurry" if part["quick"] else ""),
        ]
        for name, part in parts.items()
    ]  # fmt: skip
    sections = [HEAD, markdown_table(["part", "command", "minutes", ""], rows) + "\n"]
    sections += [
        f"`{name}` is {part['status']}: {part['why']}\n"
        for name, part in parts.items()
        if "why" in part
    ]
    # Quick runs are not compared with the targets.
    in_full = {name: each for name, each in parts.items() if not each["quick"]}
    if wanted := aims(in_full):
        sections += ["## Aims\n", markdown_table(["", "wanted", "measured", ""], wanted) + "\n"]
    for name, table in tables.render(tables.select(parts)).items():
        sections += [f"## {tables.TABLES[name].caption}\n", f"{table}\n"]
    for name, part in parts.items():
        sections += [f"## {PARTS[name].title}: all that was printed\n"]
        sections += [f"```\n{part['printed'].strip()}\n```\n"]
    return "\n".join(sections)


def _keep(folder: Path, parts: dict[str, Any]) -> None:
    """Write all results so far, in the order of the parts."""
    ordered = {name: parts[name] for name in PARTS if name in parts}
    charter = json.dumps({"machine": machine(), "parts": ordered}, indent=1)
    replace_text(folder / "charter.json", charter + "\n")
    replace_text(folder / "charter.md", report(ordered))


def main(arguments: list[str] | None = None) -> int:
    """Run the selected parts, and write all results."""
    parser = parser_of(__doc__, "results")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART",
                        help=f"measure these again, of {', '.join(PARTS)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds: minutes")
    options = parser.parse_args(arguments)
    folder, path = options.out / "charter", options.out / "charter.json"
    folder.mkdir(parents=True, exist_ok=True)
    parts = json.loads(path.read_text())["parts"] if path.exists() else {}
    print(describe_machine())
    for name in options.only:
        print(f"\n{PARTS[name].title}", flush=True)
        parts[name] = entry = run(name, options.quick, folder)
        print(f"{name}: {entry['status']} in {entry['seconds']:.0f} s", flush=True)
        _keep(options.out, parts)
    print(f"\nwritten: {path}, {path.with_suffix('.md')}")
    return int(any(parts[name]["status"] == "failed" for name in options.only))


if __name__ == "__main__":
    sys.exit(main())
