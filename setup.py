"""Compile the engine; every other fact about the package is in pyproject.toml."""

import os

from Cython.Build import cythonize
from setuptools import setup

setup(
    # On up to four cores: each compiler takes some hundred megabytes.
    options={"build_ext": {"parallel": min(4, os.cpu_count() or 1)}},
    ext_modules=cythonize(
        "sparsemargin/_engine/*.pyx",
        language="c++",
        compiler_directives={
            "language_level": 3,
            "boundscheck": False,
            "wraparound": False,
            "initializedcheck": False,
            "cdivision": True,
            "embedsignature": True,
            # Modules hold nothing that changes; that a model learns alone, the learners see to.
            "freethreading_compatible": True,
        },
    ),
)
