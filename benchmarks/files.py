"""From a file to a model, beside vw and scikit-learn: how fast, in how much memory?

Four measurements on the same rows, as svmlight text and in vw's own format, the page cache warm:
one epoch within a process; whole processes, as from a shell; epochs from a cache; and loading.
Every run is a process of its own, the contestants take turns. Seconds are the least and the median
of the rounds, ratios those of the least. Quote the ratios: they were measured side by side in one
run. The times belong to the machine. MB are millions of bytes.

vw takes part where it is installed (pip install "sparsemargin[bench]").

    python benchmarks/files.py [--only fit process cache load] [--rows N] [--rounds N]
"""

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
from statistics import mean
from typing import Any, BinaryIO

import launch
import numpy as np
from corpora import RCV1_LARGE, Shape, draw_corpus
from epoch import PEER_EPOCH
from scipy.sparse import csr_matrix
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
    """Texts of one draw, in a folder of their own: ``train``, ``train-twice`` (the same twice
    over), ``few`` (its first rows) and ``test``, each as ``NAME.svm`` and as ``NAME.vw``."""

    folder: Path
    shape: Shape

    def path(self, name: str, kind: str = "svm") -> Path:
        return self.folder / f"{name}.{kind}"

    def size(self, name: str, kind: str = "svm") -> int:
        return self.path(name, kind).stat().st_size


def open_texts(folder: Path, shape: Shape) -> Texts:
    """Return the texts, having written those that are not there."""
    texts = Texts(folder / f"{shape.name}-{shape.n_train}", shape)
    texts.folder.mkdir(parents=True, exist_ok=True)
    if not (texts.path("train").exists() and texts.path("test").exists()):
        corpus = draw_corpus(shape)
        for name, X, y in (("train", corpus.X, corpus.y), ("test", corpus.X_test, corpus.y_test)):
            with replacing(texts.path(name)) as out:
                out.writelines(_svmlight_lines(X, y))
    for name in "train", "test":
        _once(texts.path(name, "vw"), texts.path(name), _as_vw)
    for kind in ("svm", "vw"):
        _once(texts.path("few", kind), texts.path("train", kind), _head)
    _once(texts.path("train-twice"), texts.path("train"), _twice)
    return texts


def _svmlight_lines(X: csr_matrix, y: np.ndarray) -> Iterator[bytes]:
    for i, label in enumerate(y):
        row = slice(X.indptr[i], X.indptr[i + 1])
        entries = zip((X.indices[row] + 1).tolist(), X.data[row].tolist(), strict=True)
        yield f"{label:+.0f} {' '.join(map('%d:%.6f'.__mod__, entries))}\n".encode()


def _once(path: Path, source: Path, write: Callable[[BinaryIO, BinaryIO], None]) -> None:
    """Write a file from another one, unless it is there."""
    if not path.exists():
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


LAUNCHER = (sys.executable, "-I", "-S", launch.__file__, "command")
CALLER = (sys.executable, launch.__file__, "call")


@dataclass(frozen=True)
class Contestant:
    """One line of a race: a process that goes through `n_bytes` of text in one run.

    `against` are headers of ratios, and the contestants that these are to. Where it `reports`, its
    last line tells its own seconds and memory; they are the whole process's otherwise. `judge`
    returns the test error of what it left behind.
    """

    name: str
    command: tuple[str, ...]
    n_bytes: int
    against: dict[str, str] = field(default_factory=dict)
    reports: bool = False
    judge: Callable[[], float] | None = None


def call_on(texts: Texts, name: str, call: str, against: dict[str, str], **params: Any) -> Any:
    """The contestant who makes a call of launch.py on the text to learn from, in its format."""
    kind = "vw" if call == "vw" else "svm"
    paths = {"few": "few", "text": "train", "test": "test"}
    wanted = {key: str(texts.path(name, kind)) for key, name in paths.items()}
    command = (*CALLER, json.dumps(wanted | {"call": call, "params": params}))
    return Contestant(name, command, texts.size("train", kind), against, reports=True)


