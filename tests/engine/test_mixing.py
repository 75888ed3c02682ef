"""The compiled steps between a mixture of dual vectors and the space of a shard."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from sparsemargin._engine.mixing.coordinates import evidence_of, spread

N_COLUMNS = 12


@st.composite
def spaces(draw):
    """Return columns, the position of the coordinate without a column, and a number of vectors."""
    columns = draw(st.lists(st.integers(0, N_COLUMNS - 1), min_size=1, unique=True))
    hole = draw(st.integers(len(columns) - 1, len(columns)))
    seed = draw(st.integers(0, 99))
    return np.sort(columns), hole, draw(st.integers(1, 5)), np.random.RandomState(seed)


@given(spaces(), st.sampled_from(["f4", "f8"]), st.sampled_from(["i4", "i8"]))
def test_values_are_spread_over_the_columns_of_a_shard(space, dtype, index):
    columns, hole, width, random = space
    whole = random.rand(2, N_COLUMNS, width).astype(dtype) * (random.rand(N_COLUMNS, width) < 0.5)
    keys = np.flatnonzero(whole[0]).astype(index)
    arrays = np.zeros((2, (len(columns) + 1) * width), dtype)
    spread(columns, hole, width, keys, [each.ravel()[keys] for each in whole], arrays)
    expected = np.insert(whole[:, columns], hole, 0, axis=1)
    assert_array_equal(arrays.reshape(expected.shape), expected)


@given(spaces(), st.sampled_from(["f4", "f8"]), st.sampled_from(["i4", "i8"]))
def test_changes_of_a_shard_are_found_by_their_variances(space, dtype, index):
    columns, hole, n_vectors, random = space
    shape = len(columns) + 1, n_vectors
    before = random.rand(*shape).astype(dtype), random.rand(*shape).astype(dtype)
    before[1][random.rand(*shape) < 0.3] = 0  # not changed by any shard
    numbers = random.rand(shape[0], 2 * n_vectors).astype(dtype)
    t, variances = numbers[:, :n_vectors], numbers[:, n_vectors:]
    variances[:] = np.where(random.rand(*shape) < 0.5, before[1], variances)
    scale = 2.0 ** random.randint(-2, 3, n_vectors)
    keys, *found = evidence_of(columns, hole, np.empty(0, index), t, scale, variances, *before)

    now = np.delete(variances, hole, axis=0).astype(np.float64)
    precisions = 1 / np.where(now > 0, now, 1)
    held = np.delete(before[1], hole, axis=0).astype(np.float64)
    former = np.where(held > 0, 1 / np.where(held > 0, held, 1), 1)
    means = np.delete((t * scale).astype(dtype), hole, axis=0).astype(np.float64)
    means -= np.delete(before[0], hole, axis=0)
    at = np.nonzero(np.delete(variances != before[1], hole, axis=0))
    assert keys.dtype == index
    assert_array_equal(keys, columns[at[0]] * n_vectors + at[1])
    assert_array_equal(
        found, [each[at].astype(dtype) for each in (means * precisions, precisions - former)]
    )


def test_arrays_that_do_not_belong_together_are_refused():
    columns, keys, two = np.arange(3), np.arange(2), np.ones(2)
    for hole, width, values, n in (
        (0, 1, [two], 3), (0, 1, [two, two], 4), (0, 1, [np.ones(3)], 4), (0, 2, [two], 4),
        (-1, 1, [two], 4), (4, 1, [two], 4),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="do not belong together"):
            spread(columns, hole, width, keys, values, np.zeros((1, n)))
    good = [np.ones((4, 2)) for _ in range(4)]
    for i in range(4):
        for bad in np.ones((3, 2)), np.ones((4, 3)):
            t, variances, *before = [*good[:i], bad, *good[i + 1 :]]
            with pytest.raises(ValueError, match="do not belong together"):
                evidence_of(columns, 0, keys[:0], t, two, variances, *before)
    for hole in -1, 4:
        with pytest.raises(ValueError, match="do not belong together"):
            evidence_of(columns, hole, keys[:0], good[0], two, *good[1:])
    with pytest.raises(ValueError, match="do not belong together"):
        evidence_of(columns, 0, keys[:0], good[0], np.ones(3), *good[1:])
    with pytest.raises(ValueError, match="do not belong together"):
        evidence_of(columns, 0, keys[:0], np.ones((4, 4))[:, ::2], two, *good[1:])
