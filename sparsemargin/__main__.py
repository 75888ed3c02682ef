"""``python -m sparsemargin`` is the command `sparsemargin`."""

from sparsemargin.cli import main

main()
