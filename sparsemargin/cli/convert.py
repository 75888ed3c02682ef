"""``sparsemargin convert``: svmlight text from and to other forms."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click
import numpy as np

from sparsemargin.cli.display import size_in_words, watched
from sparsemargin.cli.files import (
    STANDARD_OUTPUT,
    check_apart,
    check_output,
    is_on_terminal,
    named_sources,
    opened_output,
)
from sparsemargin.cli.options import (
    HASH_BITS,
    MULTILABEL,
    N_FEATURES,
    N_JOBS,
    PATH,
    SINGLE,
    ZERO_BASED,
    is_quiet,
    make_command,
)
from sparsemargin.io.files import is_stream
from sparsemargin.io.kinds import KIND_NAMES, Kind, kind_of
from sparsemargin.io.npz import read_npz, write_npz
from sparsemargin.io.passes import Passes
from sparsemargin.io.reading import Corpus, Reading, threads_for
from sparsemargin.io.rows import LARGEST_INDEX, LabelledRows
from sparsemargin.io.sources import STANDARD_INPUT, Source, open_sources
from sparsemargin.io.svmlight import load_svmlight
from sparsemargin.io.text import as_text, readable_labels
from sparsemargin.models.labels import LabelTable

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

# Rows of an npz file that become text at a time.
_ROWS_AT_ONCE = 1 << 14


@make_command("convert", _EXAMPLES)
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@click.option("--to", "form", type=click.Choice(["svmlight", "npz", "cache"]),
              help="What OUT is to be, if its name does not tell.")  # fmt: skip
@MULTILABEL
@ZERO_BASED
@N_FEATURES
@HASH_BITS
@SINGLE
@N_JOBS
def command(
    source: str, target: str, form: str | None, single: bool, n_jobs: int | None, **reading: Any
) -> None:
    """Convert svmlight text to npz, tidy text or a row cache.

    An npz file holds the matrix as scipy.sparse.load_npz loads it, and an array 'labels'; IN may be
    one too, to become text with indices from 1, or from 0 with --zero-based yes. Tidy text has
    sorted indices, none twice, and every value in the fewest digits that give it back. What text
    can't hold, such as a label with a blank, is refused. The cache is the one that train --cache
    OUT uses, if all options on reading are the same. OUT appears whole or not at all.
    """  # fmt: skip
    path = Path(target)
    if path.suffix.lower() in _PACKED:
        raise click.UsageError(
            f"{target} would be written uncompressed; name it {path.with_suffix('')}."
        )
    form = form or _FORMS.get(path.suffix.lower())
    if form is None:
        raise click.UsageError(
            f"{target} may be anything. Pass --to svmlight, --to npz or --to cache, or a name that "
            f"ends in {', '.join(_FORMS)}."
        )
    if target == STANDARD_OUTPUT and form != "svmlight":
        raise click.UsageError("Standard output takes svmlight text only. Name a file.")
    sources = open_sources(source)
    if target != STANDARD_OUTPUT:
        check_apart([("OUT", target)], named_sources(sources, "IN"))
        if form != "svmlight" or not is_stream(target):
            check_output(target)
    if _kind(sources, form) == "npz":
        n_rows = _npz_to_text(source, target, reading["zero_based"])
    else:
        how = Reading(dtype=np.float32 if single else np.float64, **reading)
        n_rows = _CONVERSIONS[form](sources, target, how, n_jobs)
    if target != STANDARD_OUTPUT and os.path.isfile(target) and not is_quiet():
        size = size_in_words(Path(target).stat().st_size)
        click.echo(f"{target}: {n_rows:,} rows, {size}", err=True)


def _kind(sources: list[Source], form: str) -> Kind:
    """What is to be converted, if that can be done."""
    kind = kind_of(sources[0]) if len(sources) == 1 else "svmlight"
    if kind in ("cache", "model") or (kind == "npz" and form != "svmlight"):
        raise ValueError(
            f"{sources[0].name} is {KIND_NAMES[kind]}. What can be converted is svmlight text, to "
            "all forms, and an npz file, to svmlight text."
        )
    return kind


def _text_to_npz(sources: list[Source], target: str, how: Reading, n_jobs: int | None) -> int:
    """All rows are in memory at once, as they will be again when the file is loaded."""
    settings = {**vars(how), "query_id": True}
    paths = [source.path or STANDARD_INPUT for source in sources]
    X, labels, query_ids = load_svmlight(paths, n_jobs=n_jobs, **settings)
    write_npz(target, X, labels, query_ids)
    return X.shape[0]


def _text_to_text(sources: list[Source], target: str, how: Reading, n_jobs: int | None) -> int:
    """Block by block."""
    n_rows, table, texts = 0, LabelTable(), list[str]()
    first = how.base if how.hash_bits is None else 0
    corpus = Corpus(sources, replace(how, query_id=True), threads_for(n_jobs))
    seen = not is_on_terminal(target)
    with opened_output(target) as file:
        for block in watched(corpus.scan(table, LARGEST_INDEX), corpus, seen=seen):
            texts += table.short_texts(len(texts))
            file.write(as_text(replace(block, query_ids=_queries(block)), texts, first))
            n_rows += block.n_rows
    return n_rows


def _queries(block: LabelledRows) -> np.ndarray | None:
    """Those of all rows; None: no row has one; refused if some have one and some have not."""
    queries = block.query_ids
    if queries is None or not len(queries):
        return None
    if len(queries) < block.n_rows and block.text is not None:
        raise ValueError(
            f"{block.text.source.name}: some rows have a qid and some have not. Give one to all of "
            "them or none."
        )
    return queries


def _text_to_cache(sources: list[Source], target: str, how: Reading, n_jobs: int | None) -> int:
    """As training makes it in its first epoch."""
    corpus = Corpus(sources, how, threads_for(n_jobs), Path(target))
    blocks = Passes(corpus, LARGEST_INDEX).first()
    return sum(block.n_rows for block in watched(blocks, corpus))


def _npz_to_text(source: str, target: str, zero_based: bool | Literal["auto"]) -> int:
    """Indices count from 1 unless `zero_based` is True; what text can't hold is refused first."""
    rows, labels, _ = read_npz(source)
    texts = readable_labels(source, rows, labels)
    n_rows = len(rows.indptr) - 1
    with opened_output(target) as file:
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            some = rows.part(start, min(start + _ROWS_AT_ONCE, n_rows))
            file.write(as_text(some, texts, 0 if zero_based is True else 1))
    return n_rows


_CONVERSIONS = {
    "npz": _text_to_npz,
    "svmlight": _text_to_text,
    "cache": _text_to_cache,
}
