"""Compile the engine, on all cores; every other fact about the package is in pyproject.toml."""

import os

from Cython.Build import cythonize
from setuptools import setup

setup(
    options={"build_ext": {"parallel": os.cpu_count()}},
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
        },
    ),
)
