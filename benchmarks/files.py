"""From a file to a model, beside vw, scikit-learn and liblinear: how fast, in how much memory?

Four measurements on the same rows, as svmlight text and in vw's own format, the page cache warm:
one epoch within a process; whole processes, as from a shell; epochs from a cache; and loading.
Every run is a process of its own, the contestants take turns. Seconds are the least and the median
of the rounds, ratios those of the least. Quote the ratios: they were measured side by side in one
run. The times belong to the machine. MB are millions of bytes.

vw and liblinear take part where they are installed: vw by `pip install "sparsemargin[bench]"`,
liblinear by Debian's package liblinear-tools.

    python benchmarks/files.py [--only fit process cache load] [--rows N] [--rounds N]
"""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from shutil import which
from statistics import mean
from typing import Any, BinaryIO

import launch
import numpy as np
from corpora import RCV1_LARGE, Shape, draw_corpus
from epoch import PEER_EPOCH, PERCEPTRON_SGD
from scipy.sparse import csr_matrix
from tables import cell, text_table
from timing import minimum_and_median, parser_of, ratios, turns
from timing import run as run_parts

from sparsemargin.io.files import replacing
from sparsemargin.io.model_files import load_model
from sparsemargin.io.svmlight import load_svmlight

MEGABYTE = 1e6
FEW_ROWS = 100
QUICK_ROWS = 10_000


@dataclass(frozen=True)
class Texts:
    """Texts of one draw, in a folder of their own.

    Every name stands for two files: ``NAME.svm`` and ``NAME.vw``.
    """

    folder: Path
    shape: Shape

    def path(self, name: str, kind: str = "svm") -> Path:
        return self.folder / f"{name}.{kind}"

    def size(self, name: str, kind: str = "svm") -> int:
        return self.path(name, kind).stat().st_size


def open_texts(folder: Path, shape: Shape) -> Texts:
    """Return the texts, having written those that are not there.

    They are ``train``, ``train-twice`` (the same twice over), ``few`` (its first rows) and
    ``test``, and ``train.svm.gz``.
    """
    texts = Texts(folder / f"{shape.name}-{shape.n_train}", shape)
    texts.folder.mkdir(parents=True, exist_ok=True)
    if not (texts.path("train").exists() and texts.path("test").exists()):
        _write_rows(texts)
    for name in "train", "test":
        _once(texts.path(name, "vw"), texts.path(name), _as_vw)
    for kind in ("svm", "vw"):
        _once(texts.path("few", kind), texts.path("train", kind), _head)
        _once(texts.path("train-twice", kind), texts.path("train", kind), _twice)
    _once(texts.path("train", "svm.gz"), texts.path("train"), _packed)
    return texts


def _write_rows(texts: Texts) -> None:
    print(f"writing {texts.path('train')}", file=sys.stderr, flush=True)
    corpus = draw_corpus(texts.shape)
    for name, X, y in (("train", corpus.X, corpus.y), ("test", corpus.X_test, corpus.y_test)):
        with replacing(texts.path(name)) as out:
            out.writelines(_svmlight_lines(X, y))


def _svmlight_lines(X: csr_matrix, y: np.ndarray) -> Iterator[bytes]:
    for i, label in enumerate(y):
        row = slice(X.indptr[i], X.indptr[i + 1])
        entries = zip((X.indices[row] + 1).tolist(), X.data[row].tolist(), strict=True)
        yield f"{label:+.0f} {' '.join(map('%d:%.6f'.__mod__, entries))}\n".encode()


def _once(path: Path, source: Path, write: Callable[[BinaryIO, BinaryIO], None]) -> None:
    """Write a file from another one, unless it is there."""
    if not path.exists():
        print(f"writing {path}", file=sys.stderr, flush=True)
        with source.open("rb") as text, replacing(path) as out:
            write(text, out)


def _as_vw(text: BinaryIO, out: BinaryIO) -> None:
    """`+1 137:0.165224 ...` becomes `1 |f 137:0.165224 ...`."""
    for line in text:
        label, _, features = line.partition(b" ")
        out.write(b"%d |f %b" % (int(label), features))


