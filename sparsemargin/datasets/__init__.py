"""Loaders of public data sets and generators of artificial ones; none of them imports the engine.

Loaders read local copies only. ``python -m sparsemargin.datasets download`` fetches the files, or
creates them from public sources.
"""

from ._microarrays import load_breast_er, load_colon, load_leukemia, load_lymphoma
from ._rcv1 import load_rcv1
from ._targets import make_alma_target, make_genotypes, make_ho_target
from ._text import make_zipf_text

__all__ = [
    "load_breast_er",
    "load_colon",
    "load_leukemia",
    "load_lymphoma",
    "load_rcv1",
    "make_alma_target",
    "make_genotypes",
    "make_ho_target",
    "make_zipf_text",
]
