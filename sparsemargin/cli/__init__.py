"""The command `sparsemargin`: models from files, without a line of Python.

Each command is a module of its name. They are thin: the work is done by `sparsemargin.io` and
`sparsemargin.evaluation`, without scikit-learn, which takes longer to import than many a file to
learn from.
"""

from sparsemargin.cli.app import main

__all__ = ["main"]
