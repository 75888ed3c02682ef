"""The version, as the package was installed."""

from importlib.metadata import version

__version__ = version("sparsemargin")
