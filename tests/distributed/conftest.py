"""Shards of few rows, which the tests of this folder train on one by one."""

import pytest

from sparsemargin.distributed import fit
from sparsemargin.distributed.rounds import MIN_ROWS
from sparsemargin.distributed.small_shards import runs_of


@pytest.fixture(autouse=True)
def small_shards_stay():
    """Do not join small shards, unless a test passes `min_rows`."""

    def runs(n_rows, least):
        return runs_of(n_rows, 1 if least == MIN_ROWS else least)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(fit, "runs_of", runs)
        yield
