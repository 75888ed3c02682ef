"""Spaces of matrix Perceptrons side by side, one a label."""

from __future__ import annotations

import numpy as np

from sparsemargin._engine import kernels
from sparsemargin._engine.hypotheses.replay import draw_slices
from sparsemargin._engine.matrix.base import outputs_at, votes
from sparsemargin._engine.state import part, require, whole

#: Bytes the matrices of a model may take. There they stop growing, and learning goes on.
MATRIX_MEMORY = 1 << 30


class SpacePerLabel:
    """Spaces that know nothing of each other.

    Parameters
    ----------
    spaces : list
        All alike.
    """

    def __init__(self, spaces):
        self.spaces, self.n_labels = spaces, len(spaces)

    def per_label(self, name):
        """The scalars called `name`, shape (n_labels,)."""
        return np.array([getattr(space, name) for space in self.spaces])

    @property
    def logged(self):
        return self.spaces[0].logged

    @property
    def trials(self):
        return max(space.trials for space in self.spaces)

    def count_trials(self, trials):
        """Let the trials go up to `trials` without a correction, for labels still learning."""
        more = trials - self.trials
        for space, done in zip(self.spaces, self.exhausted(), strict=True):
            if not done:
                space.count_trials(more)

    def resume(self, max_corrections=None):
        """Let labels learn on, up to that many corrections since their first."""
        for space in self.spaces:
            space.limit = -1 if max_corrections is None else max_corrections

    def exhausted(self):
        """Whether each label has made all the corrections it was allowed."""
        limit = self.per_label("limit")
        return (limit >= 0) & (self.per_label("corrections") >= limit)


class LabelSpaces(SpacePerLabel):
    """The spaces of all labels, over the features that each has seen.

    Parameters
    ----------
    make : callable
        Makes an empty space.
    n_labels : int
    """

    def __init__(self, make, n_labels):
        super().__init__([make() for _ in range(n_labels)])
        self.p, self.bias = self.spaces[0].p, self.spaces[0].bias

    @classmethod
    def restored(cls, kind, states):
        """Spaces of that class, which go on where those were whose states these are.

        Raises
        ------
        ValueError
            If a state is damaged, asks for more memory than a model may, or is unlike the others.
        """
        require(len(states) > 0, "it has no spaces")
        settings = part(states[0], "settings")
        room = whole(settings, "room", 0, MATRIX_MEMORY // len(states))
        whole(settings, "primal_room", 0, room)
        spaces = []
        for state in states:
            require(part(state, "settings") == settings, "its spaces are not alike")
            spaces.append(kind.__new__(kind))
            spaces[-1].__setstate__(state)
        return cls(iter(spaces).__next__, len(spaces))

    @property
    def n_features(self):
        return self.spaces[0].n_features

    def resize(self, n_features, first=0):
        """As `LinearSpace.resize`."""
        for space in self.spaces:
            space.resize(n_features, first)

    def count_rows(self, n_rows):
        """Number the rows of the next stream on from these."""
        for space in self.spaces:
            space.count_rows(n_rows)

    def weights(self):
        """Weights of the hypothesis, shape (n_labels, n_coordinates)."""
        return np.vstack([space.weights() for space in self.spaces])

    # ------------------------------------------------------------------ epochs apart, and mixed

    def absorb(self, label, rows, steps, numbers):
        """Let a label take in mistakes that were made elsewhere, on these checked rows."""
        absorb_rows = kernels.for_rows(rows).absorb_rows
        absorb_rows(
            self.spaces[label], rows.data, rows.indices, rows.indptr, steps, numbers
        )  # fmt: skip

    def summed(self):
        """Sum of each label's hypotheses, each as often as it lasted, shape (n_labels,
        n_coordinates)."""
        return np.vstack([space.summed() for space in self.spaces])

    def take_sums(self, sums, trials):
        """Let the averages have counted hypotheses that come to these sums in so many trials."""
        for space, summed in zip(self.spaces, sums, strict=True):
            space.take_sums(summed, trials)

    # -------------------------------------------------------------------------------- outputs

    def outputs(self, rows):
        """``w.x`` of every row for every label, shape (n_rows, n_labels), and whether the row has
        to be scaled for it, shape (n_rows,)."""
        out = np.empty((len(rows.indptr) - 1, self.n_labels))
        extreme = np.zeros(len(out), dtype=bool)
        outputs = kernels.for_rows(rows).outputs_of_seen
        for label, space in enumerate(self.spaces):
            outputs(
                space, space.hypothesis(), rows.data, rows.indices, rows.indptr, out, label,
                extreme.view(np.uint8),
            )  # fmt: skip
        return out, extreme

    def votes(self, X):
        """``sum_k c_k sign(w_k.x)`` over the trials, shape (n_rows, n_labels); X is CSR with the
        intercept's column, float64."""
        return np.column_stack(
            [votes(space, *_by_place(space, X)) / max(space.trials, 1) for space in self.spaces]
        )

    def random_outputs(self, X, seed):
        """``w.x`` with the vectors of a time slice drawn for each row, one for all labels."""
        parts = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
        slices = draw_slices(*parts, seed, self.trials)
        return np.column_stack(
            [outputs_at(space, *_by_place(space, X), slices) for space in self.spaces]
        )


def _by_place(space, X):
    """CSR arrays of X over the features that the space has seen; the others have place 0, where
    all weights are 0."""
    return X.data, space.place_of[X.indices], X.indptr.astype(np.int64)
