"""Loaders of data that only the papers' tables and figures need.

They read local copies only; ``python -m papers.data download`` fetches the files.
"""

from pathlib import Path

from sparsemargin.datasets.files import REGISTRIES, data_sets

from .letter import load_letter
from .mnist import load_mnist
from .sonar import load_sonar
from .usps import load_usps
from .wbc import load_wbc

REGISTRIES[__name__] = Path(__file__).with_name("registry.toml")
data_sets.cache_clear()

__all__ = ["load_letter", "load_mnist", "load_sonar", "load_usps", "load_wbc"]
