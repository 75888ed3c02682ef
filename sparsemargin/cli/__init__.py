"""The command `sparsemargin`: models from files, without a line of Python.

Each command is a module of its name. They are thin: the work is done by ``sparsemargin.streaming` and
`sparsemargin.evaluation`, without scikit-learn, which takes longer to import than many a file to
learn from.
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
