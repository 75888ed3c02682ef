"""The files that ``sparsemargin train`` writes, looked at before it reads a row."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sparsemargin.cli.outputs import check_distinct, check_kept, check_output
from sparsemargin.cli.reading import named_sources
from sparsemargin.io.row_cache import default_cache_path
from sparsemargin.io.sources import Source


def check_files(
    sources: Sequence[Source], *, output: str, readable: str | None, dictionary: str | None,
    init: str | None, cache: str | None,
) -> None:  # fmt: skip
    """Refuse outputs that can't be made, or would replace each other or an input.

    Raises
    ------
    OSError
        If one can't be made.
    click.UsageError
        If two files are one.
    """
    extra = [("--readable", readable), ("--cache", cache)]
    outputs = [("-o", output), *extra]
    check_distinct(outputs)
    check_kept(outputs, [("--dictionary", dictionary), *named_sources(sources, "FILE")])
    # The model itself may go on in place.
    check_kept(extra, [("--init", init)])
    for path in filter(None, (output, readable)):
        check_output(path)
    if cache is not None:
        _check_cache(cache)


def check_cache_beside(
    sources: Sequence[Source], settings: dict[str, Any], output: str, readable: str | None
) -> None:
    """Refuse to begin where the cache beside the first file, if there is to be one, can't be made.

    Raises
    ------
    OSError
        If it can't be made.
    click.UsageError
        If an output has its place.
    """
    cache, rereadable = settings["cache"], all(source.rereadable for source in sources)
    if isinstance(cache, str) or not rereadable or (cache is None and settings["max_iter"] == 1):
        return
    beside = str(default_cache_path([source.name for source in sources]))
    check_distinct([("-o", output), ("--readable", readable), ("The cache", beside)])
    try:
        _check_cache(beside)
    except OSError as error:
        raise OSError(
            f"{beside}: the rows can't be kept here: {error.strerror or error}. Pass --cache FILE, "
            "which keeps them elsewhere."
        ) from None


def _check_cache(path: str) -> None:
    # One that is there may be good as it is, in a folder that can't be written to.
    if not os.path.isfile(path):
        check_output(path)