def _head(text: BinaryIO, out: BinaryIO) -> None:
    out.writelines(islice(text, FEW_ROWS))


def _twice(text: BinaryIO, out: BinaryIO) -> None:
    for _ in range(2):
        text.seek(0)
        shutil.copyfileobj(text, out, 1 << 20)


def _packed(text: BinaryIO, out: BinaryIO) -> None:
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=6) as packed:
        shutil.copyfileobj(text, packed, 1 << 20)


LAUNCHER = (sys.executable, "-I", "-S", launch.__file__, "command")
CALLER = (sys.executable, launch.__file__, "call")


@dataclass(frozen=True)
class Contestant:
    """One line of a race: a process that goes through `n_bytes` of text in one run.

    `against` are headers of ratios, and the contestants that these are to. Where it `reports`, its
    last line tells its own seconds and memory; they are the whole process's otherwise. `judge`
    returns the test error of what it left behind; `fresh` files must not be there when it starts.
    """

    name: str
    command: tuple[str, ...]
    n_bytes: int
    against: dict[str, str] = field(default_factory=dict)
    reports: bool = False
    judge: Callable[[], float] | None = None
    fresh: tuple[Path, ...] = ()


def call_on(
    texts: Texts, call: str, name: str = "train", kind: str = "svm", **params: Any
) -> tuple:
    """Return the command that makes a call of launch.py on one of the texts."""
    wanted = {
        "call": call, "params": params, "few": str(texts.path("few", kind.partition(".")[0])),
        "text": str(texts.path(name, kind)),
        "test": str(texts.path("test", kind.partition(".")[0])),
    }  # fmt: skip
    return (*CALLER, json.dumps(wanted))


def run(contestant: Contestant) -> dict[str, Any]:
    """Run the contestant once, and return what that took."""
    for path in contestant.fresh:
        path.unlink(missing_ok=True)
    command = [*LAUNCHER, *contestant.command]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    *before, last = printed.splitlines()
    facts = json.loads(before[-1] if contestant.reports else last)
    if contestant.judge is not None:
        facts["test_error"] = contestant.judge()
    return facts


def race(title: str, contestants: Sequence[Contestant], n_rounds: int) -> list[dict[str, Any]]:
    """Run all contestants in turn, for so many rounds.

    Returned: one entry for each: ``seconds`` and their ratios ``times`` (``min`` and
    ``median``), MB of text a second at its fastest, the least CPU time, the largest peak of its
    memory, the mean ``test_error`` if there is one, and whatever else its runs told.
    """
    runs: dict[str, list] = {contestant.name: [] for contestant in contestants}
    for number, contestant in turns(contestants, n_rounds):
        print(f"{title}, round {number + 1}: {contestant.name}", file=sys.stderr, flush=True)
        runs[contestant.name].append(run(contestant))
    entries = [_entry(contestant, runs[contestant.name]) for contestant in contestants]
    seconds = {entry["contestant"]: entry["seconds"] for entry in entries}
    for contestant, entry in zip(contestants, entries, strict=True):
        entry["times"] = {
            header: ratios(seconds[other], entry["seconds"])
            for header, other in contestant.against.items()
            if other in seconds
        }
    return entries


def _entry(contestant: Contestant, runs: list[dict[str, Any]]) -> dict[str, Any]:
    seconds = minimum_and_median([run["seconds"] for run in runs])
    errors = [run["test_error"] for run in runs if "test_error" in run]
    return {
        "contestant": contestant.name, "seconds": seconds,
        "cpu_seconds": min(run["cpu_seconds"] for run in runs),
        "megabytes_per_second": contestant.n_bytes / MEGABYTE / seconds["min"],
        "peak_bytes": max(run["peak_bytes"] for run in runs),
        "added_bytes": max(run.get("added_bytes", 0) for run in runs),
        "test_error": mean(errors) if errors else None, "contents": runs[0].get("contents"),
    }  # fmt: skip


