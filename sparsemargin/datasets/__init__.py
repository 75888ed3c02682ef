"""Loaders of public data and generators of problems; none of them imports the engine.

Loaders read local copies only; ``python -m sparsemargin.datasets download`` fetches the files.
"""

from ._sonar import load_sonar
from ._targets import make_alma_target, make_ho_target
from ._text import make_zipf_text
from ._wbc import load_wbc

__all__ = ["load_sonar", "load_wbc", "make_alma_target", "make_ho_target", "make_zipf_text"]
