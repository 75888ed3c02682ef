"""A short run of the fuzzer's checks, under the sanitizers: see fuzz/README.md."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

FUZZ = Path(__file__).parents[2] / "fuzz"
SANITIZERS = "-fsanitize=address,undefined"


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    """Return a C++ compiler with the sanitizers' libraries."""
    folder = tmp_path_factory.mktemp("sanitized")
    (folder / "empty.cpp").write_text("int main() {}\n")
    for name in filter(None, (os.environ.get("CXX"), "g++", "clang++")):
        command = [*name.split(), SANITIZERS, "empty.cpp", "-o", "empty"]
        if shutil.which(command[0]) and works(command, folder) and works(["./empty"], folder):
            return name.split()
    pytest.skip("no C++ compiler with the address and undefined-behaviour sanitizers")


def works(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True).returncode == 0


@pytest.mark.parametrize("extra", [[], ["-U__SSE2__"]], ids=["as compiled", "without SSE2"])
def test_corpus_and_mutations(compiler, tmp_path, extra):
    program = tmp_path / "replay"
    sources = [FUZZ / "scan_fuzzer.cpp", FUZZ / "replay.cpp"]
    flags = ["-std=c++17", "-O1", SANITIZERS, "-fno-sanitize-recover=all", *extra]
    subprocess.run([*compiler, *flags, *sources, "-o", program], check=True)
    corpus = sorted((FUZZ / "corpus").iterdir())
    command = [program, "5000", FUZZ / "svmlight.dict", *corpus]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout == f"{len(corpus)} files and 5000 mutations: nothing found\n"
