"""Replay of logged corrections, for votes, random hypotheses and intermediate states."""