def run(contestant: Contestant) -> dict[str, Any]:
    """Run the contestant once, and return what that took."""
    command = [*LAUNCHER, *contestant.command]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    *before, last = printed.splitlines()
    facts = json.loads(before[-1] if contestant.reports else last)
    if contestant.judge is not None:
        facts["test_error"] = contestant.judge()
    return facts


def race(contestants: Sequence[Contestant], n_rounds: int) -> list[dict[str, Any]]:
    """Run all contestants in turn, for so many rounds.

    Returned: one entry for each: ``seconds`` and their ratios ``times`` (``min`` and
    ``median``), MB of text a second at its fastest, the least CPU time, the largest peak of its
    memory, the mean ``test_error`` if there is one, and whatever else its runs told.
    """
    runs: dict[str, list] = {contestant.name: [] for contestant in contestants}
    for _, contestant in turns(contestants, n_rounds):
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
        "test_error": mean(errors) if errors else None, "contents": runs[0].get("contents"),
    }  # fmt: skip


VW = (sys.executable, "-m", "vowpalwabbit", "--quiet")


def has_vw() -> bool:
    return find_spec("vowpalwabbit") is not None


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
    PEER: ("vw", {}),
    SGD: ("sklearn", PEER_EPOCH | {"random_state": 0}),
}


