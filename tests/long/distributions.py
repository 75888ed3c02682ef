"""Builds the distributions and tries them in clean environments: make test-dist.

PYTHONPATH=tests python -m long.distributions [--whole-suite]

From a copy of the files that git keeps, with leftovers of work planted among them, a source
distribution is built, and from that a wheel. Each holds what it should and nothing else, installs
into an environment of its own, the source distribution by compiling, and works there, away from
the project; so does the command, with its extra and without. Against the installed wheel a part of
the tests is run, or all of them, as the source distribution brings them. That takes some ten
minutes on two cores, and the wheels of what is required.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
from pathlib import Path

from long import distribution_contents as contents

ROOT = Path(__file__).resolve().parents[2]
# What goes through every room of the package within a minute.
QUICK_TESTS = ("cli/test_cli", "datasets/test_registry", "io/test_load_svmlight",
               "io/test_model_files", "io/test_row_cache", "io/test_sources", "io/test_stream",
               "models/test_fit_csr", "workshop/test_typing")  # fmt: skip
# The scanner's fuzzer is compiled from sources beside it.
NEEDS_SOURCES = ("workshop/test_fuzz.py", "workshop/test_packaging.py")


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

    def install(self, requirement):
        self.call("python", "-m", "pip", "install", "-q", requirement)


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


def check_installed(environment, kept, version):
    script = ROOT / "tests" / "long" / "installed_package.py"
    packages = contents.packages(kept)
    print(environment.call("python", "-I", script, version, *packages), end="", flush=True)


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
    which = [f"tests/{name}.py" for name in QUICK_TESTS]
    if whole_suite:
        which = [f"--ignore=tests/{name}" for name in NEEDS_SOURCES]
    options = ("-q", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider")
    print(environment.call("pytest", *options, *which, folder=folder), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--whole-suite", action="store_true", help="run all tests, not a part")
    options = parser.parse_args()
    kept = contents.kept_by_git(ROOT)
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(kept, folder / "project")
        sdist, wheel = build(folder / "project", folder / "dist")
        check_contents(kept, version, sdist, wheel)
        shutil.rmtree(folder / "project")
        compiled = CleanEnvironment(folder / "of the sdist")
        compiled.install(sdist)
        check_installed(compiled, kept, version)
        installed = CleanEnvironment(folder / "of the wheel")
        installed.install(wheel)
        check_installed(installed, kept, version)
        check_command(installed, version, wheel)
        run_tests(installed, sdist, wheel, options.whole_suite)


if __name__ == "__main__":
    main()
