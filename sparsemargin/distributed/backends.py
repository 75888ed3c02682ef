"""Backends that run the work on the shards: this process, or Dask's workers."""

from __future__ import annotations

import pickle
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import chain
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sparsemargin._shown import first_three
from sparsemargin.distributed.row_makers import RowMaker
from sparsemargin.distributed.shard_forms import Pair, is_future, is_lazy
from sparsemargin.distributed.shards import FileShard, MatrixShard, Shard
from sparsemargin.distributed.small_shards import joined

if TYPE_CHECKING:
    from dask.distributed import Client, Future

# Seconds to wait for the first worker, for an answer of the scheduler, and between two checks that
# workers are left. Failed tasks are looked for `_LOOKS` times in this interval.
PATIENCE = 30
_LOOKS = 15
# Largest number of times that the task of a shard is submitted again because its workers died. Dask
# itself starts a task up to four times before it reports this.
_RETRIES = 12
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss|inproc)://)?[^:/]+:\d+|inproc://.+|\[.*\]:\d+")


class LostScheduler(ConnectionError):
    """The connection to the scheduler was lost."""


def imported_dask() -> Any:
    """Return the module `dask` with `dask.distributed`."""
    try:
        # Dask is an optional dependency.
        import dask.distributed
    except ImportError:
        raise ImportError(
            "Learning on several machines needs Dask: pip install 'sparsemargin[distributed]'."
        ) from None
    return dask


def open_shard(given: Any, y: Any, row_maker: RowMaker | None) -> Shard:
    """Open a shard on the machine that trains on it."""
    return given if isinstance(given, FileShard) else MatrixShard.of(given, y, row_maker)


