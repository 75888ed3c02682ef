"""How many files and functions of the package a call walks through.

Three calls, counted by `sys.setprofile`: ``fit_csr(X, y, algo="ho", p=7)``, `fit_svmlight` and
``sparsemargin train``. With ``--list`` each file and function entered is named. Imports are done
before; compiled functions are not seen.
"""

import argparse
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any

import sklearn.datasets

import sparsemargin
from sparsemargin.cli.app import main as command
from sparsemargin.datasets import make_zipf_text

PACKAGE = str(Path(sparsemargin.__file__).parent)


def entered(call: Callable[[], Any]) -> dict[str, set[str]]:
    """Functions entered by the call, by file; comprehensions are part of their function."""
    found: dict[str, set[str]] = defaultdict(set)

    def note(frame: FrameType, event: str, arg: Any) -> None:
        name = frame.f_code.co_qualname
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            plain = name.rsplit(".<locals>.<", 1)[0]
            if plain != "<module>":
                found[frame.f_code.co_filename[len(PACKAGE) + 1 :]].add(plain)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


def run_command(*arguments: str) -> None:
    """What the command does, in this process, its lines kept to itself."""
    shown = TextIOWrapper(BytesIO())
    with redirect_stdout(shown), redirect_stderr(shown):
        try:
            command(list(arguments))
        except SystemExit as end:
            if end.code:
                raise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name what is entered")
    names = parser.parse_args().list
    X, y = make_zipf_text(300, 500, mean_nnz=15, random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        path, model = f"{folder}/train.svm", f"{folder}/model"
        sklearn.datasets.dump_svmlight_file(X, y, path, zero_based=False)
        calls: dict[str, Callable[[], Any]] = {
            'fit_csr(X, y, algo="ho", p=7)': lambda: sparsemargin.fit_csr(X, y, algo="ho", p=7),
            "fit_svmlight(path)": lambda: sparsemargin.fit_svmlight(path, n_features=X.shape[1]),
            "sparsemargin train": lambda: run_command("train", path, "-o", model),
        }
        for name, call in calls.items():
            call()
            found = entered(call)
            n_functions = sum(map(len, found.values()))
            print(f"{name}: {len(found)} files, {n_functions} functions")
            if names:
                for file, functions in sorted(found.items()):
                    print(f"    {file}: {', '.join(sorted(functions))}")


if __name__ == "__main__":
    main()
