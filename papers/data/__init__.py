"""Loaders of data that only the papers' tables and figures need.

They read local copies only; ``python -m sparsemargin.datasets download`` fetches the files.
"""

from .letter import load_letter
from .mnist import load_mnist
from .sonar import load_sonar
from .usps import load_usps
from .wbc import load_wbc

__all__ = ["load_letter", "load_mnist", "load_sonar", "load_usps", "load_wbc"]
