"""Initial variances of the weights, computed from counts of rows as in Naive Bayes.

The initial variance of the weight of a feature in the vector of a class is ``|log(p / q)|``. Here p
is the share of the rows of the class that contain the feature, and q is the share of the other rows
that contain it.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from sparsemargin._engine.fitting.task import Positives
from sparsemargin._engine.rows.parts import gathered
from sparsemargin._engine.state import MAX_TRIALS, instance, integer, require, require_within

#: Smallest initial variance. The logarithm is 0 for a feature whose shares are equal, and a weight
#: with variance 0 would never change.
LEAST = 1e-3

# Number of variances computed at once. It limits the memory for intermediate results.
_NUMBERS_AT_ONCE = 1 << 20

_COUNTS = "with_class", "columns", "totals", "starts", "places", "counts"


@dataclass(frozen=True)
class NaiveBayesPrior:
    """The counts that determine the initial variances.

    Attributes
    ----------
    n_rows : int
        Number of counted rows.
    with_class : ndarray of shape (n_vectors,), int64
        Number of rows of the class of each vector.
    columns : ndarray of shape (n_columns,), int64
        The features that occur in the rows, sorted.
    totals : ndarray of shape (n_columns,), int64
        Number of rows with each of these features.
    starts : ndarray of shape (n_vectors + 1,), int64
        The counts of vector l are ``counts[starts[l]:starts[l + 1]]``.
    places, counts : ndarray of shape (n_counts,), int64
        Number of rows of the class that contain the feature ``columns[places]``, if it is not 0.
    """

    n_rows: int
    with_class: np.ndarray
    columns: np.ndarray
    totals: np.ndarray
    starts: np.ndarray
    places: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, rows, targets, n_vectors, counted=None) -> Self:
        """Count the features in checked rows without duplicate columns.

        `targets` are the codes of the classes, or the `Positives` of several labels per row.
        `counted` is a mask of the rows to count; None: all rows.
        """
        n_rows, many = rows.n_rows, isinstance(targets, Positives)
        starts, labels = targets if many else (np.arange(n_rows + 1), targets)
        used = np.ones(n_rows, bool) if counted is None else counted
        row = np.repeat(np.arange(n_rows), np.diff(starts))
        row, labels = row[used[row]], labels[used[row]]
        # Group the rows by class. With two classes, the single vector is that of the second class.
        n_classes = n_vectors if many else max(n_vectors, 2)
        ends = np.cumsum(np.bincount(labels, minlength=n_classes))[:-1]
        of_classes = np.split(row[np.argsort(labels, kind="stable")], ends)[-n_vectors:]
        occurs = rows.data != 0

        def columns_of(which):
            entries = gathered(rows.indptr, which)[1]
            return rows.indices[entries[occurs[entries]]]

        totals = np.bincount(columns_of(np.flatnonzero(used)), minlength=rows.n_features)
        columns, place = np.flatnonzero(totals), np.cumsum(totals > 0) - 1
        places, counts = [], []
        for which in of_classes:
            at = place[columns_of(which)]
            if len(at) < len(columns) // 8:  # sorting is then faster than a count of all columns
                found, n_rows_with = np.unique(at, return_counts=True)
            else:
                n_rows_with = np.bincount(at, minlength=len(columns))
                found = np.flatnonzero(n_rows_with)
                n_rows_with = n_rows_with[found]
            places.append(found)
            counts.append(n_rows_with)
        return cls(
            int(np.count_nonzero(used)), np.array([len(which) for which in of_classes]), columns,
            totals[columns], np.append(0, np.cumsum([len(each) for each in places])),
            np.concatenate(places), np.concatenate(counts),
        )  # fmt: skip

    @property
    def n_vectors(self):
        return len(self.with_class)

    def within(self, columns, first, last) -> Self:
        """Return the counts of these sorted columns for the vectors from `first` to before `last`.
        The columns are renumbered 0, 1, ..."""
        place = np.searchsorted(columns, self.columns)
        kept = place < len(columns)
        kept[kept] = columns[place[kept]] == self.columns[kept]
        begin, end = self.starts[first], self.starts[last]
        some = np.flatnonzero(kept[self.places[begin:end]]) + begin
        return replace(
            self, with_class=self.with_class[first:last], columns=place[kept],
            totals=self.totals[kept], starts=np.searchsorted(some, self.starts[first : last + 1]),
            places=(np.cumsum(kept) - 1)[self.places[some]], counts=self.counts[some],
        )  # fmt: skip

    def moved(self, first) -> Self:
        """Return the counts after the features before `first` are removed. If `first` is -1, a
        feature is inserted before the others."""
        return replace(self, columns=self.columns - first)

    # --------------------------------------------------------------------------- the variances

    def variances(self, vectors):
        """Return the initial variances of a slice of the vectors, shape (n_columns, n_vectors).

        To smooth the shares, one row with each feature is added. It is divided between the class
        and the other classes in proportion to their numbers of rows.
        """
        first, last, _ = vectors.indices(self.n_vectors)
        within, ends = self.with_class[first:last], self.starts[first : last + 1]
        # A class without rows has only counts of 0, so that any divisor gives 0.
        inverse = self.n_rows / np.maximum(within, 1)
        of_others = self.n_rows / np.maximum(self.n_rows - within, 1)
        # Most features do not occur in most classes, so that each ratio starts with a count of 0.
        totals, which = self.distinct_totals
        ratio = -np.log1p(totals[:, np.newaxis] * of_others)[which]
        some = slice(ends[0], ends[-1])
        at, vector = self.places[some], np.repeat(np.arange(last - first), np.diff(ends))
        having, lacking = self.counts[some], self.totals[at] - self.counts[some]
        ratio[at, vector] = np.log1p(having * inverse[vector])
        ratio[at, vector] -= np.log1p(lacking * of_others[vector])
        return np.maximum(np.abs(ratio, out=ratio), LEAST, out=ratio)

    def parts(self):
        """Yield slices of the vectors, with their initial variances."""
        step = max(1, _NUMBERS_AT_ONCE // max(1, len(self.columns)))
        for first in range(0, self.n_vectors, step):
            vectors = slice(first, first + step)
            yield vectors, self.variances(vectors)

    def fill(self, held=None):
        """Replace zeros by initial variances in `held`, of shape (n_coordinates, n_vectors).
        Return the mean initial variance of each vector over the features that occur, shape
        (n_vectors,); 1 if no feature occurs."""
        if not len(self.columns):
            return np.ones(self.n_vectors)
        means = []
        for vectors, initial in self.parts():
            # Sums over the last axis have rounding errors that do not depend on the other vectors.
            means.append(np.ascontiguousarray(initial.T).mean(axis=1))
            if held is not None:
                some = held[self.at, vectors]
                held[self.at, vectors] = np.where(some == 0, initial, some)
        return np.concatenate(means)

    @cached_property
    def distinct_totals(self):
        """The few distinct values of `totals`, and the index of each total among them."""
        return np.unique(self.totals, return_inverse=True)

    @cached_property
    def at(self):
        """The columns as an index: a slice if all columns up to the last one occur."""
        n_columns = len(self.columns)
        whole = not n_columns or self.columns[-1] == n_columns - 1
        return slice(0, n_columns) if whole else self.columns

    def clear(self, held):
        """Replace initial variances by 0 in `held`, of shape (n_coordinates, n_vectors)."""
        for vectors, initial in self.parts():
            some = held[self.at, vectors]
            held[self.at, vectors] = np.where(some == initial.astype(held.dtype), 0, some)

    # ------------------------------------------------------------------------------- the state

    def saved(self):
        """Return the counts as a dict of arrays of the smallest unsigned types."""
        arrays = {name: getattr(self, name) for name in _COUNTS}
        return {"n_rows": self.n_rows} | {
            name: each.astype(np.min_scalar_type(each.max(initial=0)))
            for name, each in arrays.items()
        }

    @classmethod
    def restored(cls, state, n_features, n_vectors) -> Self:
        """Return the prior for a dict from `saved`. A damaged dict raises a ValueError."""
        counts = {}
        for name in _COUNTS:
            array = instance(state, name, np.ndarray)
            require(array.ndim == 1 and array.dtype.kind == "u", f"{name!r} are not counts")
            require_within(name, array, 0, MAX_TRIALS)
            counts[name] = array.astype(np.int64)
        prior = cls(integer(state, "n_rows", 0, MAX_TRIALS), **counts)
        columns, starts = prior.columns, prior.starts
        require(
            prior.n_vectors == n_vectors and len(starts) == n_vectors + 1 and starts[0] == 0
            and starts[-1] == len(prior.counts) == len(prior.places)
            and (np.diff(starts) >= 0).all()
            and (np.diff(columns, prepend=-1, append=n_features) > 0).all()
            and len(prior.totals) == len(columns),
            "the counts of its prior do not belong together",
        )  # fmt: skip
        require_within("places", prior.places, 0, len(columns) - 1)
        require_within("with_class", prior.with_class, 0, prior.n_rows)
        require_within("totals", prior.totals, 0, prior.n_rows)
        others = prior.totals[prior.places] - prior.counts
        require_within("counts", others, 0, prior.n_rows)
        return prior