def fit(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """One epoch of everybody in processes that have warmed up on a few rows."""
    contestants = [
        call_on(texts, name, call, AGAINST, **params)
        for name, (call, params) in FITS.items()
        if call != "vw" or has_vw()
    ]
    return race(contestants, n_rounds)


# What an epoch takes that is not the first: a so-manieth of what these add to a run.
FURTHER = 5
CACHED = {"Perceptron, rows in order": PLAIN | {"shuffle": False}, "Perceptron, shuffled": PLAIN}


def cache(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """One epoch and several, all from caches that are there.

    Seconds are of the ``first`` epoch, the opening of the cache and its verification included, and
    of a ``further`` one.
    """
    names = ([PEER] if has_vw() else []) + list(CACHED)
    for name in ("svm.smcache", "vw.cache"):
        texts.path("train", name).unlink(missing_ok=True)
    short, long = ([_cached(texts, name, n) for name in names] for n in (1, 1 + FURTHER))
    for contestant in short:
        run(contestant)  # makes the cache
    raced = {each["contestant"]: each for each in race([*short, *long], n_rounds)}
    entries = []
    for name, *fits in zip(names, short, long, strict=True):
        few, many = (raced[each.name] for each in fits)
        first = few["seconds"]
        further = {of: (many["seconds"][of] - first[of]) / FURTHER for of in first}
        entry = {"contestant": name, "first": first, "further": further}
        megabytes = fits[0].n_bytes / MEGABYTE
        entry["megabytes_per_second"] = {of: megabytes / entry[of]["min"] for of in EPOCHS}
        entries.append(entry | {key: many[key] for key in ("peak_bytes", "test_error")})
    for own in entries:
        vw = entries[0]
        times = {of: vw[of]["min"] / own[of]["min"] for of in EPOCHS} if PEER in names else {}
        own["times"] = times
    return entries


EPOCHS = ("first", "further")


def _cached(texts: Texts, name: str, n_epochs: int) -> Contestant:
    told = f"{name}, epochs: {n_epochs}"
    if name == PEER:
        options = ["--passes", str(n_epochs), "--holdout_off"] if n_epochs > 1 else []
        return call_on(texts, told, "vw", {}, cached=True, options=options)
    params = {"cached": True, "max_iter": n_epochs, "random_state": 0} | CACHED[name]
    return call_on(texts, told, "fit_svmlight", {}, **params)


OURS = "sparsemargin train"
TRAIN = (sys.executable, "-m", "sparsemargin", "train", "--quiet")


def process(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """`sparsemargin train` and vw as they are called from a shell, start-up included."""
    plain = ("--algo", "perceptron", "--no-fit-intercept")
    with tempfile.TemporaryDirectory() as folder:
        own, vw = (Path(folder, f"{name}.model") for name in ("own", "vw"))

        def ours(suffix: str, text: str, *options: str) -> Contestant:
            command = (*TRAIN, str(texts.path(text)), "-o", str(own), *options)
            # What a few rows teach is not worth a test.
            judge = None if text == "few" else partial(own_error, own, texts)
            against = {"x vw": PEER} if text == "train" else {}
            return Contestant(OURS + suffix, command, texts.size(text), against, judge=judge)

        contestants = [
            ours("", "train", *plain), ours(", default (ALMA)", "train"),
            ours(", twice the text", "train-twice", *plain),
            ours(f", {FEW_ROWS} rows", "few", *plain),
        ]  # fmt: skip
        if has_vw():
            command = (*VW, "-d", str(texts.path("train", "vw")), "-f", str(vw))
            judge = partial(launch.vw_error, vw, texts.path("test", "vw"))
            contestants.append(Contestant(PEER, command, texts.size("train", "vw"), judge=judge))
        run(contestants[0])  # Python keeps its byte code
        entries = race(contestants, n_rounds)
    return entries


def own_error(model_file: Path, texts: Texts) -> float:
    """The test error of a model that `sparsemargin train` has saved."""
    model = load_model(model_file)
    X, y = load_svmlight(texts.path("test"))
    X.resize(X.shape[0], model.n_features_in_)
    return float((model.predict(X) != y).mean())


READER = "load_svmlight_file"
LOADS: dict[str, tuple[str, dict[str, Any]]] = {
    f"load_svmlight, {n} thread{'s' * (n > 1)}": ("load_svmlight", {"n_jobs": n}) for n in (2, 1)
} | {READER: (READER, {})}


def load(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Everybody's loading, in processes that have warmed up on a few rows."""
    contestants = [
        call_on(texts, name, call, {"x sklearn": READER} if name != READER else {}, **params)
        for name, (call, params) in LOADS.items()
    ]
    entries = race(contestants, n_rounds)
    check_contents(entries)
    return entries


def check_contents(entries: list[dict[str, Any]]) -> None:
    """A fast reader that reads something else has won nothing."""
    for entry in entries:
        if entry["contents"] != entries[-1]["contents"]:
            raise SystemExit(
                f"{entry['contestant']} read {entry['contents']}, where "
                f"{entries[-1]['contestant']} reads {entries[-1]['contents']}"
            )


def measured_on_texts(
    measurement: Callable[[Texts, int], Any], options: Namespace
) -> dict[str, Any]:
    """What a measurement reports, with the texts' shape."""
    n_rows = options.rows or (QUICK_ROWS if options.quick else RCV1_LARGE.n_train)
    shape = replace(RCV1_LARGE, n_train=n_rows, n_test=n_rows // 10)
    texts = open_texts(options.folder, shape)
    sizes = (f"{texts.size('train', kind) / MEGABYTE:.1f}" for kind in ("svm", "vw"))
    peer = f"vowpalwabbit {version('vowpalwabbit')}" if has_vw() else "vw, not installed, LEFT OUT"
    told = "{} MB of svmlight text, {} MB in vw's format".format(*sizes)
    print(f"\n{shape.name}: {n_rows:,} rows, {told}; {peer}")
    return {"shape": asdict(shape), measurement.__name__: measurement(texts, options.rounds)}


if __name__ == "__main__":
    parser = parser_of(__doc__, "results/files.json")
    parser.add_argument("--rows", type=int, help=f"of training text ({RCV1_LARGE.n_train})")
    parser.add_argument(
        "--folder", type=Path, default=Path("results/files"),
        help="where the texts are kept (2 GB; results/files)",
    )  # fmt: skip
    # Nobody else is told to compile his modules anew each time.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parts = {
        each.__name__: partial(measured_on_texts, each) for each in (fit, process, cache, load)
    }
    run_parts(parser, parts, (5, 1))
