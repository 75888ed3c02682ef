"""Random streams shared by the generators."""

import numpy as np
from sklearn.utils import check_random_state


def spawn_streams(random_state, n_streams: int) -> list[np.random.RandomState]:
    """Split `random_state` into independent streams, one for each thing that is drawn.

    With a stream of its own, a draw does not move when another one takes more numbers: the same
    seed gives the same instances whatever the noise, and whatever the size of internal batches.
    RandomState, whose sequences NumPy has frozen, keeps published seeds valid.
    """
    try:
        parent = check_random_state(random_state)
    except ValueError as error:
        raise ValueError(
            "random_state must be None, an integer from 0 to 2**32 - 1 or a numpy RandomState, "
            f"got {random_state!r}"
        ) from error
    seeds = parent.randint(2**31 - 1, size=n_streams)
    return [check_random_state(int(seed)) for seed in seeds]