def show(title: str, entries: list[dict[str, Any]], headers: Sequence[str]) -> None:
    """Print entries with their ratios under the headers, but for columns in which nobody has a
    figure."""
    columns = [
        ("", "{contestant}"), ("s min", "{seconds[min]:.3f}"), ("median", "{seconds[median]:.3f}"),
        ("CPU s", "{cpu_seconds:.2f}"), ("MB/s", "{megabytes_per_second:,.0f}"),
        *((header, partial(_times, header)) for header in headers),
        ("peak MB", "{peak_bytes:.0D}"),
        ("adds MB", lambda e: cell("{added_bytes:.0D}", e) if e["added_bytes"] else None),
        ("test error %", "{test_error:.2%}"),
    ]  # fmt: skip
    told = [column for column in columns if any(cell(column[1], entry) for entry in entries)]
    print(f"\n{title}\n\n{text_table(told, entries)}", flush=True)


def _times(header: str, entry: dict[str, Any]) -> str | None:
    return f"{entry['times'][header]['min']:.2f}" if header in entry["times"] else None


def named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the entry of a contestant."""
    return next(entry for entry in entries if entry["contestant"] == name)


VW = (sys.executable, "-m", "vowpalwabbit", "--quiet")
LIBLINEAR = "liblinear-train"


def has_vw() -> bool:
    return find_spec("vowpalwabbit") is not None


def has_liblinear() -> bool:
    return which(LIBLINEAR) is not None


def say_who_is_missing() -> None:
    """Tell who can't take part, and where he comes from."""
    if not has_vw():
        print('LEFT OUT: vw, which is not installed (pip install "sparsemargin[bench]")')
    if not has_liblinear():
        print("LEFT OUT: liblinear, which is not installed (Debian's package liblinear-tools)")


def vw_error(model: Path, texts: Texts) -> float:
    """The test error of a model that vw has saved."""
    test = texts.path("test", "vw")
    return _predicted([*VW, "-t", "-i", str(model), "-d", str(test), "-p"], test)


def liblinear_error(model: Path, texts: Texts) -> float:
    """The test error of a model that liblinear has saved."""
    test = texts.path("test")
    return _predicted(["liblinear-predict", "-q", str(test), str(model)], test)


def _predicted(command: list[str], test: Path) -> float:
    with tempfile.TemporaryDirectory() as folder:
        predictions = f"{folder}/predictions"
        subprocess.run([*command, predictions], check=True, stdout=subprocess.DEVNULL)
        return launch.error_of(predictions, test)


def own_error(model_file: Path, texts: Texts) -> float:
    """The test error of a model that `sparsemargin train` has saved."""
    model = load_model(model_file)
    X, y = load_svmlight(texts.path("test"))
    X.resize(X.shape[0], model.n_features_in_)
    return float((model.predict(X) != y).mean())


PEER, SGD = "vw", "load_svmlight_file, SGDClassifier"
AGAINST = {"x vw": PEER, "x sklearn": SGD}
# The peers of scikit-learn have no intercept either.
PLAIN = {"algo": "perceptron", "fit_intercept": False}
PERCEPTRON = "fit_svmlight, Perceptron"
#: What is called, and with what; by what the tables say.
FITS: dict[str, tuple[str, dict[str, Any]]] = {
    PERCEPTRON: ("fit_svmlight", PLAIN),
    f"{PERCEPTRON}, 1 thread": ("fit_svmlight", PLAIN | {"n_jobs": 1}),
    f"{PERCEPTRON}, float32": ("fit_svmlight", PLAIN | {"dtype": "float32"}),
    "fit_svmlight, default (ALMA)": ("fit_svmlight", {}),
    "fit_svmlight, ALMA p = 6": (
        "fit_svmlight", {"algo": "alma", "p": 6, "fit_intercept": False},
    ),
    PEER: ("vw", {"options": []}),
    "vw --loss_function hinge": ("vw", {"options": ["--loss_function", "hinge"]}),
    "vw --sgd": ("vw", {"options": ["--sgd"]}),
    SGD: ("sklearn", {"estimator": "SGDClassifier", **PEER_EPOCH, "random_state": 0}),
    "load_svmlight_file, SGD Perceptron, average": (
        "sklearn",
        {"estimator": "SGDClassifier", **PEER_EPOCH, **PERCEPTRON_SGD, "average": True,
         "random_state": 0},
    ),
    "load_svmlight_file, Perceptron": (
        "sklearn", {"estimator": "Perceptron", **PEER_EPOCH, "random_state": 0},
    ),
}  # fmt: skip


