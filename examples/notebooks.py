"""Run the notebooks and store their output, or check the stored output.

Figures are stored as PNG with few colours. The check compares all printed text. Numbers may differ
by one in their last digit. Cells tagged "timed" print seconds, and their numbers may differ in any
way. A notebook is skipped, with a message, if its data are not in the folder SPARSEMARGIN_DATA.

    python examples/notebooks.py [--check] [NAME ...]
"""

import argparse
import base64
import io
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

EXAMPLES = Path(__file__).parent

# Files that each notebook reads.
DATA = {
    "texts": "texts/trec_train.tsv.gz texts/trec_test.tsv.gz",
    "rcv1": "rcv1_subsets_topics.svm.bz2 rcv1_topics.txt",
    "microarrays": "Lymphoma96x4026.arff.gz lymphoma_labels.csv breast_er_west2001.csv.gz",
    "cells": "",
    "margins": "sonar.mines sonar.rocks",
    "files_and_streams": "",
}
LARGEST = 400_000  # Largest size of a notebook in bytes.
N_COLORS = 64
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")


def missing(name):
    """Return the data files of a notebook that are missing."""
    folder = os.environ.get("SPARSEMARGIN_DATA")
    return [f for f in DATA[name].split() if not (folder and Path(folder, f).exists())]


def read(name):
    """Read a stored notebook."""
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


def executed(name):
    """Run a notebook in a new process, and return it with its output."""
    notebook = read(name)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    first = {"PYTHONPATH": str(EXAMPLES.parent), "PATH": str(Path(sys.executable).parent)}
    environment = os.environ | {
        variable: os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))
        for variable, folder in first.items()
    }
    # All compared classifiers use one thread, so that their times are comparable.
    environment |= dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": EXAMPLES}})
    client.execute(env=environment)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _kept(cell)
    return notebook


def _kept(cell):
    """Return the outputs of a cell for storage: one text, and figures with few colours."""
    streams = [each for each in cell.outputs if each.output_type == "stream"]
    text = "".join(each.text for each in streams)
    if "Traceback (most" in text or any(each.name == "stderr" for each in streams):
        raise ValueError(f"cell {cell.id} complains: {text}")
    others = [each for each in cell.outputs if each.output_type != "stream"]
    for data in (each.data for each in others if "image/png" in each.data):
        image = Image.open(io.BytesIO(base64.b64decode(data["image/png"]))).convert("RGB")
        small = io.BytesIO()
        image.quantize(N_COLORS).save(small, "PNG", optimize=True)
        data["image/png"] = base64.b64encode(small.getvalue()).decode()
        data.pop("text/plain", None)
    return ([nbformat.v4.new_output("stream", text=text)] if text else []) + others


def printed(notebook):
    """Yield the id of each code cell, whether it prints times, and its printed text."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            told = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
            yield cell.id, "timed" in cell.metadata.get("tags", []), "".join(told)


def differences(stored, given):
    """Yield a message for each cell whose output differs from the stored one."""
    for (ident, timed, before), (_, _, now) in zip(printed(stored), printed(given), strict=True):
        shapes = [re.sub(r"[\s-]+", " ", _NUMBER.sub("#", text)) for text in (before, now)]
        numbers = zip(*map(_NUMBER.findall, (before, now)), strict=False)
        if shapes[0] != shapes[1] or not (timed or all(_close(*both) for both in numbers)):
            yield f"cell {ident} is stored with\n{before}\nand gives\n{now}"


def _close(before, now):
    digits = len(before.partition(".")[2])
    values = [float(each.replace(",", "")) for each in (before, now)]
    return abs(values[0] - values[1]) < 1.5 * 10.0**-digits


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*DATA, []])
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    wrong = False
    for name in arguments.names or DATA:
        if absent := missing(name):
            print(f"SKIPPED: {name}. SPARSEMARGIN_DATA has no {', '.join(absent)}", flush=True)
            continue
        notebook = executed(name)
        if arguments.check:
            found = [*differences(read(name), notebook)]
            print(f"{name}: {'differs' if found else 'as stored'}", *found, sep="\n", flush=True)
            wrong |= bool(found)
        else:
            nbformat.write(notebook, EXAMPLES / f"{name}.ipynb")
            size = (EXAMPLES / f"{name}.ipynb").stat().st_size
            print(f"{name}: written, {size / 1000:.0f} KB", flush=True)
            wrong |= size > LARGEST
    sys.exit(wrong)


if __name__ == "__main__":
    main()
