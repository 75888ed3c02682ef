"""Limits of the files and functions of the package that `sparsemargin train` and `fit_csr` cross,
and of how often the command opens its file."""

import subprocess
import sys

import pytest

# Prints the number of times that reviews.tsv is opened, and a line for each function of the package
# that is called, with its file. The second of two runs counts, because the first imports modules.
COUNT = """
import os, sys
import sparsemargin

root, crossed, opened = os.path.dirname(sparsemargin.__file__), set(), []

def note(frame, event, arg):
    place = frame.f_code
    # Class bodies are not optimized. Lambdas and comprehensions belong to their functions.
    is_function = place.co_flags & 1 and not place.co_name.startswith("<")
    if event == "call" and is_function and place.co_filename.startswith(root):
        crossed.add(f"{place.co_filename} {place.co_qualname}")

run()
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
sys.setprofile(note)
run()
sys.setprofile(None)
print(opened.count("reviews.tsv"), *sorted(crossed), sep="\\n")
"""
TRAIN = """
from sparsemargin.cli.app import main

def run():
    main("train -q reviews.tsv -o reviews.model".split(), standalone_mode=False)
"""
FIT_CSR = """
import numpy as np
import scipy.sparse as sp
from sparsemargin import fit_csr

X, y = sp.random(3000, 50, 0.1, format="csr", random_state=0), np.arange(3000) % 2

def run():
    fit_csr(X, y, "arow")
"""


@pytest.mark.parametrize(
    ("run", "n_opened", "n_files", "n_functions"),
    # The goals are 35 files and 230 functions for train, 18 and 100 for fit_csr. Lower these
    # numbers when a trip becomes shorter.
    [(TRAIN, 3, 75, 433), (FIT_CSR, 0, 24, 115)],
    ids=["train", "fit_csr"],
)
def test_trips_cross_few_files_and_functions(tmp_path, run, n_opened, n_files, n_functions):
    lines = [f"{'good' if i % 3 else 'bad'}\tword{i % 7} and {i % 3} more\n" for i in range(3000)]
    (tmp_path / "reviews.tsv").write_text("".join(lines))
    told = subprocess.run(
        [sys.executable, "-c", run + COUNT], cwd=tmp_path, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    opened, *crossed = told.stdout.splitlines()
    assert int(opened) <= n_opened
    assert len(crossed) <= n_functions, told.stdout
    assert len({line.split()[0] for line in crossed}) <= n_files, told.stdout