def fit(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """One epoch of everybody in processes that have warmed up on a few rows."""
    contestants = []
    for name, (call, params) in FITS.items():
        kind = "vw" if call == "vw" else "svm"
        if call != "vw" or has_vw():
            command = call_on(texts, call, kind=kind, **params)
            contestants.append(Contestant(name, command, texts.size("train", kind), AGAINST, True))
    entries = race("fit", contestants, n_rounds)
    title = "From text to a model, one epoch, in process (vw reads its own format)"
    show(title, entries, list(AGAINST))
    return entries


# What an epoch takes that is not the first: a so-manieth of what these add to a run.
FURTHER = 5
CACHED = {
    "Perceptron, rows in order": PLAIN | {"shuffle": False}, "Perceptron, shuffled": PLAIN,
    "Perceptron, shuffled, float32": PLAIN | {"dtype": "float32"}, "default (ALMA), shuffled": {},
}  # fmt: skip
CACHES = {
    "float64": ("svm", ".float64.smcache"),
    "float32": ("svm", ".float32.smcache"),
    "vw": ("vw", ".cache"),
}


def cache_of(texts: Texts, kind: str) -> Path:
    """Where launch.py has the calls keep the rows of the training text."""
    text_kind, suffix = CACHES[kind]
    path = texts.path("train", text_kind)
    return path.with_name(path.name + suffix)


def cache(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """One epoch and several, all from caches that are there.

    Seconds are of the ``first`` epoch, the opening of the cache and its verification included, and
    of a ``further`` one.
    """
    names = ([PEER] if has_vw() else []) + list(CACHED)
    for kind in CACHES:
        cache_of(texts, kind).unlink(missing_ok=True)
    short = {name: _cached(texts, name, 1) for name in names}
    for contestant in short.values():
        run(contestant)  # makes the cache
    long = {name: _cached(texts, name, 1 + FURTHER) for name in names}
    raced = race("cache", [*short.values(), *long.values()], n_rounds)
    entries = []
    for name in names:
        few, many = (named(raced, each[name].name) for each in (short, long))
        first = few["seconds"]
        further = {of: (many["seconds"][of] - first[of]) / FURTHER for of in first}
        megabytes = few["megabytes_per_second"] * first["min"]
        speeds = {"first": megabytes / first["min"], "further": megabytes / further["min"]}
        entry = {"contestant": name, "first": first, "further": further}
        entry |= {"megabytes_per_second": speeds, "peak_bytes": many["peak_bytes"]}
        entries.append(entry | {"test_error": many["test_error"], "times": {}})
    if PEER in names:
        vw = entries[0]
        for own in entries:
            own["times"] = {of: vw[of]["min"] / own[of]["min"] for of in ("first", "further")}
    columns = [("", "{contestant}")]
    for of in ("first", "further"):
        columns += [
            (f"{of} epoch s", f"{{{of}[min]:.3f}}"), ("median", f"{{{of}[median]:.3f}}"),
            ("MB/s", f"{{megabytes_per_second[{of}]:,.0f}}"),
            ("x vw", lambda e, of=of: f"{e['times'][of]:.2f}" if e["times"] else None),
        ]  # fmt: skip
    columns += [("peak MB", "{peak_bytes:.0D}")]
    columns += [(f"test error %, {1 + FURTHER} epochs", "{test_error:.2%}")]
    print(
        "\nOne epoch from the cache, in process: the first, verification included, and a further "
        f"one ({1 + FURTHER} epochs less the first, shared out); MB of text\n\n"
        f"{text_table(columns, entries)}"
    )
    return entries


def _cached(texts: Texts, name: str, n_epochs: int) -> Contestant:
    if name == PEER:
        options = ["--passes", str(n_epochs), "--holdout_off"] if n_epochs > 1 else []
        command = call_on(texts, "vw", kind="vw", cached=True, options=options)
    else:
        params = {"cached": True, "max_iter": n_epochs, "random_state": 0} | CACHED[name]
        command = call_on(texts, "fit_svmlight", **params)
    n_bytes = texts.size("train", "vw" if name == PEER else "svm")
    return Contestant(f"{name}, epochs: {n_epochs}", command, n_bytes * n_epochs, reports=True)


OURS = "sparsemargin train"
TWICE, FEW, KEPT = ", twice the text", f", {FEW_ROWS} rows", ", cache there"
SEVERAL, DEFAULT = ", 5 epochs, cache made", ", default (ALMA)"
TRAIN = (sys.executable, "-m", "sparsemargin", "train", "--quiet")


def process(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """`sparsemargin train`, vw and liblinear as they are called from a shell, start-up included."""
    with tempfile.TemporaryDirectory() as folder:
        contestants = _processes(texts, Path(folder))
        for contestant in contestants:
            if KEPT in contestant.name or FEW in contestant.name:
                run(contestant)  # makes the cache; Python keeps its byte code
        entries = race("process", contestants, n_rounds)
    show("Whole processes, as from a shell (vw reads its own format)", entries, ["x vw"])
    return entries


def _processes(texts: Texts, folder: Path) -> list[Contestant]:
    own, vw, liblinear = (folder / f"{name}.model" for name in ("own", "vw", "liblinear"))
    made = {kind: texts.path("train", f"made.{kind}") for kind in ("smcache", "cache")}

    def train(name: str, words: Sequence[str], judge: Callable, text: str, **rest: Any) -> Any:
        # What a few rows teach is not worth a test.
        return Contestant(name, tuple(words), judge=None if text == "few" else judge, **rest)

    def ours(suffix: str, *options: str, text: str = "train", epochs: int = 1, **rest: Any) -> Any:
        words = (*TRAIN, str(texts.path(text)), "-o", str(own), *options)
        rest |= {"n_bytes": epochs * texts.size(text)}
        rest |= {"against": {"x vw": PEER + suffix * (suffix != DEFAULT)}}
        return train(OURS + suffix, words, partial(own_error, own, texts), text, **rest)

    def theirs(
        suffix: str, *options: str, text: str = "train", epochs: int = 1, **rest: Any
    ) -> Any:
        words = (*VW, "-d", str(texts.path(text, "vw")), "-f", str(vw), *options)
        rest |= {"n_bytes": epochs * texts.size(text, "vw")}
        return train(PEER + suffix, words, partial(vw_error, vw, texts), text, **rest)

    plain = ("--algo", "perceptron", "--no-fit-intercept")
    there, new = ("--cache", str(cache_of(texts, "float64"))), ("--cache", str(made["smcache"]))
    contestants = [
        ours("", *plain), ours(DEFAULT), ours(TWICE, *plain, text="train-twice"),
        ours(KEPT, *plain, *there),
        ours(SEVERAL, *plain, "--epochs", "5", *new, epochs=5, fresh=(made["smcache"],)),
        ours(FEW, *plain, text="few"),
    ]  # fmt: skip
    if has_vw():
        several = ("--passes", "5", "--holdout_off", "--cache_file", str(made["cache"]))
        contestants += [
            theirs(""), theirs(TWICE, text="train-twice"),
            theirs(KEPT, "--cache_file", str(cache_of(texts, "vw"))),
            theirs(SEVERAL, *several, epochs=5, fresh=(made["cache"],)), theirs(FEW, text="few"),
        ]  # fmt: skip
    for solver in ("3", "1") if has_liblinear() else ():
        words = (LIBLINEAR, "-s", solver)
        rest = ("-q", str(texts.path("train")), str(liblinear))
        judge = partial(liblinear_error, liblinear, texts)
        against, n_bytes = {"x vw": PEER}, texts.size("train")
        contestants.append(
            train(
                " ".join(words), (*words, *rest), judge, "train", n_bytes=n_bytes, against=against
            )
        )
    return contestants


READER, PACKED = "load_svmlight_file", "load_svmlight_file, gz"
KINDS = {READER: "svm", PACKED: "svm.gz"}
LOADS = {
    "load_svmlight, 2 threads": (READER, {"n_jobs": 2}),
    "load_svmlight, 1 thread": (READER, {"n_jobs": 1}),
    "load_svmlight, 2 threads, float32": (READER, {"n_jobs": 2, "dtype": "float32"}),
    "load_svmlight, 1 thread, float32": (READER, {"n_jobs": 1, "dtype": "float32"}),
    "load_svmlight, gz": (PACKED, {}),
}


def load(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Everybody's loading, in processes that have warmed up on a few rows."""
    contestants = [
        Contestant(name, call_on(texts, "load_svmlight", kind=KINDS[peer], **params),
                   texts.size("train"), {"x sklearn": peer}, True)
        for name, (peer, params) in LOADS.items()
    ] + [
        Contestant(name, call_on(texts, READER, kind=kind), texts.size("train"), {}, True)
        for name, kind in KINDS.items()
    ]  # fmt: skip
    entries = race("load", contestants, n_rounds)
    _check_contents(entries)
    title = "From text to CSR, float64 unless said otherwise, in process (MB of unpacked text)"
    show(title, entries, ["x sklearn"])
    return entries


def _check_contents(entries: list[dict[str, Any]]) -> None:
    """A fast reader that reads something else has won nothing."""
    expected = next(entry["contents"] for entry in entries if entry["contestant"] == READER)
    for entry in entries:
        # float32 values add up to a slightly different sum.
        slack = 1e-5 if "float32" in entry["contestant"] else 0.0
        pairs = zip(entry["contents"], expected, strict=True)
        if any(abs(own - other) > slack * abs(other) for own, other in pairs):
            raise SystemExit(
                f"{entry['contestant']} read {entry['contents']}, where {READER} reads {expected}"
            )


def main() -> None:
    """Run the measurements, print the tables and write them as JSON."""
    parser = parser_of(__doc__, "results/files.json")
    parser.add_argument("--rows", type=int, help=f"of training text ({RCV1_LARGE.n_train})")
    parser.add_argument(
        "--folder", type=Path, default=Path("results/files"),
        help="where the texts are kept (2 GB; results/files)",
    )  # fmt: skip
    # Nobody else is told to compile his modules anew each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    measured: dict[str, Any] = {}

    def on_texts(measurement: Callable[[Texts, int], Any], options: Namespace) -> dict[str, Any]:
        n_rows = options.rows or (QUICK_ROWS if options.quick else RCV1_LARGE.n_train)
        shape = replace(RCV1_LARGE, n_train=n_rows, n_test=n_rows // 10)
        texts = open_texts(options.folder, shape)
        if not measured:
            _describe(texts)
        measured["shape"] = asdict(shape)
        return measured | {measurement.__name__: measurement(texts, options.rounds)}

    parts = {each.__name__: partial(on_texts, each) for each in (fit, process, cache, load)}
    run_parts(parser, parts, (5, 1))


def _describe(texts: Texts) -> None:
    sizes = (f"{texts.size('train', kind) / MEGABYTE:.1f}" for kind in ("svm", "vw", "svm.gz"))
    peer = f", vowpalwabbit {version('vowpalwabbit')}" if has_vw() else ""
    print(
        f"{texts.shape.name}{peer}: {texts.shape.n_train:,} rows, "
        "{} MB of svmlight text, {} MB in vw's format, {} MB as gz".format(*sizes)
    )
    say_who_is_missing()


if __name__ == "__main__":
    main()