class Lazy:
    """The handle of a call that is made in this process when its result is first needed."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call: tuple[Callable[..., Any], tuple[Any, ...]] | None = function, arguments

    def result(self) -> Any:
        if self._call is not None:
            function, arguments = self._call
            self._result = function(*map(_known, arguments))
            self._call = None
        return self._result


def _known(value: Any) -> Any:
    if isinstance(value, list):
        return [_known(each) for each in value]
    return value.result() if isinstance(value, Lazy) else value


class Backend:
    """Makes all calls in this process, one after the other, and returns handles of their results.

    A handle may be an argument of other calls, which receive the result and must not change it.
    """

    n_workers = 1  # the number of workers now

    def __init__(
        self, given: Sequence[Pair | FileShard], row_maker: RowMaker | None = None
    ) -> None:
        # Names of the files of the given shards, or their numbers.
        self.names = [
            shard.name if isinstance(shard, FileShard) else f"shard {s}"
            for s, shard in enumerate(given)
        ]
        # For each shard, the numbers of the given shards that it consists of.
        self.numbers = [[s] for s in range(len(given))]
        self.shards = self._open(given, row_maker)

    def _open(self, given: Sequence[Pair | FileShard], row_maker: RowMaker | None) -> list[Any]:
        """The handles of the given shards."""
        shards = []
        for s, (X, y) in enumerate(map(_parts, given)):
            with self.naming(s):
                shards.append(open_shard(_here(X), _here(y), row_maker))
        return shards

    def keep_rows(self, n_rows: Sequence[int]) -> None:
        """Leave out the shards without rows. Raise an error if no shard has rows."""
        kept = [s for s, n in enumerate(n_rows) if n]
        if not kept:
            raise ValueError(
                f"No shard has rows: {first_three(self.names)}. Pass data that have rows with "
                "labels."
            )
        self.shards = [self.shards[s] for s in kept]
        self.numbers = [self.numbers[s] for s in kept]

    def join(self, runs: Sequence[range]) -> None:
        """Make one shard of the shards of each run."""
        calls = self.map(joined, [[self.shards[s] for s in run] for run in runs if len(run) > 1])
        shards = iter(calls)
        self.shards = [self.shards[run[0]] if len(run) == 1 else next(shards) for run in runs]
        self.numbers = [[*chain.from_iterable(self.numbers[s] for s in run)] for run in runs]

    @property
    def titles(self) -> list[str]:
        """For each shard, the numbers of the given shards that it consists of, in words."""
        spans = [(numbers[0], numbers[-1]) for numbers in self.numbers]
        return [f"shard {a}" if a == b else f"shards {a} to {b}" for a, b in spans]

    @property
    def files(self) -> list[str]:
        """The names of the files of each shard."""
        return [", ".join(self.names[number] for number in numbers) for numbers in self.numbers]

    @contextmanager
    def naming(self, s: int | None) -> Iterator[None]:
        """Add the title of a shard to errors, if there are several given shards."""
        try:
            yield
        except (ValueError, OSError) as error:
            if len(self.names) == 1 or s is None:
                raise
            kinds = ConnectionError, FileNotFoundError, OSError, ValueError
            kind = next(kind for kind in kinds if isinstance(error, kind))
            raise kind(
                f"{self.titles[s].capitalize()} of {len(self.names)}, counted from 0: {error}"
            ) from None

    def share(self, value: Any) -> Any:
        """The handle of a value that is made available to all calls."""
        return value

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Call a function with the elements of sequences; returns the handles of the results."""
        return [Lazy(function, *given) for given in zip(*arguments, strict=True)]

    def completed(self, calls: Mapping[int, Any], more: Sequence[Any] = ()) -> Generator[int]:
        """Yield each shard when its call has completed. At the end, the calls of `more` have
        completed, too."""
        for s, call in calls.items():
            with self.naming(s):
                _known(call)
            yield s
        self.gather(more)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The results of calls."""
        return [*map(_known, handles)]

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; returns the handle of the result."""
        return self.map(function, *([each] for each in arguments))[0]

    def over_shards(
        self, function: Callable[..., Any], arguments: Mapping[int, Sequence[Any]]
    ) -> dict[int, Any]:
        """Call a function with shards and their arguments; returns the handles of the results."""
        given = zip(*((self.shards[s], *each) for s, each in arguments.items()), strict=True)
        return dict(zip(arguments, self.map(function, *given), strict=True))

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of a function for all shards, in order. The arguments are handles or small
        values."""
        calls = self.over_shards(function, dict.fromkeys(range(len(self.shards)), arguments))
        return self.results(calls)

    def results(self, calls: Mapping[int, Any]) -> list[Any]:
        """The results of calls for shards. Errors name the shard."""
        for _ in self.completed(calls):
            pass
        return self.gather([*calls.values()])


def _parts(shard: Pair | FileShard) -> tuple[Any, Any]:
    return (shard, None) if isinstance(shard, FileShard) else shard


def _here(value: Any) -> Any:
    if is_lazy(value):
        return value.compute()
    return value.result() if is_future(value) else value


class DaskBackend(Backend):
    """The workers of a Dask cluster.

    All results are made by tasks that Dask can repeat. Therefore no data is lost if a worker dies:
    its data is recomputed on another worker, with bitwise equal results.
    """

    def __init__(
        self, client: Client, given: Sequence[Pair | FileShard], row_maker: RowMaker | None = None
    ) -> None:
        if client.status != "running":
            raise ConnectionError(f"{client!r} is {client.status}. Pass one that is connected.")
        self.client, self.address = client, str(client.scheduler.address)
        # All futures that are still needed. They are restarted if their workers die.
        self.needed = WeakSet[Any]()
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ConnectionError(
                f"No worker has joined the Dask scheduler at {self.address} within {PATIENCE} "
                f"seconds. Start one: dask worker {self.address}"
            ) from None
        super().__init__(given, row_maker)

    def _open(self, given: Sequence[Pair | FileShard], row_maker: RowMaker | None) -> list[Future]:
        parts = [part for shard in given for part in _parts(shard)]
        with self._connected():
            # This starts the computation of all lazy parts.
            futures = iter(self.client.compute([part for part in parts if is_lazy(part)]))
        parts = [next(futures) if is_lazy(part) else part for part in parts]
        return self.map(open_shard, parts[::2], parts[1::2], [row_maker] * len(given))

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        with self._connected():
            return len(self.client.nthreads())

    def share(self, value: Any) -> Future:
        """See `Backend.share`. A task is used, because scattered data is lost with its worker."""
        return self.submit(_itself, value)

    def map(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Future]:
        """See `Backend.map`. All calls are submitted together. If they were submitted one by one,
        Dask could assign all of them to one worker that is idle each time, and the shards would
        stay there. Tasks are not restricted to workers, because Dask can wait for ever for a
        preferred worker if all workers are gone for a moment, even if others are allowed."""
        with self._connected():
            futures = self.client.map(Task(function), *map(list, arguments), pure=False)
        self.needed.update(futures)
        return futures

    def completed(self, calls: Mapping[int, Future], more: Sequence[Future] = ()) -> Generator[int]:
        shards = {future: s for s, future in calls.items()}
        with self._connected():
            try:
                for future in self._completed([*shards, *more], shards):
                    if future in shards:
                        yield shards[future]
            finally:
                if running := [future for future in shards if not future.done()]:
                    self.client.cancel(running)

    def gather(self, handles: Sequence[Future]) -> list[Any]:
        """See `Backend.gather`. Results whose worker dies before they are read are made again."""
        n_left = _RETRIES
        with self._connected():
            while True:
                for _ in self._completed(handles, {}):
                    pass
                try:
                    return self.client.gather(handles)
                except imported_dask().distributed.KilledWorker:
                    if not n_left:
                        raise
                n_left -= 1
                self._retry()

    def _completed(
        self, futures: Sequence[Future], shards: Mapping[Future, int]
    ) -> Iterator[Future]:
        """Yield futures as soon as they have completed. Futures that failed because workers died
        are restarted up to `_RETRIES` times. Other errors are raised with the shard's title."""
        killed, retries = imported_dask().distributed.KilledWorker, Counter[Any]()
        ended = SimpleQueue[Any]()
        running = set(futures)
        for future in running:
            future.add_done_callback(ended.put)
        while running:
            future = self._next(ended)
            if future.status == "cancelled":
                raise CancelledError
            if future.status == "error":
                if not isinstance(future.exception(), killed) or retries[future] >= _RETRIES:
                    self._raise_error_of(future, shards)
                retries[future] += 1
                self._retry()
            if future.status == "finished":
                running.remove(future)
                yield future
                continue
            # If a result was lost with its worker, the callback is called at once. The pause avoids
            # a busy loop.
            if future.status == "lost":
                time.sleep(0.1)
            future.add_done_callback(ended.put)

    def _raise_error_of(self, future: Future, shards: Mapping[Future, int]) -> None:
        """Raise the error of a call. If a call for a shard has failed, the error names it. If the
        reason is not in the data of the shard, the error says what to do."""
        future = next((each for each in shards if each.status == "error"), future)
        error = future.exception()
        with self.naming(shards.get(future)):
            if isinstance(error, imported_dask().distributed.KilledWorker):
                raise ConnectionError(
                    "Its workers have gone down time and again: one may not have the memory for "
                    "it. Cut it into smaller shards, or give the workers more."
                )
            if isinstance(error, ModuleNotFoundError):
                raise ConnectionError(
                    f"A worker has no {error.name}: pip install 'sparsemargin[distributed]' where "
                    "the workers run."
                )
            future.result()

    def _next(self, ended: SimpleQueue[Any]) -> Future:
        """The next future that has ended; warns while there is no worker."""
        looks = 0
        while True:
            try:
                return ended.get(timeout=PATIENCE / _LOOKS)
            except Empty:
                looks += 1
            # A client that was closed has no running futures.
            if self.client.status != "running":
                raise CancelledError
            self._retry()
            if looks % _LOOKS == 0 and not self.client.scheduler_info().get("workers"):
                warnings.warn(
                    "No worker is left; the fit goes on when one joins the Dask scheduler at "
                    f"{self.address}.", stacklevel=2,
                )  # fmt: skip

    def _retry(self) -> None:
        """Restart all failed futures and the futures that caused their failure.

        If there are two causes, Dask restarts only the one that it names, and then waits for ever;
        therefore all are given. `Client.retry` fails for keys that only the scheduler knows, and
        may reset futures that have completed in the meantime.
        """
        failed = [future for future in list(self.needed) if future.status == "error"]
        if failed:
            keys, client = [future.key for future in failed], self.client
            client.sync(client.scheduler.retry, keys=keys, client=client.id)
            deadline = time.monotonic() + 1
            while failed[0].status == "error" and time.monotonic() < deadline:
                time.sleep(0.01)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Raise `LostScheduler` if the connection to the scheduler is lost inside the block."""
        # Dask is an optional dependency.
        from distributed.comm.core import CommClosedError

        # Dask warns about large arguments of tasks, but here they are meant to stay on the
        # scheduler.
        quiet = {"distributed.admin.large-graph-warning-threshold": sys.maxsize}
        try:
            # A client that was closed has also lost its scheduler.
            if self.client.status != "running":
                raise CancelledError
            with imported_dask().config.set(quiet):
                yield
        except (CancelledError, OSError) as error:
            # Errors of files are OSErrors, too. A call that can't connect has a closed connection
            # as its cause.
            lost = CancelledError, CommClosedError, TimeoutError
            if not isinstance(error, lost) and not isinstance(error.__cause__, CommClosedError):
                raise
            raise LostScheduler(f"The Dask scheduler at {self.address} has gone away") from error


class Task:
    """A function that workers call. Its errors come without their causes if these can't be pickled,
    as some of other libraries. Otherwise Dask would replace the error."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.__name__ = function, function.__name__

    def __call__(self, *arguments: Any) -> Any:
        try:
            return self.function(*arguments)
        except Exception as error:
            try:
                pickle.dumps(error)  # with its causes, because Dask has installed `tblib`
            except Exception:
                error.__cause__ = error.__context__ = None
            raise


def _itself(value: Any) -> Any:
    return value


@contextmanager
def backend_of(
    client: Any, shards: Sequence[Pair | FileShard], row_maker: RowMaker | None
) -> Iterator[Backend]:
    """The backend for this process or for the workers of a client. A client opened here is
    closed."""
    if client is None:
        yield Backend(shards, row_maker)
        return
    distributed = imported_dask().distributed
    if isinstance(client, distributed.Client):
        yield DaskBackend(client, shards, row_maker)
        return
    if not isinstance(client, str) or not _ADDRESS.fullmatch(client):
        raise ValueError(
            f"client must be a dask.distributed.Client, or an address: {client!r} is no address of "
            "a Dask scheduler. Write tcp://HOST:PORT; the default port is 8786."
        )
    try:
        opened = distributed.Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {client}: {error}. Start one: dask scheduler"
        ) from None
    with opened:
        yield DaskBackend(opened, shards, row_maker)
