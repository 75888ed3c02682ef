"""The compiled engine: rows of CSR matrices, spaces, rules, the loop and the replay of votes.

Private. The models in :mod:`sparsemargin.models` are the way in.
"""
