"""How many files and functions of the package one call crosses, and how often it opens a file."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs the code in argv[1], and prints the numbers of files and functions of the package whose
# Python code has run, and of openings of the file in argv[2].
_COUNT = """
import builtins, io, os, sys
import sparsemargin
code, name = sys.argv[1:]
root, crossed, opened = os.path.dirname(sparsemargin.__file__), set(), []

def note(frame, event, arg):
    place = frame.f_code
    # Class bodies are not optimized; lambdas and comprehensions count as part of their functions.
    is_function = place.co_flags & 1 and not place.co_name.startswith("<")
    if event == "call" and is_function and place.co_filename.startswith(root):
        crossed.add((place.co_filename, place.co_qualname, place.co_firstlineno))

def hook(event, args):
    if event == "open" and isinstance(args[0], (str, os.PathLike)):
        opened.append(os.path.abspath(os.fspath(args[0])))

exec(code.partition("#RUN")[0])
sys.addaudithook(hook)
sys.setprofile(note)
try:
    exec(code.partition("#RUN")[2])
finally:
    sys.setprofile(None)
    for each in sorted(crossed):
        print(*each, file=sys.stderr)
    print(len({each[0] for each in crossed}), len(crossed), opened.count(os.path.abspath(name)))
"""
_TRAIN = """
from sparsemargin.cli.app import main
main(["train", "-q", "reviews.tsv", "-o", "before"], standalone_mode=False)
#RUN
main(["train", "-q", "reviews.tsv", "-o", "m"], standalone_mode=False)
"""


def counts(code, name, folder):
    """Return the numbers of files and functions crossed, and of openings of the file."""
    run = subprocess.run(
        [sys.executable, "-c", _COUNT, code, name], cwd=folder, capture_output=True, text=True
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return (*map(int, run.stdout.split()[-3:]), run.stderr)


@pytest.fixture
def reviews(tmp_path):
    lines = [f"{'good' if i % 3 else 'bad'}\tsome words {i % 7} and {i % 3} more\n"
             for i in range(3000)]  # fmt: skip
    (tmp_path / "reviews.tsv").write_text("".join(lines))
    return tmp_path


# The goal is 35 files and 230 functions. Lower these numbers when the trip becomes shorter.
def test_train_crosses_few_files_and_functions_and_opens_its_file_thrice(reviews):
    n_files, n_functions, n_opened, crossed = counts(_TRAIN, "reviews.tsv", reviews)
    assert n_files <= 72, crossed
    assert n_functions <= 390, crossed
    assert n_opened <= 3
