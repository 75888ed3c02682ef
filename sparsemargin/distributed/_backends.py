"""Backends, which do the work on the shards: this process, or Dask's workers."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparsemargin.distributed._making import Making
from sparsemargin.distributed._shards import (
    FileShard,
    MatrixShard,
    Pair,
    Shard,
    is_future,
    is_lazy,
)

if TYPE_CHECKING:
    from dask.distributed import Client, Future

# Seconds for a first worker to join the scheduler, to hear from a scheduler at all, and between
# two looks whether a worker is left; what has failed meanwhile is looked for more often.
PATIENCE = 30
_LOOKS = 15
# Times that a shard may be begun again after workers died of it; to the first Dask adds three.
_RETRIES = 12
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss|inproc)://)?[^:/]+:\d+|inproc://.+|\[.*\]:\d+")


class LostScheduler(ConnectionError):
    """The scheduler has gone away."""


def open_shard(given: Any, y: Any = None, making: Making | None = None) -> Shard:
    """The shard itself, on the machine that learns from it."""
    return given if isinstance(given, FileShard) else MatrixShard.of(given, y, making)


class SerialBackend:
    """This process, which takes the shards one after the other."""

    def __init__(self, shards: Sequence[Pair | FileShard], making: Making | None = None) -> None:
        self.shards: list[Shard] = []
        for s, shard in enumerate(shards):
            with _naming(s, len(shards)):
                given, y = map(_here, _parts(shard))
                self.shards.append(open_shard(given, y, making))

    def turn(self, function: Callable[[Any, Any], Shard], value: Any) -> None:
        """Let each shard be what the function makes of it and the value."""
        self.shards = [function(shard, value) for shard in self.shards]

    def share(self, value: Any) -> Any:
        """Make an object known to all calls of `each`; what they are given in its place."""
        return value

    def each(
        self, function: Callable[..., Any], *shared: Any, starts: Sequence[Any] | None = None,
        of: Sequence[int] | None = None,
    ) -> Generator[tuple[int, Any]]:  # fmt: skip
        """Call a function with each shard, or those of these numbers, and further arguments, which
        it may not change, the last of them from `starts`, its own; yields the number of a shard and
        the result as soon as it is there."""
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
    """Let errors say which shard they are of, where there are several."""
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

    Everything there is made by tasks that Dask can run again, so that nothing is lost with a
    worker: what was on it is made anew on another, to the bit.
    """

    def __init__(
        self, client: Client, shards: Sequence[Pair | FileShard], making: Making | None = None
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
            # Those that are lazy are worked out from now on.
            futures = iter(client.compute([part for part in parts if is_lazy(part)]))
            parts = [next(futures) if is_lazy(part) else part for part in parts]
            # Dask is told of all calls at once: told of one after the other, it may find the same
            # worker idle each time, with which the shards then stay.
            self.shards = client.map(open_shard, parts[::2], parts[1::2], making=making, pure=False)

    def turn(self, function: Callable[[Any, Any], Shard], value: Any) -> None:
        """As `SerialBackend.turn`."""
        shared = self.share(value)
        with self._connected():
            self.shards = [
                self.client.submit(function, shard, shared, pure=False) for shard in self.shards
            ]

    def share(self, value: Any) -> Future:
        """As `SerialBackend.share`: by a task, since what is scattered dies with its worker."""
        with self._connected():
            return self.client.submit(_itself, value, pure=False)

    def each(
        self, function: Callable[..., Any], *shared: Any, starts: Sequence[Any] | None = None,
        of: Sequence[int] | None = None,
    ) -> Generator[tuple[int, Any]]:  # fmt: skip
        """As `SerialBackend.each`, in the order in which they come."""
        from dask.distributed import KilledWorker

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
                # Any worker may take a shard: Dask may wait for ever for one that it was advised to
                # take, though others were allowed, if all were gone for a moment.
                for s in range(n_shards) if of is None else of:
                    mine = [] if starts is None else [own[id(starts[s])]]
                    given = self.shards[s], *sent[:n_shared], *mine
                    running[submit(function, *given, pure=False)] = s
                while running:
                    future = self._next(list(running), sent)
                    s, error = running[future], future.exception()
                    if isinstance(error, KilledWorker) and retries[s] < _RETRIES:
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
        """A future that is done; warns while there is no worker."""
        from dask.distributed import wait

        looks = 0
        while True:
            try:
                # `wait` asks the current client, which may be another one.
                with self.client.as_current():
                    told = wait(futures, PATIENCE / _LOOKS, return_when="FIRST_COMPLETED")
                # A result may be lost again with its worker before it is read.
                if told.done:
                    return next(iter(told.done))
            except TimeoutError:
                looks += 1
                self._retry([*self.shards, *shared])
                if looks % _LOOKS == 0 and not self.client.scheduler_info().get("workers"):
                    warnings.warn(
                        "No worker is left; the fit goes on when one joins the Dask scheduler at "
                        f"{self.address}.", stacklevel=2,
                    )  # fmt: skip

    def _retry(self, futures: list[Future]) -> None:
        """Begin again those that have failed, and what they failed of.

        Of two causes Dask begins the one again that it names, and then waits for ever: so they are
        all given. `Client.retry` fails at what only the scheduler knows, and may take for begun
        what is done by then.
        """
        failed = [future for future in futures if future.status == "error"]
        if failed:
            keys, client = [future.key for future in failed], self.client
            client.sync(client.scheduler.retry, keys=keys, client=client.id)
            told_by = time.monotonic() + 1
            while failed[0].status == "error" and time.monotonic() < told_by:
                time.sleep(0.01)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Raise a `LostScheduler` where the scheduler goes away meanwhile."""
        import dask
        from distributed.comm.core import CommClosedError

        # Dask warns of what is sent along with a task, which here is meant to stay with the
        # scheduler.
        quiet = {"distributed.admin.large-graph-warning-threshold": sys.maxsize}
        try:
            # A client that was closed meanwhile has lost its scheduler, too.
            if self.client.status != "running":
                raise CancelledError
            with dask.config.set(quiet):
                yield
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise LostScheduler(f"The Dask scheduler at {self.address} has gone away") from error


Backend = SerialBackend | DaskBackend


def _itself(value: Any) -> Any:
    return value


def _refuse_worker(error: BaseException | None) -> None:
    """Say what to do about workers that can't learn from a shard, whatever is in it."""
    from dask.distributed import KilledWorker

    if isinstance(error, KilledWorker):
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
    client: Any, shards: Sequence[Pair | FileShard], making: Making | None = None
) -> Iterator[Backend]:
    """This process, or the workers of a client. One that is opened here is closed in the end."""
    if client is None:
        yield SerialBackend(shards, making)
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ImportError(
            "Learning on several machines needs Dask: pip install 'sparsemargin[distributed]'."
        ) from None
    if isinstance(client, Client):
        yield DaskBackend(client, shards, making)
        return
    if not isinstance(client, str) or not _ADDRESS.fullmatch(client):
        raise ValueError(
            f"client must be a dask.distributed.Client, or an address: {client!r} is no address of "
            "a Dask scheduler. Write tcp://HOST:PORT; the port is 8786 unless it was told another."
        )
    try:
        opened = Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {client}: {error}. Start one: dask scheduler"
        ) from None
    with opened:
        yield DaskBackend(opened, shards, making)
