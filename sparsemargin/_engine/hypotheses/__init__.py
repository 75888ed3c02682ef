"""The log of corrections, and its replay for votes, random hypotheses and moments of a run."""
