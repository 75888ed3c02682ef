"""From a text to a CSR matrix."""

from typing import Any

from files_race import Aim, Contestant, at_least, call_on, race, table
from files_texts import Texts

PLAIN, PACKED = "load_svmlight_file", "load_svmlight_file, gz"
TWO_THREADS = "load_svmlight, 2 threads"
KINDS = {PLAIN: "svm", PACKED: "svm.gz"}
OURS = {
    TWO_THREADS: (PLAIN, {"n_jobs": 2}),
    "load_svmlight, 1 thread": (PLAIN, {"n_jobs": 1}),
    "load_svmlight, 2 threads, float32": (PLAIN, {"n_jobs": 2, "dtype": "float32"}),
    "load_svmlight, 1 thread, float32": (PLAIN, {"n_jobs": 1, "dtype": "float32"}),
    "load_svmlight, gz": (PACKED, {}),
}
HEADER = "x sklearn"


def measure(texts: Texts, n_rounds: int) -> list[dict[str, Any]]:
    """Time the loading of everybody in processes that have warmed up on a few rows."""
    n_bytes = texts.size("train")
    peers = [
        Contestant(name, call_on(texts, name.partition(",")[0], kind=kind), n_bytes, {}, True)
        for name, kind in KINDS.items()
    ]
    ours = [
        Contestant(
            name, call_on(texts, "load_svmlight", kind=KINDS[peer], **params), n_bytes,
            {HEADER: peer}, True,
        )
        for name, (peer, params) in OURS.items()
    ]  # fmt: skip
    entries = race("load", [*ours, *peers], n_rounds)
    _check_contents(entries)
    return entries


def _check_contents(entries: list[dict[str, Any]]) -> None:
    """A fast reader that reads something else has won nothing."""
    expected = next(entry["contents"] for entry in entries if entry["contestant"] == PLAIN)
    for entry in entries:
        # float32 values add up to a slightly different sum.
        slack = 1e-5 if "float32" in entry["contestant"] else 0.0
        pairs = zip(entry["contents"], expected, strict=True)
        if any(abs(own - other) > slack * abs(other) for own, other in pairs):
            raise SystemExit(
                f"{entry['contestant']} read {entry['contents']}, where {PLAIN} reads {expected}"
            )


def show(entries: list[dict[str, Any]]) -> None:
    """Print the table."""
    print("\nFrom text to CSR, float64 unless said otherwise, in process (MB of unpacked text)\n")
    print(table(entries, [HEADER]))


def aims(entries: list[dict[str, Any]]) -> list[Aim]:
    """What was wanted of the loader."""
    what = "load_svmlight on two threads: times load_svmlight_file"
    return [at_least(what, 40, entries, TWO_THREADS, HEADER)]
