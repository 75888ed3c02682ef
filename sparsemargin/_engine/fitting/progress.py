"""What a fit says while it runs."""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

# Seconds between two lines: of a fit asked to speak, and of one that nothing but its own
# convergence ends, which speaks unasked.
_OFTEN = 0.5
_SELDOM = 10.0

# Seconds that a pass must be expected to take for a warning, and after which that is first asked.
_LONG = 90.0
_SOON = 3.0


class Progress:
    """Lines on how far a fit has come.

    Parameters
    ----------
    verbose : int
        Whether a line is printed for every epoch of the first ten, then one every half second.
    endless : bool
        Whether the fit may go on for ever: it then says every ten seconds where it is, on
        standard error.
    """

    def __init__(self, verbose, endless):
        self.verbose, self.endless = verbose, endless
        self.started = self.spoke = time.perf_counter()
        self.corrections = 0

    def tell(self, epochs, corrections):
        """Say, if it is time, how many corrections there were since the last line."""
        now = time.perf_counter()
        if self.verbose:
            if epochs > 10 and now - self.spoke < _OFTEN:
                return
            out = sys.stdout
        elif self.endless and now - self.spoke >= _SELDOM:
            out = sys.stderr
        else:
            return
        made, took = corrections - self.corrections, now - self.started
        print(f"epoch {epochs:.10g}: {made} new corrections, {took:.2f} s in all", file=out)
        self.spoke, self.corrections = now, corrections


class Forecast:
    """A warning, once, that a pass will take minutes as its mistakes get dearer.

    A mistake of a matrix Perceptron costs at least in proportion to those that changed the matrix
    before, so that k of them take time in proportion to their square.

    Parameters
    ----------
    space : LabelSpaces or DualSpaces
        Its matrices, where they are not bounded, grow.
    """

    def __init__(self, space):
        self._space = space
        self._told = space.spaces[0].most_updates >= 0

    def begin(self):
        """A pass begins."""
        self._started, self._first = time.perf_counter(), self._updates()

    def tell(self, part, stacklevel):
        """Warn, if there is reason to, once that part of the pass has been made."""
        took = time.perf_counter() - self._started
        if self._told or took < _SOON:
            return
        now = self._updates()
        last = self._first + (now - self._first) / part
        done = (now**2 - self._first**2).sum()
        if done <= 0:
            return
        whole = took * (last**2 - self._first**2).sum() / done
        if whole >= _LONG:
            self._told = True
            warnings.warn(
                f"This epoch will take some {whole / 60:.0f} minutes: {now.sum():.0f} mistakes so "
                "far, and each costs more the more there were. max_updates=1000 bounds that, most "
                "often at no loss. Ctrl-C ends the fit and keeps what it has learned.",
                stacklevel=stacklevel,
            )

    def _updates(self):
        """Of each label; none where an n x n matrix makes all mistakes cost the same."""
        return np.array(
            [0.0 if getattr(space, "primal", False) else space.updates
             for space in self._space.spaces]
        )  # fmt: skip
