"""Run the command line `sparsemargin` by ``python -m sparsemargin``."""

from sparsemargin.cli import main

main()
