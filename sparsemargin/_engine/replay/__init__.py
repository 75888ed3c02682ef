"""Logged corrections made again, for votes, random hypotheses and moments of a run."""
