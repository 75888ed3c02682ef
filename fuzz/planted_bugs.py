"""Show that the fuzzer of the scanner finds bugs.

    python fuzz/planted_bugs.py

Each bug in SCANNER_BUGS of known_faults.py breaks a copy of the scanner. The fuzzer starts with
its dictionary alone and must notice within two million inputs. It is compiled by clang++ with
libFuzzer; LLVM_SUFFIX=-14 selects clang++-14.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from known_faults import SCANNER_BUGS, Fault

ROOT = Path(__file__).resolve().parents[1]
SANITIZERS = ("-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")
INPUTS = ("-dict=fuzz/svmlight.dict", "-runs=2000000", "-seed=1", "-max_len=200", "-only_ascii=1")
REPORT = re.compile(r"^.*(?:is false|ERROR: AddressSanitizer|runtime error).*", re.MULTILINE)


def write_broken_copy(bug: Fault, folder: Path) -> None:
    """Copy the fuzzer and the headers of the engine, with the bug in one of them."""
    for name in ("fuzz", "sparsemargin/_engine"):
        compiled = shutil.ignore_patterns("*.so", "*.p[yx]*", "__pycache__")
        shutil.copytree(ROOT / name, folder / name, ignore=compiled)
    text = (folder / bug.file).read_text()
    (folder / bug.file).write_text(text.replace(bug.right, bug.wrong))


def main() -> None:
    """Run the fuzzer on each broken copy, and exit with an error if it does not find the bug."""
    for bug in SCANNER_BUGS:
        copy = ROOT / "build" / "fuzz" / bug.room
        shutil.rmtree(copy, ignore_errors=True)
        write_broken_copy(bug, copy)
        compiler = f"clang++{os.environ.get('LLVM_SUFFIX', '')}"
        command = [compiler, "-std=c++17", "-O2", "-g", *SANITIZERS, "fuzz/scan_fuzzer.cpp"]
        subprocess.run([*command, "-o", "scan_fuzzer"], cwd=copy, check=True)
        command = ["./scan_fuzzer", *INPUTS]
        run = subprocess.run(command, cwd=copy, stderr=subprocess.PIPE, errors="replace")
        if run.returncode == 0:
            sys.exit(f"{bug.room} was not found")
        n_inputs = re.findall(r"^#(\d+)", run.stderr, re.MULTILINE)[-1]
        report = REPORT.search(run.stderr)
        print(f"{bug.room} was found after {n_inputs} inputs: {report and report[0]}", flush=True)


if __name__ == "__main__":
    main()
