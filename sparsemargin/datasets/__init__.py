"""Generators of data with a known target or of any size; none of them imports the engine."""

from ._targets import make_alma_target, make_ho_target
from ._text import make_zipf_text

__all__ = ["make_alma_target", "make_ho_target", "make_zipf_text"]
