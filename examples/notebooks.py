"""Run the notebooks, and keep what they show; or check that they show what their code gives.

Pictures are kept as PNG of few colours. The check compares all printed text: numbers may differ
by one in their last digit, and those of cells tagged "timed", which print seconds, in any way. A
notebook whose data are not in the folder that SPARSEMARGIN_DATA names is skipped, and told.

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

# The files that each notebook reads.
DATA = {
    "texts": "texts/trec_train.tsv.gz texts/trec_test.tsv.gz",
    "rcv1": "rcv1_subsets_topics.svm.bz2 rcv1_topics.txt",
    "microarrays": "Lymphoma96x4026.arff.gz lymphoma_labels.csv breast_er_west2001.csv.gz",
    "cells": "",
    "margins": "sonar.mines sonar.rocks",
    "files_and_streams": "",
}
LARGEST = 400_000  # bytes of a notebook
N_COLORS = 64
_NUMBER = re.compile(r"(?<![\w.])[+-]?\d[\d,]*(?:\.\d+)?")


def missing(name):
    """The files that a notebook needs and that are not there."""
    folder = os.environ.get("SPARSEMARGIN_DATA")
    return [f for f in DATA[name].split() if not (folder and Path(folder, f).exists())]


def read(name):
    """A notebook as it is stored."""
    return nbformat.read(EXAMPLES / f"{name}.ipynb", as_version=4)


def executed(name):
    """A notebook, run from its first cell to its last in a process of its own."""
    notebook = read(name)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    first = {"PYTHONPATH": str(EXAMPLES.parent), "PATH": str(Path(sys.executable).parent)}
    environment = os.environ | {
        variable: os.pathsep.join(filter(None, [folder, os.environ.get(variable)]))
        for variable, folder in first.items()
    }
    # Contestants run on one thread each, whatever else the machine does.
    environment |= dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": EXAMPLES}})
    client.execute(env=environment)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _kept(cell)
    return notebook


def _kept(cell):
    """What is stored of a cell's outputs: all text in one, pictures of few colours."""
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
    """What each code cell printed, with its id and whether it prints times."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            told = [o.get("text") or o.get("data", {}).get("text/plain", "") for o in cell.outputs]
            yield cell.id, "timed" in cell.metadata.get("tags", []), "".join(told)


def differences(stored, given):
    """A line for each cell that printed something else than is stored."""
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
