"""``sparsemargin annotate``: predict the types of cells in files, with probabilities."""

from __future__ import annotations

import sys
from typing import Any

import click

import sparsemargin
from sparsemargin.cli.files import (
    STANDARD_OUTPUT,
    ReadingOptions,
    check_apart,
    check_model,
    input_kind,
)
from sparsemargin.cli.options import FILES, MODEL, OUTPUT_FILE, cell_options, make_command
from sparsemargin.files.sources import open_sources

_EXAMPLES = """
sparsemargin annotate types.model cells.h5ad -o types.tsv
sparsemargin annotate types.model 'run-*/*.h5' --threshold 0.5 -o types.tsv
"""


@make_command("annotate", _EXAMPLES, {"output", "threshold", "layer", "match", "cell_values"})
@MODEL
@FILES
@OUTPUT_FILE
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.0, metavar="X",
              help="Cells with a lower confidence are unassigned.  [default: 0]")  # fmt: skip
@cell_options
def command(
    model: str, files: tuple[str, ...], output: str, threshold: float, **reading: Any
) -> None:  # fmt: skip
    """Print a table of cells with their types and probabilities.

    Files are .h5ad, .zarr, or 10x's .h5 and matrix.mtx. They contain counts or log-counts, which
    are converted to the scale of the training cells. Genes are matched by name. Columns are
    separated by tabs, or by commas in a .csv. Tabs, line ends and backslashes in names are escaped.
    Names with quotes are quoted. For several files, the first column names the file.
    """
    sources = open_sources(files)
    check_apart(sources)
    check_model(model, sources)
    options = ReadingOptions.of(reading)
    if input_kind(sources, None) != "cells":
        raise click.UsageError(
            f"{sources[0].name} is not a file of cells. Pass .h5ad, .zarr, .h5 or .mtx files."
        )
    form, names = options.cell_form(), ("layer", "var", "match")
    given = {name: getattr(form, name) for name in names if getattr(options, name) is not None}
    sparsemargin.annotate(
        sparsemargin.load_model(model), sources, threshold=threshold,
        normalize=form.values, **given,
        output=sys.stdout.buffer if output == STANDARD_OUTPUT else output,
    )  # fmt: skip
