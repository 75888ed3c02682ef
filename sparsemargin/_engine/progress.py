"""What a fit says while it runs."""

from __future__ import annotations

import sys
import time

# Seconds between two lines: of a fit asked to speak, and of one that nothing but its own
# convergence ends, which speaks unasked.
_OFTEN = 0.5
_SELDOM = 10.0


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
