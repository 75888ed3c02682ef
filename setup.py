"""Compile the engine; every other fact about the package is in pyproject.toml."""

import os
import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

ENGINE = Path("sparsemargin", "_engine")
SHARED = "sparsemargin._engine._cyutility"

# Modules without loops over entries or labels.
COLD = {
    "core/vectors", "core/log", "kernel/space",
}  # fmt: skip

# For whoever sets flags, as the sanitizers' build does, they stay.
NO_SYMBOLS = [] if "CFLAGS" in os.environ else ["-g0"]

# The sanitizers' build looks at every index; else rows are checked once, where they come in.
CHECKS_INDICES = "SPARSEMARGIN_CHECK_INDICES" in os.environ

if sys.platform == "darwin":
    # The first whose library writes doubles.
    os.environ.setdefault("MACOSX_DEPLOYMENT_TARGET", "13.3")

# Each compiler takes some hundred megabytes.
N_JOBS = min(4, os.cpu_count() or 1)


def extension(path: Path) -> Extension:
    # No sum may depend on whether the machine adds and multiplies at once.
    flags = ["-std=c++17", "-ffp-contract=off", *NO_SYMBOLS]
    if path.relative_to(ENGINE).with_suffix("").as_posix() in COLD:
        flags.append("-O1")
    name = ".".join(path.with_suffix("").parts)
    return Extension(
        name, [str(path)], include_dirs=[str(ENGINE)], language="c++", extra_compile_args=flags
    )


shared = Extension(SHARED, [str(ENGINE / "_cyutility.c")], extra_compile_args=["-O1", *NO_SYMBOLS])

modules = cythonize(
    [shared, *map(extension, sorted(ENGINE.rglob("*.pyx")))],
    nthreads=N_JOBS,
    shared_utility_qualified_name=SHARED,
    compiler_directives={
        "language_level": 3,
        "boundscheck": CHECKS_INDICES,
        "wraparound": False,
        "initializedcheck": False,
        "cdivision": True,
        "embedsignature": True,
        "auto_pickle": False,
        # Modules hold nothing that changes; that a model learns alone, the learners see to.
        "freethreading_compatible": True,
    },
)

setup(
    options={"build_ext": {"parallel": N_JOBS}},
    # The longest first, so that no core waits for them at the end.
    ext_modules=sorted(modules, key=lambda module: -Path(module.sources[0]).stat().st_size),
)
