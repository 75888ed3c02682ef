"""Values that no file is written with, and what may become of the contents of a model file."""

from __future__ import annotations

import copy

import numpy as np

from problems.hostile import at

EXTREMES = [-(2**63), -(2**31), -1000, -2, -1, 0, 1, 2, 3, 5, 24, 25, 26, 27, 1000, 1024, 1025]
EXTREMES += [2**16, 2**31 - 1, 2**31, 2**32, 2**61, 2**62, 2**63 - 1]
VALUES = [*EXTREMES, 2**63, 2**64, 10**400, 0.0, 0.5, 2.0, 3.0, -1.5, 1e308, True, False, None, "x"]
VALUES += ["auto", "primal", "implicit", "vote", "last", [], {}, {"dict": {}}, np.nan]
VALUES += [np.inf, {"tuple": [1, 2]}, {"array": "_class_weight"}, {"array": "nothing"}]
TYPES = ["i4", "i8", "f4", "f8", "u1", "u2", ">f8", "U2", "?"]


def leaves(document, place=()):
    """Places of all entries of a document, those within others included."""
    if not isinstance(document, dict | list):
        return
    for key in document if isinstance(document, dict) else range(len(document)):
        yield *place, key
        yield from leaves(document[key], (*place, key))


def spoil_document(random, document):
    places = list(leaves(document))
    *place, key = places[random.randint(len(places))]
    parent = at(document, place)
    if random.randint(8):
        parent[key] = copy.deepcopy(VALUES[random.randint(len(VALUES))])
    else:
        del parent[key]


def spoiled_array(random, array):
    way = random.randint(6)
    if way == 0:
        return array[: random.randint(len(array) + 1)] if array.ndim else array
    if way == 1:
        return np.concatenate([array, array]) if array.ndim else array
    if way == 2:
        kind = TYPES[random.randint(len(TYPES))]
        with np.errstate(all="ignore"):
            return array.astype("U2" if array.dtype.kind in "US" else kind)
    if way == 3:
        return array.reshape(-1, 1)
    array = array.copy()
    flat = array.reshape(-1)
    if len(flat) and array.dtype.kind in "iuf":
        where = random.randint(len(flat), size=random.randint(1, 4))
        flat[where] = wrapped(random, array.dtype)
    return array


def wrapped(random, dtype):
    """An extreme number, as it comes out in that type."""
    if dtype.kind == "f":
        return [0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, -1.0][random.randint(7)]
    value = EXTREMES[random.randint(len(EXTREMES))] % 2 ** (8 * dtype.itemsize)
    return np.array(value, f"u{dtype.itemsize}").view(dtype)


def use(model, rows, labels):
    """All that runs over a model's state; what it says of it may be anything but a crash."""
    for call in (
        lambda: model.predict(rows), lambda: model.decision_function(rows), lambda: model.coef_,
        lambda: model.theta_, lambda: model.partial_fit(rows, labels), lambda: model.predict(rows),
        lambda: model.set_params(max_iter=2, tol=None).fit(rows, labels), lambda: model.coef_,
        lambda: model.predict(rows),
    ):  # fmt: skip
        try:
            call()
        except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, MemoryError):
            continue
