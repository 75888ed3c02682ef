"""One soak from text: a process learns from a pipe into which the stream is written.

Run by itself it is that process: it learns from standard input, and keeps what it has learned.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from soak_fit import learned
from soak_memory import Samples
from soak_stream import N_FEATURES, Stream

from sparsemargin import fit_svmlight


def soak(n_nonzeros: int, settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """Write the stream into the pipe, and watch the process at its other end.

    Parameters
    ----------
    n_nonzeros : int
    settings : dict
        Parameters of ALMA.
    path : Path
        Where what was learned is kept, an .npz file.

    Returns
    -------
    dict
        ``sizes``, with the text's bytes, ``memory`` and ``cpu_seconds``.
    """
    stream = Stream(n_nonzeros)
    texts = stream.texts()
    text, done = next(texts)  # all texts are made by then
    command = [sys.executable, __file__, json.dumps(settings), str(path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert child.stdin is not None
    samples, n_bytes = Samples(child.pid), 0
    while text:
        child.stdin.write(text)
        n_bytes += len(text)
        samples.take(done)
        text, done = next(texts, (None, done))
    child.stdin.close()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit("The soak from text failed")
    seconds = usage.ru_utime + usage.ru_stime
    sizes = {"nonzeros": done, "text_bytes": n_bytes}
    return {"sizes": sizes, "memory": samples.summary(), "cpu_seconds": seconds}


def _learn(settings: dict[str, Any], path: Path) -> None:
    model = fit_svmlight("-", "alma", n_features=N_FEATURES, zero_based=False, **settings)
    np.savez(path, **learned(model))


if __name__ == "__main__":
    _learn(json.loads(sys.argv[1]), Path(sys.argv[2]))
