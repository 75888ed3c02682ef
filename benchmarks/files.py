"""From a file to a model, compared with vw and scikit-learn: time and memory.

There are four measurements on the same rows, as svmlight text and in vw's own format, with a warm
page cache: one epoch within a process, whole processes as started from a shell, epochs from a
cache, and loading. Every run has a new process. vw is included if installed (sparsemargin[bench]).

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

from sparsemargin.files.atomic import replacing
from sparsemargin.readers.load_svmlight import load_svmlight
from sparsemargin.tasks.load_model import load_model

MEGABYTE = 1e6
FEW_ROWS = 100
QUICK_ROWS = 10_000


@dataclass(frozen=True)
class Texts:
    """The texts of one draw, in a separate folder: ``train``, ``train-twice`` (the same rows
    twice), ``few`` (its first rows) and ``test``, each as ``NAME.svm`` and as ``NAME.vw``."""

    folder: Path
    shape: Shape

    def path(self, name: str, kind: str = "svm") -> Path:
        return self.folder / f"{name}.{kind}"

    def size(self, name: str, kind: str = "svm") -> int:
        return self.path(name, kind).stat().st_size


def open_texts(folder: Path, shape: Shape) -> Texts:
    """Return the texts; missing ones are written."""
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
    """Write a file from another one, unless it exists."""
    if not path.exists():
        with source.open("rb") as text, replacing(path) as out:
            write(text, out)


def _as_vw(text: BinaryIO, out: BinaryIO) -> None:
    """Convert `+1 137:0.165224 ...` to `1 |f 137:0.165224 ...`."""
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
    """A process that reads a text of known size. `against` maps headers of ratios to the
    contestants compared with. If `reports`, it prints its seconds and memory in its last line.
    `judge` returns the test error of its result."""

    name: str
    command: tuple[str, ...]
    n_bytes: int
    against: dict[str, str] = field(default_factory=dict)
    reports: bool = False
    judge: Callable[[], float] | None = None


def call_on(texts: Texts, name: str, call: str, against: dict[str, str], **params: Any) -> Any:
    """The contestant that makes a call of launch.py on the training text, in its format."""
    kind = "vw" if call == "vw" else "svm"
    paths = {"few": "few", "text": "train", "test": "test"}
    wanted = {key: str(texts.path(name, kind)) for key, name in paths.items()}
    command = (*CALLER, json.dumps(wanted | {"call": call, "params": params}))
    return Contestant(name, command, texts.size("train", kind), against, reports=True)


def run(contestant: Contestant) -> dict[str, Any]:
    """Run the contestant once, and return its costs."""
    command = [*LAUNCHER, *contestant.command]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    *before, last = printed.splitlines()
    facts = json.loads(before[-1] if contestant.reports else last)
    if contestant.judge is not None:
        facts["test_error"] = contestant.judge()
    return facts


def race(contestants: Sequence[Contestant], n_rounds: int) -> list[dict[str, Any]]:
    """Run all contestants, taking turns. Return the seconds and their ratios, the largest peak and
    the mean error of each."""
    runs: dict[str, list] = {contestant.name: [] for contestant in contestants}
    for _, contestant in turns(contestants, n_rounds):
        runs[contestant.name].append(run(contestant))
    seconds = {
        name: minimum_and_median([one["seconds"] for one in of]) for name, of in runs.items()
    }
    entries = []
    for each in contestants:
        own, of = seconds[each.name], runs[each.name]
        errors = [run["test_error"] for run in of if "test_error" in run]
        times = {header: ratios(seconds[other], own) for header, other in each.against.items()
                 if other in seconds}  # fmt: skip
        entries.append(
            {"contestant": each.name, "seconds": own, "times": times,
             "megabytes_per_second": each.n_bytes / MEGABYTE / own["min"],
             "peak_bytes": max(run["peak_bytes"] for run in of),
             "test_error": mean(errors) if errors else None, "contents": of[0].get("contents")}
        )  # fmt: skip
    return entries


VW = (sys.executable, "-m", "vowpalwabbit", "--quiet")


def has_vw() -> bool:
    return find_spec("vowpalwabbit") is not None


PEER, SGD = "vw", "load_svmlight_file, SGDClassifier"
AGAINST = {"x vw": PEER, "x sklearn": SGD}
# The contestants of scikit-learn have no intercept, either.
PLAIN = {"algo": "perceptron", "fit_intercept": False}
PERCEPTRON = "fit_svmlight, Perceptron"
#: The calls and their arguments, by the names used in tables.
FITS: dict[str, tuple[str, dict[str, Any]]] = {
    PERCEPTRON: ("fit_svmlight", PLAIN),
    f"{PERCEPTRON}, 1 thread": ("fit_svmlight", PLAIN | {"n_jobs": 1}),
    f"{PERCEPTRON}, float32": ("fit_svmlight", PLAIN | {"dtype": "float32"}),
    "fit_svmlight, default (AROW)": ("fit_svmlight", {}),
    PEER: ("vw", {}),
    SGD: ("sklearn", PEER_EPOCH | {"random_state": 0}),
}


def fit(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time one epoch of all contestants in processes that have warmed up on a few rows."""
    contestants = [
        call_on(texts, name, call, AGAINST, **params)
        for name, (call, params) in FITS.items()
        if call != "vw" or has_vw()
    ]
    return race(contestants, n_rounds)


