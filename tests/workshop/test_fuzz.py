"""A short run of each fuzzer, and its reports about planted faults: see fuzz/README.md."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from depth import long, some

TESTS = Path(__file__).parents[1]
FUZZ = TESTS.parent / "fuzz"
SANITIZERS = "-fsanitize=address,undefined"


def call(*command, **how):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, **how)


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """Return a C++ compiler with the sanitizers' libraries."""
    folder = tmp_path_factory.mktemp("sanitized")
    (folder / "empty.cpp").write_text("int main() {}\n")
    for name in filter(shutil.which, (os.environ.get("CXX", ""), "g++", "clang++")):
        compiled = call(name, SANITIZERS, folder / "empty.cpp", "-o", folder / "empty")
        if compiled.returncode == 0 and call(folder / "empty").returncode == 0:
            return name
    pytest.skip("no C++ compiler with the address and undefined-behaviour sanitizers")


@pytest.mark.parametrize("extra", some([()], [(), ("-U__SSE2__", "-DSM_STRTOD")]))
def test_corpus_and_mutations(compiler, tmp_path, extra):
    # Optimization would take most of the time.
    flags = ("-std=c++17", "-O0", SANITIZERS, "-fno-sanitize-recover=all", *extra)
    sources = (FUZZ / "scan_fuzzer.cpp", FUZZ / "replay.cpp")
    built = call(compiler, *flags, *sources, "-o", tmp_path / "replay")
    assert built.returncode == 0, built.stderr
    corpus = sorted((FUZZ / "corpus").iterdir())
    replayed = call(tmp_path / "replay", 5000, FUZZ / "svmlight.dict", *corpus)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert replayed.stdout == f"{len(corpus)} files and 5000 mutations: nothing found\n"


@pytest.mark.parametrize(
    "kind", some(["sorting"], ["beyond_the_padding", "inexact", "sorting", "whole_digits"])
)
def test_scanner_with_a_planted_bug_compiles(compiler, tmp_path, monkeypatch, kind):
    monkeypatch.syspath_prepend(FUZZ)
    planted_bugs = importlib.import_module("planted_bugs")
    (bug,) = (bug for bug in planted_bugs.SCANNER_BUGS if bug.room == kind)
    planted_bugs.write_broken_copy(bug, tmp_path / "copy")
    fuzzer = tmp_path / "copy" / "fuzz" / "scan_fuzzer.cpp"
    compiled = call(compiler, "-std=c++17", "-fsyntax-only", fuzzer)
    assert compiled.returncode == 0, compiled.stderr


@long
def test_random_texts(compiler, tmp_path):
    flags = ("-std=c++17", "-O1", SANITIZERS, "-fno-sanitize-recover=all")
    headers = FUZZ.parent / "sparsemargin" / "_engine" / "text"
    fuzzer = tmp_path / "fuzzer"
    built = call(compiler, *flags, f"-I{headers}", FUZZ / "text_fuzzer.cpp", "-o", fuzzer)
    assert built.returncode == 0, built.stderr
    found = call(fuzzer, 0, 2000)
    assert found.returncode == 0, found.stdout + found.stderr


PLANTED = """
import faulthandler
import time

import harness
import numpy as np

harness.PATIENCE = 1
SECOND_OF_3 = np.random.RandomState([0, 3, 2]).randint(10**9)


class Planted:
    MOST_CHANGES = 3

    def __init__(self, folder):
        pass

    def check(self, given):
        if SECOND_OF_3 in [random.randint(10**9) for random in given.changes(3)]:
            faulthandler._sigsegv()
        assert given.number != 5, "five"
        if given.number == 8:
            time.sleep(600)
        given.outcomes["fine"] += 1


harness.main(Planted)
"""


def run(script, *arguments):
    paths = [str(TESTS.parent), str(TESTS), str(FUZZ), os.environ.get("PYTHONPATH", "")]
    own = {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    return call(sys.executable, script, *arguments, env=os.environ | own)


@pytest.mark.parametrize("fuzzer", ["arrays", "model_files", "row_caches", "tables", "labels"])
def test_fuzzers_find_no_fault(fuzzer, tmp_path):
    n = {"model_files": some(40, 5000), "labels": some(10, 300)}.get(fuzzer, some(20, 60))
    # The supervising process is not started, because it would only repeat all imports.
    (tmp_path / "place").write_bytes(bytes(8))
    place = ("--place", tmp_path / "place", "--first", 0, "--last", n)
    outcome = run(FUZZ / f"{fuzzer}.py", "--seed", 1, *place)
    assert outcome.returncode == 0, outcome.stderr
    assert sum(json.loads(outcome.stdout)["outcomes"].values()) >= n


# For crashes and errors, the input is minimized and reported; the test then runs it again.
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizers end a crash otherwise")
@pytest.mark.parametrize(
    ("arguments", "n_found", "told"),
    [
        ("8", 2, ["death by 11:", "--first 3 --kept '1'", "Segmentation fault",
                  "--- AssertionError at planted.py:", "--first 5 --kept ''"]),
        ("1 --first=3 --kept=0,2", 0, []),
        ("1 --first=3 --kept=1", 1, ["--- death by 11: ", "in check"]),
        ("1 --first=8 --kept=", 1, ["--- hang: ", "in check"]),
    ],
)  # fmt: skip
def test_fuzzers_report_planted_faults(tmp_path, arguments, n_found, told):
    (tmp_path / "planted.py").write_text(PLANTED)
    outcome = run(tmp_path / "planted.py", *arguments.split())
    assert outcome.returncode == (n_found > 0), outcome.stderr
    assert outcome.stdout.count("\n--- ") == n_found, outcome.stdout
    assert all(text in outcome.stdout for text in told), outcome.stdout
