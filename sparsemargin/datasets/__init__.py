"""Loaders of public data and generators of problems; none of them imports the engine.

Loaders read local copies only; ``python -m sparsemargin.datasets download`` fetches the files, or
tells how to get those that no address serves.
"""

from ._breast_er import load_breast_er
from ._colon import load_colon
from ._letter import load_letter
from ._leukemia import load_leukemia
from ._lymphoma import load_lymphoma
from ._mnist import load_mnist
from ._rcv1 import BROTTO_TOPICS, load_rcv1
from ._sonar import load_sonar
from ._targets import make_alma_target, make_ho_target
from ._text import make_zipf_text
from ._usps import load_usps
from ._wbc import load_wbc

__all__ = [
    "BROTTO_TOPICS",
    "load_breast_er",
    "load_colon",
    "load_letter",
    "load_leukemia",
    "load_lymphoma",
    "load_mnist",
    "load_rcv1",
    "load_sonar",
    "load_usps",
    "load_wbc",
    "make_alma_target",
    "make_ho_target",
    "make_zipf_text",
]
