"""The compiled engine: rows of CSR matrices, spaces, rules, the loop and the replay of votes.

Private: use the models in :mod:`sparsemargin.models` instead.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

# Every build of the engine has this module. A folder of sources has it only after `pip install -e`.
if find_spec(f"{__name__}._cyutility") is None:
    _sources = Path(__file__).resolve().parents[2]
    raise ImportError(
        f"sparsemargin is imported from {_sources}, where its engine is not compiled for Python "
        f"{sys.version_info.major}.{sys.version_info.minor}. If it is installed elsewhere, start "
        "Python in another folder. To use these sources, run 'pip install -e .' in their folder."
    )
