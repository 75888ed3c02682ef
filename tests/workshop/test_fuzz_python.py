"""Some inputs of the fuzzers in Python, and whether they notice what they are there for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FUZZ = TESTS.parent / "fuzz"

# Input 3 crashes where its second change is made, input 5 raises, others end as they should.
PLANTED = """
import faulthandler

import numpy as np
from harness import main

SECOND_OF_3 = np.random.RandomState([0, 3, 2]).randint(10**9)


class Planted:
    MOST_CHANGES = 3

    def __init__(self, folder):
        pass

    def check(self, given):
        if SECOND_OF_3 in [random.randint(10**9) for random in given.changes(3)]:
            faulthandler._sigsegv()
        assert given.number != 5, "five"
        given.outcomes["fine"] += 1


main(Planted)
"""


def run(script, *arguments):
    paths = [str(TESTS.parent), str(TESTS), str(FUZZ), os.environ.get("PYTHONPATH", "")]
    return subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.parametrize("fuzzer", ["arrays", "model_files", "row_caches"])
def test_nothing_is_found(fuzzer):
    outcome = run(FUZZ / f"{fuzzer}.py", "60", "--seed", "1")
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "60 inputs" in outcome.stdout
    assert "findings: none" in outcome.stdout


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


def test_what_was_found_is_run_again_by_its_number(tmp_path):
    (tmp_path / "planted.py").write_text(PLANTED)
    assert run(tmp_path / "planted.py", "1", "--first", "3", "--kept", "0,2").returncode == 0
    assert run(tmp_path / "planted.py", "1", "--first", "3", "--kept", "1").returncode == 1


HANGING = """
import time

import harness

harness.PATIENCE = 3


class Hanging:
    def check(self, given):
        time.sleep(600)

    def __init__(self, folder):
        pass


harness.main(Hanging)
"""


def test_a_hang_is_found_and_ended(tmp_path):
    (tmp_path / "hanging.py").write_text(HANGING)
    outcome = run(tmp_path / "hanging.py", "1", "--kept", "")
    assert outcome.returncode == 1
    assert "--- hang: " in outcome.stdout
    assert "in check" in outcome.stdout
