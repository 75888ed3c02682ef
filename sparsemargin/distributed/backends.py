"""Backends that run the work on the shards: this process, or Dask's workers."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from operator import getitem
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from sparsemargin.distributed.row_makers import RowMaker
from sparsemargin.distributed.shard_forms import Pair, is_future, is_lazy
from sparsemargin.distributed.shards import FileShard, MatrixShard, Shard

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


def open_shard(given: Any, y: Any = None, row_maker: RowMaker | None = None) -> Shard:
    """Open a shard on the machine that trains on it."""
    return given if isinstance(given, FileShard) else MatrixShard.of(given, y, row_maker)


class Lazy:
    """The handle of a call that is made in this process when its result is needed first."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._call: tuple[Callable[..., Any], tuple[Any, ...]] | None = function, arguments

    def result(self) -> Any:
        if self._call is not None:
            function, arguments = self._call
            self._result = function(*map(_known, arguments))
            self._call = None
        return self._result


def _known(value: Any) -> Any:
    return value.result() if isinstance(value, Lazy) else value


class SerialBackend:
    """A backend that makes all calls in this process, one after the other.

    Calls are given by their handles. These may be arguments of other calls, which must not change
    the results that they stand for.
    """

    n_workers = 1

    def __init__(
        self, shards: Sequence[Pair | FileShard], row_maker: RowMaker | None = None
    ) -> None:
        self.shards: list[Any] = []
        for s, shard in enumerate(shards):
            with _naming(s, len(shards)):
                given, y = map(_here, _parts(shard))
                self.shards.append(open_shard(given, y, row_maker))

    def turn(self, function: Callable[[Any, Any], Shard], value: Any) -> None:
        """Replace each shard by the result of the function for it and the value."""
        self.shards = [function(shard, value) for shard in self.shards]

    def share(self, value: Any) -> Any:
        """The handle of a value that is made available to all calls."""
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function; returns the handle of the result."""
        return Lazy(function, *arguments)

    def over_shards(
        self,
        function: Callable[..., Any],
        arguments: Mapping[int, Sequence[Any]],
        n_pieces: int = 0,
    ) -> list[dict[int, Any]]:
        """Call a function with shards and their arguments; returns handles of the results. With
        `n_pieces`, these are tuples of so many elements, and each element has a handle."""
        calls = {
            s: Lazy(function, self.shards[s], *given) for s, given in arguments.items()
        }  # fmt: skip
        if not n_pieces:
            return [calls]
        return [
            {s: Lazy(getitem, call, i) for s, call in calls.items()} for i in range(n_pieces)
        ]  # fmt: skip

    def results(
        self, handles: Mapping[int, Any], more: Sequence[Any] = ()
    ) -> Generator[tuple[int, Any]]:
        """Yield the results of calls for shards, with the index of the shard, as soon as they are
        available. At the end, the calls of `more` have been made, too."""
        for s, handle in handles.items():
            with _naming(s, len(self.shards)):
                result = _known(handle)
            yield s, result
        for handle in more:
            _known(handle)

    def gather(self, handles: Sequence[Any]) -> list[Any]:
        """The results of calls."""
        return [_known(handle) for handle in handles]

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """The results of a function for all shards, in order."""
        given = dict.fromkeys(range(len(self.shards)), arguments)
        return [result for _, result in self.results(self.over_shards(function, given)[0])]


def _parts(shard: Pair | FileShard) -> tuple[Any, Any]:
    return shard if isinstance(shard, Pair) else (shard, None)


def _here(value: Any) -> Any:
    if is_lazy(value):
        return value.compute()
    return value.result() if is_future(value) else value


@contextmanager
def _naming(s: int | None, n_shards: int) -> Iterator[None]:
    """Add the index of the shard to errors, if there are several shards."""
    try:
        yield
    except (ValueError, OSError) as error:
        if n_shards == 1 or s is None:
            raise
        kinds = ConnectionError, OSError, ValueError
        kind = next(kind for kind in kinds if isinstance(error, kind))
        raise kind(f"Shard {s} of {n_shards}, counted from 0: {error}") from None


class DaskBackend:
    """The workers of a Dask cluster.

    All results are made by tasks that Dask can repeat. Therefore no data is lost if a worker dies:
    its data is recomputed on another worker, with bitwise equal results.
    """

    def __init__(
        self, client: Client, shards: Sequence[Pair | FileShard], row_maker: RowMaker | None = None
    ) -> None:
        if client.status != "running":
            raise ConnectionError(f"{client!r} is {client.status}. Pass one that is connected.")
        self.client, self.address = client, str(client.scheduler.address)
        # All futures that are still needed.
        self._known = WeakSet[Any]()
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise ConnectionError(
                f"No worker has joined the Dask scheduler at {self.address} within {PATIENCE} "
                f"seconds. Start one: dask worker {self.address}"
            ) from None
        with self._connected():
            parts = [part for shard in shards for part in _parts(shard)]
            # This starts the computation of all lazy parts.
            futures = iter(client.compute([part for part in parts if is_lazy(part)]))
            parts = [next(futures) if is_lazy(part) else part for part in parts]
            # All calls are submitted at once. If they were submitted one by one, Dask could assign
            # all of them to the worker that is idle each time, and the shards would stay there.
            self.shards = self.restartable(client.map(
                open_shard, parts[::2], parts[1::2], row_maker=row_maker, pure=False
            ))  # fmt: skip

    @property
    def n_workers(self) -> int:
        """The number of workers now."""
        with self._connected():
            return len(self.client.nthreads())

    def turn(self, function: Callable[[Any, Any], Shard], value: Any) -> None:
        """See `SerialBackend.turn`."""
        arguments = dict.fromkeys(range(len(self.shards)), (self.share(value),))
        self.shards = [*self.over_shards(function, arguments)[0].values()]

    def share(self, value: Any) -> Future:
        """See `SerialBackend.share`. A task is used, because scattered data is lost with its
        worker."""
        return self.submit(_itself, value)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """See `SerialBackend.submit`."""
        with self._connected():
            return self.restartable([self.client.submit(function, *arguments, pure=False)])[0]

    def over_shards(
        self,
        function: Callable[..., Any],
        arguments: Mapping[int, Sequence[Any]],
        n_pieces: int = 0,
    ) -> list[dict[int, Future]]:
        """See `SerialBackend.over_shards`. Tasks are not restricted to workers. If all workers are
        gone for a moment, Dask can wait for ever for a preferred worker, even if others are
        allowed."""
        given = zip(*([self.shards[s], *each] for s, each in arguments.items()), strict=True)
        with self._connected():
            calls = self.restartable(self.client.map(function, *map(list, given), pure=False))
            if not n_pieces:
                return [dict(zip(arguments, calls, strict=True))]
            return [
                dict(zip(arguments, self.restartable(
                    self.client.map(getitem, calls, [i] * len(calls), pure=False)
                ), strict=True))
                for i in range(n_pieces)
            ]  # fmt: skip

    def results(
        self, handles: Mapping[int, Future], more: Sequence[Future] = ()
    ) -> Generator[tuple[int, Any]]:
        """See `SerialBackend.results`."""
        running = {future: s for s, future in handles.items()}
        with self._connected():
            try:
                for done in self._completed([*running, *more]):
                    self._raise_error_of(done, running)
                    done = [future for future in done if future in running]
                    for future, result in zip(done, self._read(done), strict=True):
                        yield running.pop(future), result
            finally:
                self.client.cancel(list(running))

    def gather(self, handles: Sequence[Future]) -> list[Any]:
        """See `SerialBackend.gather`."""
        with self._connected():
            for done in self._completed(handles):
                self._raise_error_of(done, {})
            return self._read(handles)

    def _read(self, futures: Sequence[Future]) -> list[Any]:
        """The results of completed calls. Those whose worker has died since are made again."""
        n_left = _RETRIES
        while True:
            try:
                return self.client.gather(futures)
            except imported_dask().distributed.KilledWorker:
                if not n_left:
                    raise
            n_left -= 1
            self._retry()
            for done in self._completed(futures):
                self._raise_error_of(done, {})

    def _raise_error_of(self, done: Sequence[Future], shards: Mapping[Future, int]) -> None:
        """Raise the error of a call, which names the shard that it was for."""
        for future in done:
            if future.status == "error":
                with _naming(shards.get(future), len(self.shards)):
                    _refuse_worker(future.exception())
                    future.result()

    def each(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """See `SerialBackend.each`."""
        given = dict.fromkeys(range(len(self.shards)), tuple(map(self.share, arguments)))
        found = dict(self.results(self.over_shards(function, given)[0]))
        return [found[s] for s in range(len(self.shards))]

    def restartable(self, futures: list[Future]) -> list[Future]:
        """Note futures that are restarted if their workers die; returns them."""
        self._known.update(futures)
        return futures

    def _completed(self, futures: Sequence[Future]) -> Iterator[list[Future]]:
        """Yield futures that have completed, some at a time. Those that failed because workers died
        are restarted a number of times."""
        killed, retries = imported_dask().distributed.KilledWorker, Counter[Any]()
        running = dict.fromkeys(futures)
        while running:
            done = []
            for future in self._next(list(running)):
                failed = future.status == "error" and isinstance(future.exception(), killed)
                if failed and retries[future] < _RETRIES:
                    retries[future] += 1
                    self._retry()
                else:
                    done.append(future)
                    del running[future]
            yield done

    def _next(self, futures: list[Future]) -> list[Future]:
        """Completed futures, at least one; warns while there is no worker."""
        wait = imported_dask().distributed.wait
        looks = 0
        while True:
            try:
                # `wait` uses the current client, which may be another one.
                with self.client.as_current():
                    found = wait(futures, PATIENCE / _LOOKS, return_when="FIRST_COMPLETED")
                # A result is lost if its worker dies before the result is read.
                if found.done:
                    return [future for future in futures if future in found.done]
            except TimeoutError:
                looks += 1
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
        failed = [future for future in list(self._known) if future.status == "error"]
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


Backend = SerialBackend | DaskBackend


def _itself(value: Any) -> Any:
    return value


def _refuse_worker(error: BaseException | None) -> None:
    """Explain what to do if workers cannot process a shard for reasons outside its data."""
    if isinstance(error, imported_dask().distributed.KilledWorker):
        raise ConnectionError(
            "Its workers have gone down time and again: one may not have the memory for it. Cut it "
            "into smaller shards, or give the workers more."
        )
    if isinstance(error, ModuleNotFoundError):
        raise ConnectionError(
            f"A worker has no {error.name}: pip install 'sparsemargin[distributed]' where the "
            "workers run."
        )


@contextmanager
def backend_of(
    client: Any, shards: Sequence[Pair | FileShard], row_maker: RowMaker | None = None
) -> Iterator[Backend]:
    """The backend for this process or for the workers of a client. A client opened here is
    closed."""
    if client is None:
        yield SerialBackend(shards, row_maker)
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
