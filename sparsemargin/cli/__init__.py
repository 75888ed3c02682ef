"""The command `sparsemargin`: models from files without writing Python.

Each command is a thin module of its name. `sparsemargin.streaming` and `sparsemargin.evaluation` do
the work. scikit-learn is not imported for svmlight text, as the import takes longer than training
on a small file.
"""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from sparsemargin.cli.app import main as run
    except KeyboardInterrupt:
        # That of SIGINT: `cli.signals` may not have been imported yet.
        sys.exit(130)
    except ModuleNotFoundError as missing:
        if missing.name != "click":
            raise
        sys.exit(
            "The command line needs click and rich: pip install 'sparsemargin[cli]', or "
            "pip install '.[cli]' in the folder of the source."
        )
    run(prog_name="sparsemargin")
