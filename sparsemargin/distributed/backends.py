"""Backends that run the work on the shards: this process, or Dask's workers."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from operator import itemgetter
from typing import TYPE_CHECKING, Any

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


class SerialBackend:
    """A backend that processes the shards one after the other in this process."""

    def __init__(
        self, shards: Sequence[Pair | FileShard], row_maker: RowMaker | None = None
    ) -> None:
        self.shards: list[Shard] = []
        for s, shard in enumerate(shards):
            with _naming(s, len(shards)):
                given, y = map(_here, _parts(shard))
                self.shards.append(open_shard(given, y, row_maker))

    def turn(self, function: Callable[[Any, Any], Shard], value: Any) -> None:
        """Replace each shard by the result of the function for it and the value."""
        self.shards = [function(shard, value) for shard in self.shards]

    def share(self, value: Any) -> Any:
        """Make an object available to all calls of `each`, and return the argument to pass for
        it."""
        return value

    def each(
        self, function: Callable[..., Any], *shared: Any, starts: Sequence[Any] | None = None,
        of: Sequence[int] | None = None,
    ) -> Generator[tuple[int, Any]]:  # fmt: skip
        """Call a function with each shard, or with those of the indices `of`, and further
        arguments, which it must not change. The last argument is the shard's element of `starts`.
        Yields the index of a shard and the result as soon as it is available."""
        for s in range(len(self.shards)) if of is None else of:
            with _naming(s, len(self.shards)):
                own = () if starts is None else (starts[s],)
                result = function(self.shards[s], *shared, *own)
            yield s, result


def _parts(shard: Pair | FileShard) -> tuple[Any, Any]:
    return shard if isinstance(shard, Pair) else (shard, None)


def _here(value: Any) -> Any:
    if is_lazy(value):
        return value.compute()
    return value.result() if is_future(value) else value


@contextmanager
def _naming(s: int, n_shards: int) -> Iterator[None]:
    """Add the index of the shard to errors, if there are several shards."""
    try:
        yield
    except (ValueError, OSError) as error:
        if n_shards == 1:
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
            self.shards = client.map(
                open_shard, parts[::2], parts[1::2], row_maker=row_maker, pure=False
            )

    def turn(self, function: Callable[[Any, Any], Shard], value: Any) -> None:
        """See `SerialBackend.turn`."""
        shared = self.share(value)
        with self._connected():
            self.shards = [
                self.client.submit(function, shard, shared, pure=False) for shard in self.shards
            ]

    def share(self, value: Any) -> Future:
        """See `SerialBackend.share`. A task is used, because scattered data is lost with its
        worker."""
        with self._connected():
            return self.client.submit(_itself, value, pure=False)

    def each(
        self, function: Callable[..., Any], *shared: Any, starts: Sequence[Any] | None = None,
        of: Sequence[int] | None = None,
    ) -> Generator[tuple[int, Any]]:  # fmt: skip
        """See `SerialBackend.each`; results are yielded in the order of their completion."""
        killed = imported_dask().distributed.KilledWorker
        submit, n_shards = self.client.submit, len(self.shards)
        retries: Counter[int] = Counter()
        running: dict[Future, int] = {}
        with self._connected():
            try:
                sent = [each if is_future(each) else self.share(each) for each in shared]
                n_shared, own = len(sent), dict[int, Any]()
                for start in starts or ():
                    if id(start) not in own:
                        own[id(start)] = self.share(start)
                sent += own.values()
                # Tasks are not restricted to workers. If all workers are gone for a moment, Dask
                # can wait for ever for a preferred worker, even if others are allowed.
                for s in range(n_shards) if of is None else of:
                    mine = [] if starts is None else [own[id(starts[s])]]
                    given = self.shards[s], *sent[:n_shared], *mine
                    running[submit(function, *given, pure=False)] = s
                while running:
                    future = self._next(list(running), sent)
                    s, error = running[future], future.exception()
                    if isinstance(error, killed) and retries[s] < _RETRIES:
                        retries[s] += 1
                        self._retry([future, *self.shards, *sent])
                        continue
                    del running[future]
                    if error is not None:
                        with _naming(s, n_shards):
                            _refuse_worker(error)
                            future.result()
                    yield s, future.result()
            finally:
                self.client.cancel(list(running))

    def _next(self, futures: list[Future], shared: list[Future]) -> Future:
        """A completed future; warns while there is no worker."""
        wait = imported_dask().distributed.wait
        looks = 0
        while True:
            try:
                # `wait` uses the current client, which may be another one.
                with self.client.as_current():
                    found = wait(futures, PATIENCE / _LOOKS, return_when="FIRST_COMPLETED")
                # A result is lost if its worker dies before the result is read.
                if found.done:
                    return next(iter(found.done))
            except TimeoutError:
                looks += 1
                self._retry([*self.shards, *shared])
                if looks % _LOOKS == 0 and not self.client.scheduler_info().get("workers"):
                    warnings.warn(
                        "No worker is left; the fit goes on when one joins the Dask scheduler at "
                        f"{self.address}.", stacklevel=2,
                    )  # fmt: skip

    def _retry(self, futures: list[Future]) -> None:
        """Restart failed futures and the futures that caused their failure.

        If there are two causes, Dask restarts only the one that it names, and then waits for ever;
        therefore all are given. `Client.retry` fails for keys that only the scheduler knows, and
        may reset futures that have completed in the meantime.
        """
        failed = [future for future in futures if future.status == "error"]
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
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise LostScheduler(f"The Dask scheduler at {self.address} has gone away") from error


Backend = SerialBackend | DaskBackend


def in_order(results: Iterable[tuple[int, Any]]) -> list[Any]:
    """The results of `each`, in the order of the shards."""
    return [result for _, result in sorted(results, key=itemgetter(0))]


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