# Number of further epochs, from which the time of one is computed.
FURTHER = 5
CACHED = {"Perceptron, rows in order": PLAIN | {"shuffle": False}, "Perceptron, shuffled": PLAIN}


def cache(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time one epoch and several, all from existing caches: seconds of the ``first`` epoch,
    including the verification of the cache, and of a ``further`` one."""
    names = ([PEER] if has_vw() else []) + list(CACHED)
    for name in ("svm.smcache", "vw.cache"):
        texts.path("train", name).unlink(missing_ok=True)
    short, long = ([_cached(texts, name, n) for name in names] for n in (1, 1 + FURTHER))
    for contestant in short:
        run(contestant)  # creates the cache
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
    title = f"{name}, epochs: {n_epochs}"
    if name == PEER:
        options = ["--passes", str(n_epochs), "--holdout_off"] if n_epochs > 1 else []
        return call_on(texts, title, "vw", {}, cached=True, options=options)
    params = {"cached": True, "max_iter": n_epochs, "random_state": 0} | CACHED[name]
    return call_on(texts, title, "fit_svmlight", {}, **params)


OURS = "sparsemargin train"
TRAIN = (sys.executable, "-m", "sparsemargin", "train", "--quiet")


def process(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time `sparsemargin train` and vw as called from a shell, including their start."""
    plain = ("--algo", "perceptron", "--no-fit-intercept")
    with tempfile.TemporaryDirectory() as folder:
        own, vw = (Path(folder, f"{name}.model") for name in ("own", "vw"))

        def ours(suffix: str, text: str, *options: str) -> Contestant:
            command = (*TRAIN, str(texts.path(text)), "-o", str(own), *options)
            # A model trained on a few rows is not tested.
            judge = None if text == "few" else partial(own_error, own, texts)
            against = {"x vw": PEER} if text == "train" else {}
            return Contestant(OURS + suffix, command, texts.size(text), against, judge=judge)

        contestants = [
            ours("", "train", *plain), ours(", default (AROW)", "train"),
            ours(", twice the text", "train-twice", *plain),
            ours(f", {FEW_ROWS} rows", "few", *plain),
        ]  # fmt: skip
        if has_vw():
            command = (*VW, "-d", str(texts.path("train", "vw")), "-f", str(vw))
            judge = partial(launch.vw_error, vw, texts.path("test", "vw"))
            contestants.append(Contestant(PEER, command, texts.size("train", "vw"), judge=judge))
        run(contestants[0])  # lets Python write its byte code
        entries = race(contestants, n_rounds)
    return entries


def own_error(model_file: Path, texts: Texts) -> float:
    """The test error of a model saved by `sparsemargin train`."""
    model = load_model(model_file)
    X, y = load_svmlight(texts.path("test"))
    X.resize(X.shape[0], model.n_features_in_)
    return float((model.predict(X) != y).mean())


READER = "load_svmlight_file"
LOADS: dict[str, tuple[str, dict[str, Any]]] = {
    f"load_svmlight, {n} thread{'s' * (n > 1)}": ("load_svmlight", {"n_jobs": n}) for n in (2, 1)
} | {READER: (READER, {})}


def load(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time loading by all contestants, in processes that have warmed up on a few rows."""
    contestants = [
        call_on(texts, name, call, {"x sklearn": READER} if name != READER else {}, **params)
        for name, (call, params) in LOADS.items()
    ]
    entries = race(contestants, n_rounds)
    check_contents(entries)
    return entries


def check_contents(entries: list[dict[str, Any]]) -> None:
    """Raise an error if the readers have not read the same contents."""
    for entry in entries:
        if entry["contents"] != entries[-1]["contents"]:
            raise SystemExit(
                f"{entry['contestant']} read {entry['contents']}, where "
                f"{entries[-1]['contestant']} reads {entries[-1]['contents']}"
            )


def measured_on_texts(
    measurement: Callable[[Texts, int], Any], options: Namespace
) -> dict[str, Any]:
    """The report of a measurement, with the shape of the texts."""
    n_rows = options.rows or (QUICK_ROWS if options.quick else RCV1_LARGE.n_train)
    shape = replace(RCV1_LARGE, n_train=n_rows, n_test=n_rows // 10)
    texts = open_texts(options.folder, shape)
    sizes = (f"{texts.size('train', kind) / MEGABYTE:.1f}" for kind in ("svm", "vw"))
    peer = f"vowpalwabbit {version('vowpalwabbit')}" if has_vw() else "vw, not installed, LEFT OUT"
    of_texts = "{} MB of svmlight text, {} MB in vw's format".format(*sizes)
    print(f"\n{shape.name}: {n_rows:,} rows, {of_texts}; {peer}")
    return {"shape": asdict(shape), measurement.__name__: measurement(texts, options.rounds)}


if __name__ == "__main__":
    parser = parser_of(__doc__, "results/files.json")
    parser.add_argument("--rows", type=int, help=f"of training text ({RCV1_LARGE.n_train})")
    parser.add_argument(
        "--folder", type=Path, default=Path("results/files"),
        help="where the texts are kept (2 GB; results/files)",
    )  # fmt: skip
    # With this variable, each process would compile the Python modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parts = {
        each.__name__: partial(measured_on_texts, each) for each in (fit, process, cache, load)
    }
    run_parts(parser, parts, (5, 1))
