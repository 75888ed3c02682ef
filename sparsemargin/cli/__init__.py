"""The command line `sparsemargin`, which trains and applies models without writing Python.

Each command is a thin module of the same name, which calls `sparsemargin.streaming` and
`sparsemargin.evaluation`. scikit-learn is not imported for svmlight text, because the import takes
longer than training on a small file.
"""

import sys


def main() -> None:
    """Run the command line."""
    try:
        # The command line needs click, an optional dependency, and Ctrl-C may arrive here.
        from sparsemargin.cli.app import main as run
    except KeyboardInterrupt:
        # 128 + SIGINT. `cli.signals` may not have been imported yet.
        sys.exit(130)
    except ModuleNotFoundError as missing:
        if missing.name != "click":
            raise
        sys.exit(
            "The command line needs click and rich: pip install 'sparsemargin[cli]', or "
            "pip install '.[cli]' in the folder of the source."
        )
    run(prog_name="sparsemargin")
