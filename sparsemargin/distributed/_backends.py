"""Backends, which do the work on the shards: this process, or Dask's workers."""

from __future__ import annotations

import re
import sys
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

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
# two looks whether a worker is left.
PATIENCE = 30
# Times that a shard may be begun again after workers died of it; to the first Dask adds three.
_RETRIES = 12
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss|inproc)://)?[^:/]+:\d+|inproc://.+|\[.*\]:\d+")

Done = Callable[[int, Any], None]


class LostScheduler(ConnectionError):
    """The scheduler has gone away."""


def open_shard(given: Any, y: Any = None) -> Shard:
    """What is learned from, where that is done."""
    return given if isinstance(given, FileShard) else MatrixShard.of(given, y)


class SerialBackend:
    """This process, which takes the shards one after the other."""

    def __init__(self, shards: Sequence[Pair | FileShard]) -> None:
        self.shards: list[Shard] = []
        for s, shard in enumerate(shards):
            with _naming(s, len(shards)):
                self.shards.append(open_shard(*map(_here, _parts(shard))))

    def share(self, value: Any) -> Any:
        """What stands for an object that every call takes."""
        return value

    def each(
        self, function: Callable[..., Any], *shared: Any, done: Done | None = None
    ) -> list[Any]:
        """What a function gives for each of the shards, in their order.

        Parameters
        ----------
        shared : objects
            Further arguments, which it may not change.
        done : callable
            Is told the number of the shard and the result of each as it comes.
        """
        results = []
        for s, shard in enumerate(self.shards):
            with _naming(s, len(self.shards)):
                results.append(function(shard, *shared))
            if done is not None:
                done(s, results[-1])
        return results


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
    except ConnectionError:
        raise
    except (ValueError, OSError) as error:
        if n_shards == 1:
            raise
        kind = OSError if isinstance(error, OSError) else ValueError
        raise kind(f"Shard {s} of {n_shards}, counted from 0: {error}") from None


class DaskBackend:
    """The workers of a Dask cluster.

    Everything there is made by tasks that Dask can run again, so that nothing is lost with a
    worker: what was on it is made anew on another, to the bit.

    Parameters
    ----------
    client : dask.distributed.Client
    shards : sequence of Pair or FileShard

    Raises
    ------
    ConnectionError
        If the client is not connected, or no worker joins.
    """

    def __init__(self, client: Client, shards: Sequence[Pair | FileShard]) -> None:
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
            keys = [_new_key(open_shard) for _ in shards]
            self.shards = client.map(open_shard, parts[::2], parts[1::2], key=keys, pure=False)

    def share(self, value: Any) -> Future:
        """As `SerialBackend.share`: by a task, since what is scattered dies with its worker."""
        with self._connected():
            return self._submit(_itself, value)

    def each(
        self, function: Callable[..., Any], *shared: Any, done: Done | None = None
    ) -> list[Any]:
        """As `SerialBackend.each`; done is told the results in the order in which they come."""
        results: dict[int, Any] = {}
        retries: Counter[int] = Counter()
        with self._connected():
            sent = [each if is_future(each) else self.share(each) for each in shared]
            running = {
                self._submit(function, shard, *sent): s for s, shard in enumerate(self.shards)
            }
            try:
                while running:
                    for future in self._finished(list(running)):
                        s = running[future]
                        if self._has_killed_workers(future) and retries[s] < _RETRIES:
                            retries[s] += 1
                            future.retry()
                            continue
                        del running[future]
                        results[s] = self._result(future, s)
                        if done is not None:
                            done(s, results[s])
            except BaseException:
                self.client.cancel(list(running))
                raise
        return [results[s] for s in range(len(self.shards))]

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Have a worker call a function: any, since Dask may wait for ever for one that it was
        advised to take, though others were allowed, if all were gone for a moment."""
        return self.client.submit(function, *arguments, key=_new_key(function), pure=False)

    def _finished(self, futures: list[Future]) -> Sequence[Future]:
        """The next ones that are done; warns where nobody is left to do them."""
        from dask.distributed import wait

        while True:
            try:
                finished = wait(futures, timeout=PATIENCE, return_when="FIRST_COMPLETED").done
                return list(finished)
            except TimeoutError:
                if not self.client.scheduler_info().get("workers"):
                    warnings.warn(
                        "No worker is left; the fit goes on when one joins the Dask scheduler at "
                        f"{self.address}.", stacklevel=2,
                    )  # fmt: skip

    def _has_killed_workers(self, future: Future) -> bool:
        from dask.distributed import KilledWorker

        return future.status == "error" and isinstance(future.exception(), KilledWorker)

    def _result(self, future: Future, s: int) -> Any:
        n_shards = len(self.shards)
        if self._has_killed_workers(future):
            raise ConnectionError(
                f"Shard {s} of {n_shards}, counted from 0, has gone down with its worker time and "
                "again: a worker may not have the memory for it. Cut it into smaller shards, or "
                "give the workers more."
            )
        if isinstance(error := future.exception(), ModuleNotFoundError):
            raise ConnectionError(
                f"A worker has no {error.name}: pip install 'sparsemargin[distributed]' where the "
                "workers run."
            )
        with _naming(s, n_shards):
            return future.result()

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Say so where the scheduler goes away meanwhile."""
        import dask
        from distributed.comm.core import CommClosedError

        # Dask warns of what is sent along with a task, which here is meant to stay with the
        # scheduler.
        quiet = {"distributed.admin.large-graph-warning-threshold": sys.maxsize}
        try:
            # A client that was closed meanwhile has none either.
            if self.client.status != "running":
                raise CancelledError
            with dask.config.set(quiet):
                yield
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise LostScheduler(f"The Dask scheduler at {self.address} has gone away") from error


Backend = SerialBackend | DaskBackend


def _itself(value: Any) -> Any:
    return value


def _new_key(function: Callable[..., Any]) -> str:
    return f"sparsemargin-{function.__name__.strip('_')}-{uuid.uuid4().hex}"


@contextmanager
def backend_of(client: Any, shards: Sequence[Pair | FileShard]) -> Iterator[Backend]:
    """This process, or the workers of a client; that of an address is closed in the end.

    Raises
    ------
    ImportError
        If Dask is not installed.
    ConnectionError
        If no scheduler or worker answers.
    """
    if client is None:
        yield SerialBackend(shards)
        return
    try:
        from dask.distributed import Client
    except ImportError:
        raise ImportError(
            "Learning on several machines needs Dask: pip install 'sparsemargin[distributed]'."
        ) from None
    if isinstance(client, Client):
        yield DaskBackend(client, shards)
        return
    if not isinstance(client, str):
        raise ValueError(
            f"client must be a dask.distributed.Client, the address of a scheduler such as "
            f"'tcp://host:8786', or None, got {client!r}."
        )
    if not _ADDRESS.fullmatch(client):
        raise ValueError(
            f"client={client!r} is no address of a Dask scheduler. Write tcp://HOST:PORT; the port "
            "is 8786 unless it was told another."
        )
    try:
        opened = Client(client, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"No Dask scheduler answers at {client}: {error}. Start one: dask scheduler"
        ) from None
    with opened:
        yield DaskBackend(opened, shards)
