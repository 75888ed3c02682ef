"""The compiled engine: rows of CSR matrices, spaces, rules, the loop and the replay of votes.

Private. The estimators in :mod:`sparsemargin.estimators` are the way in.
"""
