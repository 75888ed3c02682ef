"""What belongs into the source distribution and into the wheel: what git keeps, and little else."""

import subprocess
import sysconfig
import tarfile
import zipfile
from pathlib import PurePosixPath

PACKAGE = "sparsemargin"
# Of the files that git keeps, those that serve a clone, or where it is hosted.
OF_A_CLONE = (
    ".editorconfig",
    ".gitattributes",
    ".github/",
    ".gitignore",
    ".pre-commit-config.yaml",
)
WRITTEN_INTO_SDIST = {
    "PKG-INFO",
    "setup.cfg",
    *(
        f"{PACKAGE}.egg-info/{name}"
        for name in ("PKG-INFO", "SOURCES.txt", "dependency_links.txt", "entry_points.txt",
                     "requires.txt", "top_level.txt")
    ),
}  # fmt: skip
WRITTEN_INTO_WHEEL = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
                      "top_level.txt")  # fmt: skip
# What work leaves behind in a developer's folder, and no distribution may take along.
LEFT_BEHIND = (
    ".hypothesis/left",
    ".venv/left.py",
    "build/left.txt",
    "datasets/left.svm.bz2",
    "docs/_build/left.md",
    "docs/gallery/left.rst",
    "docs/pictures/left.svg",
    "fuzz/__pycache__/left.cpython-311.pyc",
    "papers/__pycache__/left.cpython-311.pyc",
    "results/left.json",
    "wheelhouse/left.whl",
    f"{PACKAGE}/__pycache__/left.cpython-311.pyc",
    f"{PACKAGE}/_engine/_left.cpp",
    f"{PACKAGE}/_engine/_left.cpython-311-x86_64-linux-gnu.so",
    "tests/__pycache__/left.cpython-311.pyc",
)


def kept_by_git(root):
    """Paths of the files that git keeps, from the root of the project.

    Raises
    ------
    SystemExit
        If the folder is no clone, or has files of the package that git does not know yet.
    """
    unknown = _listed(root, "--others", "--exclude-standard", PACKAGE)
    if unknown:
        raise SystemExit(f"git neither keeps nor ignores {', '.join(unknown)}: add or remove them")
    return [path for path in _listed(root, "--cached") if (root / path).exists()]


def _listed(root, *options):
    command = ["git", "ls-files", "-z", *options]
    listed = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, text=True)
    if listed.returncode:
        raise SystemExit("What belongs into a distribution is asked of git: take a clone")
    return listed.stdout.split("\0")[:-1]


def packages(kept):
    """Names of the packages among the files, those within packages included."""
    folders = [path.parent for path in map(PurePosixPath, kept) if path.name == "__init__.py"]
    return sorted(".".join(folder.parts) for folder in folders if folder.parts[0] == PACKAGE)


def expected_in_sdist(kept):
    """Paths below the one folder of the source distribution."""
    return {path for path in kept if not path.startswith(OF_A_CLONE)} | WRITTEN_INTO_SDIST


def expected_in_wheel(kept, version):
    """Paths in the wheel that this interpreter builds."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    own = {path for path in kept if path.startswith(f"{PACKAGE}/")}
    engine = {path.removesuffix(".pyx") + suffix for path in own if path.endswith(".pyx")}
    # What Cython shares among them.
    engine.add(f"{PACKAGE}/_engine/_cyutility{suffix}")
    written = {f"{PACKAGE}-{version}.dist-info/{name}" for name in WRITTEN_INTO_WHEEL}
    return own | engine | written


def found_in_sdist(path):
    """Paths of the files below the one folder of the source distribution."""
    with tarfile.open(path) as archive:
        names = [member.name for member in archive.getmembers() if member.isfile()]
    return {name.partition("/")[2] for name in names}


def found_in_wheel(path):
    """Paths of the files in the wheel."""
    with zipfile.ZipFile(path) as archive:
        return {name for name in archive.namelist() if not name.endswith("/")}


def differences(expected, found):
    """A line for each file that is missing, or has no business there."""
    missing = [f"missing: {path}" for path in sorted(expected - found)]
    return missing + [f"not meant to be there: {path}" for path in sorted(found - expected)]
