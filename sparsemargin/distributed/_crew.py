"""Who does the work on the shards: this process, or Dask's workers."""

from __future__ import annotations

import re
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from sparsemargin.distributed import _epoch
from sparsemargin.distributed._shards import FileShard

if TYPE_CHECKING:
    from dask.distributed import Client, Future

# Seconds for a first worker to join the scheduler, and to hear from a scheduler at all.
PATIENCE = 30
_ADDRESS = re.compile(r"(?:(?:tcp|tls|ucx|ws|wss|inproc)://)?[^:/]+:\d+|inproc://.+|\[.*\]:\d+")
# Times that a worker is asked for its version; and that a shard may be begun again because workers
# died of it, each of which Dask makes four.
_ATTEMPTS = 4

Done = Callable[[int, Any], None]


class Pair(NamedTuple):
    """A matrix and its labels, here or on the way."""

    X: Any
    y: Any


class LostScheduler(ConnectionError):
    """The scheduler has gone away."""


def is_lazy(value: Any) -> bool:
    """Whether it is a collection of Dask's that has not been worked out."""
    return hasattr(value, "__dask_graph__")


class InTurn:
    """This process, which takes the shards one after the other."""

    def __init__(self, shards: Sequence[Pair | FileShard]) -> None:
        self.shards: list[Any] = list(shards)
        for s, shard in enumerate(self.shards):
            if isinstance(shard, Pair):
                with _naming(s, len(shards)):
                    self.shards[s] = _epoch.open_matrix(*map(_here, shard))

    def each(
        self, function: Callable[..., Any], *shared: Any, which: Sequence[int] | None = None,
        done: Done | None = None,
    ) -> list[Any]:  # fmt: skip
        """What a function gives for each of the shards, in their order.

        Parameters
        ----------
        shared : objects
            Further arguments, which it may not change.
        which : sequence of int
            Only for these.
        done : callable
            Is told the place and the result of each as it comes.
        """
        results = []
        for s in range(len(self.shards)) if which is None else which:
            with _naming(s, len(self.shards)):
                results.append(function(self.shards[s], *shared))
            if done is not None:
                done(s, results[-1])
        return results

    def share(self, value: Any) -> Any:
        """What stands for an object that every call takes."""
        return value

    def replace(self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> None:
        """Let each shard be what a function gives for it and its arguments."""
        for s, own in enumerate(arguments):
            with _naming(s, len(self.shards)):
                self.shards[s] = function(self.shards[s], *own)

    def close(self, run: str) -> None:
        """Leave nothing behind."""
        _epoch.forget(run)


def _here(value: Any) -> Any:
    if is_lazy(value):
        return value.compute()
    return value.result() if is_future(value) else value


def is_future(value: Any) -> bool:
    """Whether it is a Future of Dask, which need not be there; tables have columns of any name."""
    return type(value).__module__.startswith("distributed.") and hasattr(value, "result")


@contextmanager
def _naming(s: int, n_shards: int) -> Iterator[None]:
    """Let errors say which shard they are of, where there are several."""
    try:
        yield
    except (ValueError, OSError) as error:
        if n_shards == 1:
            raise
        message = f"Shard {s} of {n_shards}, counted from 0: {error}"
        if isinstance(error, OSError):
            raise OSError(message) from None
        raise ValueError(message) from None


class OnDask:
    """The workers of a Dask cluster.

    Everything there is made by tasks that Dask can run again, so that nothing is lost with a
    worker: what was on it is made anew on another, to the bit.

    Parameters
    ----------
    client : dask.distributed.Client
    shards : sequence of Pair or FileShard
    """

    def __init__(self, client: Client, shards: Sequence[Pair | FileShard]) -> None:
        self.client, self.address = client, _address_of(client)
        _wait_for_workers(client)
        with self._connected():
            _check_versions(client)
        pairs = [shard for shard in shards if isinstance(shard, Pair)]
        if pairs:
            matrices, labels = zip(*pairs, strict=True)
            parts = self._begun([*matrices, *labels])
            self.shards = self._spread(_epoch.open_matrix, parts[: len(pairs)], parts[len(pairs) :])
        else:
            self.shards = self._spread(_itself, shards)

    def _begun(self, values: Sequence[Any]) -> list[Any]:
        """The values, those that are lazy being worked out from now on."""
        futures = iter(self.client.compute([value for value in values if is_lazy(value)]))
        return [next(futures) if is_lazy(value) else value for value in values]

    def _spread(self, function: Callable[..., Any], *arguments: Sequence[Any]) -> list[Future]:
        """Have the workers call a function, one about as often as the other: Dask is told of all
        calls at once; told of one after the other, it may find the same worker idle each time, with
        which the shards then stay."""
        keys = [_new_key(function) for _ in arguments[0]]
        with _quiet_about_size():
            return self.client.map(function, *arguments, key=keys, pure=False)

    def _sent(self, value: Any) -> Future:
        """An object where Dask can make it again."""
        return value if is_future(value) else self._submit(_itself, value)

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Future:
        """Have a worker call a function: any, since Dask may wait for ever for one that it was
        advised to take, though others were allowed, if all were gone for a moment."""
        with _quiet_about_size():
            return self.client.submit(function, *arguments, key=_new_key(function), pure=False)

    def each(
        self, function: Callable[..., Any], *shared: Any, which: Sequence[int] | None = None,
        done: Done | None = None,
    ) -> list[Any]:  # fmt: skip
        """As `InTurn.each`; done is told the results in the order in which they come."""
        places = list(range(len(self.shards)) if which is None else which)
        with self._connected():
            sent = [self._sent(each) for each in shared]
            under_way: dict[Future, int] = {}
            coming: SimpleQueue[Future] = SimpleQueue()

            def begin(s: int) -> None:
                future = self._submit(function, self.shards[s], *sent)
                under_way[future] = s
                future.add_done_callback(coming.put)

            results: dict[int, Any] = {}
            attempts = dict.fromkeys(places, 1)
            try:
                for s in places:
                    begin(s)
                while under_way:
                    future = self._next(coming)
                    s = under_way.pop(future)
                    if self._has_killed(future, s, attempts):
                        begin(s)
                        continue
                    results[s] = self._result(future, s)
                    if done is not None:
                        done(s, results[s])
            except BaseException:
                self.client.cancel(list(under_way))
                raise
        return [results[s] for s in places]

    def _next(self, coming: SimpleQueue[Future]) -> Future:
        """The next one that is done; says so where nobody is left to do it."""
        seconds = 0
        while True:
            try:
                return coming.get(timeout=1)
            except Empty:
                # What was asked of a scheduler is lost with the connection, even if it comes back.
                if self.client.status != "running":
                    raise CancelledError from None
            seconds += 1
            if seconds % PATIENCE == 0 and not self.client.scheduler_info().get("workers"):
                warnings.warn(
                    "No worker is left; the fit goes on when one joins the Dask scheduler at "
                    f"{self.address}.", stacklevel=2,
                )  # fmt: skip

    def _result(self, future: Future, s: int) -> Any:
        if future.status != "error":
            return future.result()
        with _naming(s, len(self.shards)):
            return future.result()

    def _has_killed(self, future: Future, s: int, attempts: dict[int, int]) -> bool:
        """Whether workers died while they were at it, and it may be tried again."""
        from dask.distributed import KilledWorker

        if future.status != "error" or not isinstance(future.exception(), KilledWorker):
            return False
        attempts[s] += 1
        if attempts[s] > _ATTEMPTS:
            raise ConnectionError(
                f"Shard {s} of {len(self.shards)}, counted from 0, has gone down with its worker "
                "time and again: a worker may not have the memory for it. Cut it into smaller "
                "shards, or give the workers more."
            )
        return True

    def share(self, value: Any) -> Any:
        """As `InTurn.share`."""
        return self._sent(value)

    def replace(self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> None:
        """As `InTurn.replace`."""
        with self._connected():
            self.shards = [
                self._submit(function, shard, *(self._sent(each) for each in own))
                for shard, own in zip(self.shards, arguments, strict=True)
            ]

    def close(self, run: str) -> None:
        """Leave nothing behind."""
        self.shards = []
        # The fit is over, and what it has come to is worth more than some memory.
        with suppress(OSError, CancelledError):
            if self.client.status == "running":
                self.client.run(_epoch.forget, run, on_error="ignore")

    @contextmanager
    def _connected(self) -> Iterator[None]:
        """Say so where the scheduler goes away meanwhile."""
        from distributed.comm.core import CommClosedError

        try:
            # A client that was closed meanwhile has none either.
            if self.client.status != "running":
                raise CancelledError
            yield
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise LostScheduler(f"The Dask scheduler at {self.address} has gone away") from error


Crew = InTurn | OnDask


@contextmanager
def connected_to(client: Any) -> Iterator[Client]:
    """A client, or one for the scheduler at an address, which is closed in the end.

    Raises
    ------
    ImportError
        If Dask is not installed.
    ConnectionError
        If no scheduler answers.
    """
    try:
        from dask.distributed import Client
    except ImportError:
        raise ImportError(
            "Learning on several machines needs Dask: pip install 'sparsemargin[distributed]'."
        ) from None
    if isinstance(client, Client):
        yield client
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
        yield opened


def _itself(value: Any) -> Any:
    return value


def _new_key(function: Callable[..., Any]) -> str:
    return f"sparsemargin-{function.__name__.strip('_')}-{uuid.uuid4().hex}"


def _quiet_about_size() -> AbstractContextManager[Any]:
    """Dask warns of what is sent along with a task, which here is meant to stay with the
    scheduler."""
    import dask

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": sys.maxsize})


def _address_of(client: Client) -> str:
    """Of its scheduler.

    Raises
    ------
    ConnectionError
        If it has none any more.
    """
    if client.status != "running":
        raise ConnectionError(f"{client!r} is {client.status}. Pass one that is connected.")
    return str(client.scheduler.address)


def _wait_for_workers(client: Client) -> None:
    """Let a first one join.

    Raises
    ------
    ConnectionError
        If there is none, and none comes.
    """
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise ConnectionError(
            f"No worker has joined the Dask scheduler at {client.scheduler.address} within "
            f"{PATIENCE} seconds. Start one: dask worker {client.scheduler.address}"
        ) from None


def _version() -> str:
    from sparsemargin._version import __version__

    return __version__


def _check_versions(client: Client) -> None:
    """Refuse workers that do not have this version of the library.

    One that can't be reached, as it has just died or has too much to do, is asked again as long as
    Dask counts it among its workers, some times: a fit can do without it.

    Raises
    ------
    ConnectionError
        Names the worker.
    """
    workers = None
    for attempt in range(_ATTEMPTS):
        time.sleep(0.1 * attempt**2)
        told = client.run(_version, workers=workers, on_error="return")
        for address, found in told.items():
            _check_version(address, found)
        lost = {address for address, found in told.items() if isinstance(found, OSError)}
        workers = sorted(lost & set(client.scheduler_info()["workers"]))
        if not workers:
            return


def _check_version(address: str, found: Any) -> None:
    if isinstance(found, Exception) and not isinstance(found, OSError):
        raise ConnectionError(
            f"The worker at {address} can't import sparsemargin: {found}. Install it where "
            "the workers run."
        )
    if isinstance(found, str) and found != _version():
        raise ConnectionError(
            f"The worker at {address} has sparsemargin {found}, this process {_version()}. "
            "Install the same version."
        )
