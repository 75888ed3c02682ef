"""The peers that read files themselves: vw and liblinear, where they are installed."""

import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from shutil import which

from files_calls import error_of
from files_texts import Texts

VW = (sys.executable, "-m", "vowpalwabbit", "--quiet")
LIBLINEAR = "liblinear-train"


def has_vw() -> bool:
    return find_spec("vowpalwabbit") is not None


def has_liblinear() -> bool:
    return which(LIBLINEAR) is not None


def say_who_is_missing() -> None:
    """Tell who can't take part, and where he comes from."""
    if not has_vw():
        print('LEFT OUT: vw, which is not installed (pip install "sparsemargin[bench]")')
    if not has_liblinear():
        print("LEFT OUT: liblinear, which is not installed (Debian's package liblinear-tools)")


def vw_error(model: Path, texts: Texts) -> float:
    """The test error of a model that vw has saved."""
    test = texts.path("test", "vw")
    with tempfile.TemporaryDirectory() as folder:
        predicted = f"{folder}/predictions"
        command = [*VW, "-t", "-i", str(model), "-d", str(test), "-p", predicted]
        subprocess.run(command, check=True)
        return error_of(predicted, test)


def liblinear_error(model: Path, texts: Texts) -> float:
    """The test error of a model that liblinear has saved."""
    test = texts.path("test")
    with tempfile.TemporaryDirectory() as folder:
        predicted = f"{folder}/predictions"
        command = ["liblinear-predict", "-q", str(test), str(model), predicted]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return error_of(predicted, test)
