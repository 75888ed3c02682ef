"""A short run of each fuzzer, and what they notice when there is something: see fuzz/README.md."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from depth import some

TESTS = Path(__file__).parents[1]
FUZZ = TESTS.parent / "fuzz"

# -- the scanner, under the sanitizers -------------------------------------------------------------

SANITIZERS = "-fsanitize=address,undefined"


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """Return a C++ compiler with the sanitizers' libraries."""
    folder = tmp_path_factory.mktemp("sanitized")
    (folder / "empty.cpp").write_text("int main() {}\n")
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++")):
        command = [*name.split(), SANITIZERS, "empty.cpp", "-o", "empty"]
        if shutil.which(command[0]) and works(command, folder) and works(["./empty"], folder):
            return name.split()
    pytest.skip("no C++ compiler with the address and undefined-behaviour sanitizers")


def works(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "extra", [[], ["-U__SSE2__", "-DSM_STRTOD"]], ids=["as compiled", "portable"]
)
def test_corpus_and_mutations(compiler, tmp_path, extra):
    program = tmp_path / "replay"
    sources = [FUZZ / "scan_fuzzer.cpp", FUZZ / "replay.cpp"]
    # To optimise would take most of the time.
    flags = ["-std=c++17", "-O0", SANITIZERS, "-fno-sanitize-recover=all", *extra]
    subprocess.run([*compiler, *flags, *sources, "-o", program], check=True)
    corpus = sorted((FUZZ / "corpus").iterdir())
    command = [program, "5000", FUZZ / "svmlight.dict", *corpus]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == f"{len(corpus)} files and 5000 mutations: nothing found\n"


# -- the fuzzers in Python -------------------------------------------------------------------------

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
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("fuzzer", "n"), [("arrays", 60), ("model_files", some(600, 5000)), ("row_caches", 60)]
)
def test_nothing_is_found(fuzzer, n, tmp_path):
    # Without the process that watches, which would only import everything once more.
    (tmp_path / "place").write_bytes(bytes(8))
    place = ["--place", str(tmp_path / "place"), "--first", "0", "--last", str(n)]
    outcome = run(FUZZ / f"{fuzzer}.py", "--seed", "1", *place)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count("\n") == 1, outcome.stdout
    assert sum(json.loads(outcome.stdout)["outcomes"].values()) >= n


def test_crashes_and_errors_are_found_and_cut_down(tmp_path):
    (tmp_path / "planted.py").write_text(PLANTED)
    outcome = run(tmp_path / "planted.py", "8")
    assert outcome.returncode == 1
    assert "--- death by 11:" in outcome.stdout
    assert "--first 3 --kept '1'" in outcome.stdout
    assert "Segmentation fault" in outcome.stdout
    assert "--- AssertionError at planted.py:" in outcome.stdout
    assert "--first 5 --kept ''" in outcome.stdout
    assert outcome.stdout.count("\n--- ") == 2


@pytest.mark.parametrize(
    ("first", "kept", "found"), [(3, "0,2", None), (3, "1", "death by 11: "), (8, "", "hang: ")]
)
def test_what_was_found_is_run_again_by_its_number(tmp_path, first, kept, found):
    (tmp_path / "planted.py").write_text(PLANTED)
    outcome = run(tmp_path / "planted.py", "1", "--first", str(first), "--kept", kept)
    assert outcome.returncode == (found is not None)
    if found:
        assert f"--- {found}" in outcome.stdout
        assert "in check" in outcome.stdout
