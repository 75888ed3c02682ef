"""CPU time of a fit over shards on Dask's processes: client, scheduler and workers."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from timing import cannot_run

from sparsemargin import fit_text
from sparsemargin.distributed import fit_distributed
from sparsemargin.text.defaults import hashed_pairs

SEED = 0
N_FILES, N_WORDS, MEGABYTES = 16, 40, 250
#: Words of 6 letters and a space, drawn by Zipf's law; a class prefers some of them.
VOCABULARY, ZIPF, OF_CLASS, OWN_SHARE, NOISE = 200_000, 1.25, 400, 0.12, 0.05
#: Bits of hashed columns: the default, whose weights are stored densely for up to 16 classes, and
#: those for more classes.
WIDEST_BITS, MANY_BITS = 22, 18


def write_texts(folder: Path, n_bytes: float, n_classes: int) -> list[str]:
    """Write N_FILES files of random texts, with n_bytes bytes in total."""
    random = np.random.default_rng(SEED)
    letters = random.integers(ord("a"), ord("z") + 1, (VOCABULARY, 6), np.uint8)
    words = np.append(letters, np.full((VOCABULARY, 1), ord(" "), np.uint8), axis=1)
    own = random.integers(50, VOCABULARY // 10, (n_classes, OF_CLASS))
    names = np.array([list(f"c{i:02}\t".encode()) for i in range(n_classes)], np.uint8)
    n_rows, paths = int(n_bytes / N_FILES / (7 * N_WORDS + 4)), list[str]()
    for i in range(N_FILES):
        y = random.integers(n_classes, size=n_rows)
        drawn = np.minimum(random.zipf(ZIPF, (n_rows, N_WORDS)), VOCABULARY) - 1
        chosen = own[y[:, np.newaxis], random.integers(OF_CLASS, size=drawn.shape)]
        drawn = np.where(random.random(drawn.shape) < OWN_SHARE, chosen, drawn)
        wrong = random.random(n_rows) < NOISE
        y[wrong] = random.integers(n_classes, size=wrong.sum())
        lines = np.hstack([names[y], words[drawn].reshape(n_rows, -1)])
        lines[:, -1] = ord("\n")
        paths.append(str(folder / f"part-{i:02}.tsv"))
        lines.tofile(paths[-1])
    return paths


@contextmanager
def processes(n_workers: int, folder: Path) -> Iterator[tuple[Any, list[Any]]]:
    """A client of a scheduler and its workers of one thread, and all their processes."""
    try:
        import psutil
        from dask.distributed import Client
    except ImportError as error:
        cannot_run(f"{error}: pip install 'sparsemargin[distributed]'")
    with ExitStack() as stack:

        def start(*arguments: str) -> Any:
            command = [sys.executable, "-m", "dask", *arguments, "--no-dashboard"]
            process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return psutil.Process(process.pid)

        file = str(folder / f"scheduler-{n_workers}.json")
        found = [start("scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", file)]
        client = stack.enter_context(Client(scheduler_file=file, set_as_default=False))
        alone = "--no-nanny", "--nthreads", "1", "--local-directory", str(folder)
        found += [start("worker", client.scheduler.address, *alone) for _ in range(n_workers)]
        client.wait_for_workers(n_workers, timeout=60)
        yield client, [psutil.Process(), *found]


def cpu_of(which: list[Any], call: Callable[[], Any]) -> tuple[float, np.ndarray]:
    """Seconds of a call by the clock, and CPU seconds of each process meanwhile."""
    now = lambda: np.array([sum(each.cpu_times()[:2]) for each in which])  # noqa: E731
    before, began = now(), time.perf_counter()
    call()
    return time.perf_counter() - began, now() - before


def fit_on(n_workers: int, paths: list[str], **how: Any) -> dict[str, Any]:
    """Seconds and CPU seconds of a fit on new processes. Each worker has trained on a file before,
    because the first fit of a process imports the library, which takes up to 2 seconds."""
    with (
        tempfile.TemporaryDirectory() as folder,
        processes(n_workers, Path(folder)) as (client, which),
    ):
        fit = partial(fit_distributed, client=client, random_state=SEED, **how)
        fit(paths[:n_workers], cache_dir=folder)
        seconds, cpu = cpu_of(which, partial(fit, paths, cache_dir=Path(folder, "all")))
    return {
        "workers": n_workers, "seconds": seconds, "client": cpu[0], "scheduler": cpu[1],
        "each worker": cpu[2:].tolist(), "share": cpu[:2].sum() / cpu.sum(),
    }  # fmt: skip


def cpu_alone(call: Callable[[], Any]) -> float:
    """CPU seconds of a call in this process."""
    before = time.process_time()
    call()
    return time.process_time() - before


def of_clusters(quick: bool) -> list[dict[str, Any]]:
    """CPU time on one worker and on two, with the shares of client and scheduler: 16 shards of 2, 8
    and 20 classes, compared with one process, and a ring of 20 and of 100 classes."""
    # Imports of scikit-learn take a second of the first fit; they do not grow with the data.
    from sparsemargin.tasks import text_classifier  # noqa: F401

    found, n_bytes = list[dict[str, Any]](), MEGABYTES * 1e6 / (100 if quick else 1)
    many = {"features": hashed_pairs(MANY_BITS)}
    for classes, how, size in (
        (2, {}, 1.0), (8, {}, 1.0), (20, many, 1.0),
        (20, many | {"mixing": "ring"}, 0.2), (100, many | {"mixing": "ring"}, 0.2),
    ):  # fmt: skip
        ring = "mixing" in how
        if not ring and classes > 16:
            how = how | {"mixing": "uniform"}
        with tempfile.TemporaryDirectory() as folder:
            paths = write_texts(Path(folder), n_bytes * size, classes)
            facts = {"classes": classes, "MB": n_bytes * size / 1e6, "ring": ring}
            if not ring:
                features = how.get("features", hashed_pairs(WIDEST_BITS))
                one = partial(fit_text, features=features, random_state=SEED, n_jobs=1)
                one(paths[:1])
                found.append({**facts, "fit_text": cpu_alone(partial(one, paths))})
            for n_workers in (1, 2):
                found.append({**facts, **fit_on(n_workers, paths, **how)})
    return found
