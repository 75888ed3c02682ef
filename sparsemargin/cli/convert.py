"""``sparsemargin convert``: svmlight text from and to other forms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np

from sparsemargin.cli import conversions
from sparsemargin.cli.options import PATH, Option, is_quiet, make_command
from sparsemargin.cli.outputs import STANDARD_OUTPUT, check_kept, check_output
from sparsemargin.cli.reading import (
    HASH_BITS,
    N_FEATURES,
    SINGLE,
    THREADS,
    ZERO_BASED,
    named_sources,
)
from sparsemargin.cli.tables import size_in_words
from sparsemargin.io.kinds import KIND_NAMES, Kind, kind_of
from sparsemargin.io.reading import Reading
from sparsemargin.io.sources import Source, open_sources

_EXAMPLES = """
sparsemargin convert train.svm.bz2 train.npz
sparsemargin convert untidy.svm tidy.svm
sparsemargin convert train.npz train.svm
sparsemargin convert train.svm train.svm.smcache
sparsemargin convert train.svm.gz - --to svmlight | zstd > train.svm.zst
"""

_FORMS = {
    ".npz": "npz", ".smcache": "cache", ".svm": "svmlight", ".svmlight": "svmlight",
    ".libsvm": "svmlight", ".txt": "svmlight", ".dat": "svmlight",
}  # fmt: skip

# Names of compressed files, which no conversion makes.
_PACKED = (".gz", ".bz2", ".xz", ".zst")

_CONVERSIONS = {
    "npz": conversions.text_to_npz,
    "svmlight": conversions.text_to_text,
    "cache": conversions.text_to_cache,
}


@make_command("convert", _EXAMPLES)
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@click.option(
    "--to",
    "form",
    type=click.Choice(["svmlight", "npz", "cache"]),
    help="What OUT is to be, if its name does not tell.",
)
@click.option(
    "--multilabel",
    is_flag=True,
    cls=Option,
    section="Reading",
    help="Let rows have any number of labels, separated by commas.",
)
@ZERO_BASED
@N_FEATURES
@HASH_BITS
@SINGLE
@THREADS
def command(
    source: str, target: str, form: str | None, single: bool, threads: int | None, **reading: Any
) -> None:
    """Convert svmlight text to npz, tidy text or a row cache.

    An npz file holds the matrix as scipy.sparse.load_npz loads it, and an array 'labels'; IN may be
    one too, to become text with indices from 1, or from 0 with --zero-based yes. Tidy text has
    sorted indices, none twice, and every value in the fewest digits that give it back. What text
    can't hold, such as a label with a blank, is refused. The cache is the one that train --cache
    OUT uses, if all options on reading are the same. OUT appears whole or not at all.
    """  # fmt: skip
    _check_name(target)
    form = form or _form_of(target)
    if target == STANDARD_OUTPUT and form != "svmlight":
        raise click.UsageError("Standard output takes svmlight text only. Name a file.")
    sources = open_sources(source)
    if target != STANDARD_OUTPUT:
        check_kept([("OUT", target)], named_sources(sources, "IN"))
        check_output(target)
    if _kind(sources, form) == "npz":
        n_rows = conversions.npz_to_text(source, target, reading["zero_based"])
    else:
        how = Reading(dtype=np.float32 if single else np.float64, **reading)
        n_rows = _CONVERSIONS[form](sources, target, how, threads)
    if target != STANDARD_OUTPUT and not is_quiet():
        size = size_in_words(Path(target).stat().st_size)
        click.echo(f"{target}: {n_rows:,} rows, {size}", err=True)


def _check_name(target: str) -> None:
    """Refuse a name that promises what is not done."""
    path = Path(target)
    if path.suffix.lower() in _PACKED:
        raise click.UsageError(
            f"{target} would be written uncompressed; name it {path.with_suffix('')}."
        )


def _form_of(target: str) -> str:
    form = _FORMS.get(Path(target).suffix.lower())
    if form is None:
        raise click.UsageError(
            f"{target} may be anything. Pass --to svmlight, --to npz or --to cache, or a name that "
            f"ends in {', '.join(_FORMS)}."
        )
    return form


def _kind(sources: list[Source], form: str) -> Kind:
    """What is to be converted, if that can be done."""
    kind = kind_of(sources[0]) if len(sources) == 1 else "svmlight"
    if kind in ("cache", "model") or (kind == "npz" and form != "svmlight"):
        raise ValueError(
            f"{sources[0].name} is {KIND_NAMES[kind]}. What can be converted is svmlight text, to "
            "all forms, and an npz file, to svmlight text."
        )
    return kind
