"""Limits of the files and functions of the package that `sparsemargin train` crosses, and of how
often it opens its file."""

import subprocess
import sys

# Prints the number of times that reviews.tsv is opened, and a line for each function of the package
# that is called, with its file. The second of two runs counts, because the first imports modules.
TRAIN = """
import os, sys
import sparsemargin
from sparsemargin.cli.app import main

root, crossed, opened = os.path.dirname(sparsemargin.__file__), set(), []

def note(frame, event, arg):
    place = frame.f_code
    # Class bodies are not optimized. Lambdas and comprehensions belong to their functions.
    is_function = place.co_flags & 1 and not place.co_name.startswith("<")
    if event == "call" and is_function and place.co_filename.startswith(root):
        crossed.add(f"{place.co_filename} {place.co_qualname}")

main("train -q reviews.tsv -o a.model".split(), standalone_mode=False)
sys.addaudithook(lambda event, args: event == "open" and opened.append(str(args[0])))
sys.setprofile(note)
main("train -q reviews.tsv -o b.model".split(), standalone_mode=False)
sys.setprofile(None)
print(opened.count("reviews.tsv"), *sorted(crossed), sep="\\n")
"""


def test_train_crosses_few_files_and_functions_and_opens_its_file_three_times(tmp_path):
    lines = [f"{'good' if i % 3 else 'bad'}\tword{i % 7} and {i % 3} more\n" for i in range(3000)]
    (tmp_path / "reviews.tsv").write_text("".join(lines))
    told = subprocess.run(
        [sys.executable, "-c", TRAIN], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    n_opened, *crossed = told.stdout.splitlines()
    assert int(n_opened) <= 3
    # The goal is 230 functions in 35 files. Lower these numbers when the trip becomes shorter.
    assert len(crossed) <= 476, told.stdout
    assert len({line.split()[0] for line in crossed}) <= 87, told.stdout
