"""Training over shards on Dask's workers, which may die, as may the scheduler."""

import json
import os
import signal
import sys
from contextlib import suppress

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparsemargin
from depth import long, some
from problems.command_line import run
from problems.dask_cluster import scheduler_and_workers
from problems.shards import assert_same, cut, make_data, parameters, write_each
from sparsemargin.distributed import (
    LostScheduler,
    backends,
    dual_vectors,
    fit,
    fit_distributed,
    rounds,
)
from sparsemargin.distributed.shards import MatrixShard

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("dask.distributed")

HOW = {"algo": "alma", "random_state": 0}
AT_ONCE = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}
LOCAL = {"dashboard_address": None, "set_as_default": False}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A client of a scheduler, and its two worker processes.

    The death of a worker raises an error at once, after which the library restarts the shard.
    """
    with scheduler_and_workers(tmp_path_factory.mktemp("dask"), **AT_ONCE) as (_, *both):
        yield both


@pytest.fixture(scope="module")
def client(cluster):
    return cluster[0]


@pytest.fixture(scope="module")
def near():
    """A client of two workers in this process."""
    with distributed.Client(n_workers=2, threads_per_worker=1, processes=False, **LOCAL) as client:
        yield client


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_each(tmp_path_factory.mktemp("shards"), cut(*make_data(240), 3))


@pytest.mark.parametrize(
    "name", some(["pnorm 6", "so"], ["pnorm 6", "alma 2", "joint", "ho", "so"])
)
def test_workers_give_the_same_model(name, client):
    shards = cut(*make_data(n_classes=3), 3)
    here = fit_distributed(shards, **parameters(name))
    assert_same(fit_distributed(shards, client=client, **parameters(name)), here)


def test_workers_leave_out_shards_without_rows(client):
    X, y = make_data(n_classes=3)
    shards = cut(X, y, 3)
    given = [(X[:0], y[:0]), *shards[:2], (X[:0], y[:0]), shards[2]]
    assert_same(fit_distributed(given, client=client, **HOW), fit_distributed(shards, **HOW))
    given[4] = X[:, :30], y
    with pytest.raises(ValueError, match="Shard 1 has 40 features, shard 4 has 30"):
        fit_distributed(given, client=client, **HOW)


def test_files_are_read_by_the_workers(client, paths, tmp_path, monkeypatch):
    """The workers are in another folder."""
    monkeypatch.chdir(tmp_path)
    how = {"client": client.scheduler.address, "cache_dir": "caches", **HOW}
    there = fit_distributed([os.path.relpath(path) for path in paths], **how)
    assert_same(there, fit_distributed(paths, **HOW))
    assert len(list((tmp_path / "caches").iterdir())) == 3


@long
def test_dask_arrays_are_split_at_their_chunks(near):
    X, y = make_data()
    blocks = da.from_array(X.toarray(), chunks=(100, -1)).map_blocks(csr_matrix)
    expected = fit_distributed([(X[i : i + 100], y[i : i + 100]) for i in (0, 100, 200)], **HOW)
    for labels in da.from_array(y, chunks=100), y:
        assert_same(fit_distributed(blocks, labels, client=near, **HOW), expected)
        assert_same(fit_distributed(blocks, labels, **HOW), expected)
    indicator = np.stack([y == 0, y == 1], axis=1).astype(int)
    expected = fit_distributed(blocks, indicator, **HOW)
    for labels in csr_matrix(indicator), [[label] for label in y]:
        np.testing.assert_array_equal(fit_distributed(blocks, labels, **HOW).coef_, expected.coef_)


class Labels(np.ndarray):
    """Labels with attributes `key` and `result`, like a table with such columns."""

    key = result = 0


@long
def test_pairs_may_be_futures(near):
    shards = cut(*make_data(), 2)
    futures = [(near.submit(csr_matrix, X), near.submit(np.array, y)) for X, y in shards]
    lazy = [(dask.delayed(csr_matrix)(X), y) for X, y in shards]
    named = [(X, y.view(Labels)) for X, y in shards]
    expected = fit_distributed(shards, **HOW)
    for given in futures, lazy, named:
        for client in near, None:
            assert_same(fit_distributed(given, client=client, **HOW), expected)
    whole = near.submit(tuple, shards[0])
    with pytest.raises(ValueError, match=r"tuple\(delayed\(load, nout=2\)"):
        fit_distributed([whole], client=near)


@pytest.mark.parametrize("kind", ["pairs", "blocks", "files"])
def test_shards_are_submitted_at_once(kind, near, paths, monkeypatch):
    """If shards were submitted one by one, Dask could assign the same idle worker to each."""
    X, y = make_data(400)
    blocks = da.from_array(X.toarray(), chunks=(200, -1)).map_blocks(csr_matrix)
    given = {"pairs": (cut(X, y, 2),), "blocks": (blocks, y), "files": (paths[:2],)}[kind]
    told, tell = [], near.map

    def note(function, *arguments, **how):
        futures = tell(function, *arguments, **how)
        if function.function is backends.open_shard:
            told.append(len(futures))
        return futures

    monkeypatch.setattr(near, "map", note)
    fit_distributed(*given, client=near, max_iter=1, **HOW)
    assert told == [2]


def of_blocks(X, labels, chunks=(100, -1)):
    return da.from_array(X.toarray(), chunks=chunks), labels


@pytest.mark.parametrize(("make", "words"), [
    (lambda X, y: of_blocks(X, da.from_array(y, 100), (100, 20)), "whose blocks have all columns"),
    (lambda X, y: of_blocks(X, da.from_array(y, 120)), "with the blocks of X"),
    (lambda X, y: of_blocks(X, y[:-1]), "239 labels"),
    (lambda X, y: of_blocks(X, None), "y is missing"),
    (lambda X, y: of_blocks(X, dask.delayed(np.array)(y)), "y must be a Dask array"),
    (lambda X, y: (dask.delayed(csr_matrix)(X), y), "Of Dask's collections an array is taken"),
])  # fmt: skip
def test_unsuitable_collections_raise_an_error(make, words):
    with pytest.raises(ValueError, match=words):
        fit_distributed(*make(*make_data()))


def test_invalid_shards_are_named_by_workers(client, paths, tmp_path):
    with pytest.raises(OSError, match=r"Shard 3 of 4.*none\.svm"):
        fit_distributed([*paths, tmp_path / "none.svm"], client=client, algo="alma")
    X, y = make_data()
    X.data[7] = np.inf
    with pytest.raises(ValueError, match=r"Shard 1 of 2.*infinity at row"):
        fit_distributed([(X[20:], y[20:]), (X, y)], client=client, algo="alma")


class Locked(Exception):
    """An error that can't be pickled, as some of other libraries."""

    def __reduce__(self):
        raise TypeError("This error can't be pickled.")


@pytest.mark.parametrize("hidden", [False, True])
def test_errors_of_workers_come_without_causes_that_cannot_be_pickled(near, hidden, monkeypatch):
    def fail(shard):
        try:
            raise Locked
        except Locked as error:
            raise FileNotFoundError("a.tsv: no such file.") from None if hidden else error

    monkeypatch.setattr(MatrixShard, "survey", fail)
    with pytest.raises(FileNotFoundError, match=r"Shard [01] of 2.*a\.tsv: no such file"):
        fit_distributed(cut(*make_data(), 2), client=near, algo="arow")


def test_errors_of_workers_keep_their_causes(near, monkeypatch):
    def fail(shard):
        raise ValueError("no rows") from KeyError("a")

    monkeypatch.setattr(MatrixShard, "survey", fail)
    shard = [(csr_matrix(np.eye(2)), np.arange(2))]  # the error of a single shard is not renamed
    with pytest.raises(ValueError, match="no rows") as raised:
        fit_distributed(shard, client=near, algo="arow")
    assert isinstance(raised.value.__cause__, KeyError)


def test_workers_need_the_same_version_of_the_library(near, monkeypatch):
    def fail(*_):
        raise ModuleNotFoundError("No module named 'sparsemargin'", name="sparsemargin")

    with monkeypatch.context() as patch:
        patch.setattr(fit, "__version__", "0.0.7")
        with pytest.raises(ConnectionError, match=r"has sparsemargin .*, this process 0\.0\.7"):
            fit_distributed(cut(*make_data(), 2), client=near)
    monkeypatch.setattr(MatrixShard, "of", fail)
    with pytest.raises(ConnectionError, match=r"A worker has no sparsemargin: pip install"):
        fit_distributed(cut(*make_data(), 2), client=near)


@pytest.mark.parametrize("address", ["localhost", "", "http://127.0.0.1:8786", "tcp://host"])
def test_invalid_addresses_and_missing_dask_raise_an_error(address, monkeypatch):
    with pytest.raises(ValueError, match=r"no address of a Dask scheduler. Write tcp://HOST:PORT"):
        fit_distributed(cut(*make_data(), 2), client=address)
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(ImportError, match=r"sparsemargin\[distributed\]"):
        fit_distributed(cut(*make_data(), 2), client="tcp://127.0.0.1:9")


def test_lost_result_is_computed_again(near, monkeypatch):
    """The scheduler reports a result as lost, and later that it has been computed again."""
    following, lost = backends.DaskBackend._next, []

    def lose_once(backend, ended):
        future = following(backend, ended)
        if not lost:
            lost.append(future)
            future._state.lose()
            near.loop.call_later(0.3, future._state.finish)
        return future

    monkeypatch.setattr(backends.DaskBackend, "_next", lose_once)
    shards = cut(*make_data(60), 2)
    assert_same(fit_distributed(shards, client=near, **HOW), fit_distributed(shards, **HOW))
    assert lost


@long
@pytest.mark.filterwarnings("ignore:.*sorted by their labels")
@pytest.mark.parametrize(
    ("name", "n_classes", "is_sorted"),
    [("pnorm 6", 2, False), ("alma 2", 2, True), ("so", 2, False), ("arow", 4, False)],
)
def test_lost_workers_do_not_change_the_model(name, n_classes, is_sorted, cluster, tmp_path):
    """One worker dies while it loads a shard, and all die after an epoch, with their data. With
    four classes, the vectors visit three shards in a ring."""
    client, workers = cluster
    X, y = make_data(n_classes=n_classes)
    order = np.argsort(y, kind="stable") if is_sorted else np.arange(len(y))
    shards, died = cut(X[order], y[order], 3), str(tmp_path / "died")

    def load(X):
        # If two workers get here at once, one continues; if both died, the fit would never end.
        with suppress(FileExistsError):
            os.mkdir(died)
            os.kill(os.getpid(), signal.SIGKILL)
        return X

    def kill(done):
        if done.epoch == 1:
            for _ in range(workers.n_workers):
                workers.kill(0)

    lazy = [(dask.delayed(load)(X), y) for X, y in shards]
    there = fit_distributed(lazy, client=client, on_round=kill, **parameters(name))
    assert os.path.exists(died)
    assert_same(there, fit_distributed(shards, **parameters(name)))


@long
@pytest.mark.parametrize("phase", ["learning", "mixing", "sums", "checkpoint"])
def test_worker_killed_in_any_phase_does_not_change_the_model(
    phase, cluster, tmp_path, monkeypatch
):
    client, workers = cluster
    died, how = str(tmp_path / "died"), parameters("pnorm 6")
    shards = cut(*make_data(), 3)
    expected = fit_distributed(shards, **how)

    def dying(function):
        def once(*given):
            with suppress(FileExistsError):
                os.mkdir(died)
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*given)

        return once

    def kill_all(mixer, *given, **how):
        if not os.path.exists(died):
            os.mkdir(died)
            for _ in range(workers.n_workers):
                workers.kill(0)
        return space_of(mixer, *given, **how)

    space_of = dual_vectors.VectorMixer.space_of
    if phase == "checkpoint":
        monkeypatch.setattr(dual_vectors.VectorMixer, "space_of", kill_all)
    else:
        of = {"learning": (rounds, "learn_part"), "mixing": (dual_vectors, "mix_slice"),
              "sums": (dual_vectors, "sum_slice")}[phase]  # fmt: skip
        monkeypatch.setattr(*of, dying(getattr(*of)))
    there = fit_distributed(shards, client=client, checkpoint=tmp_path / "a.model", **how)
    assert os.path.exists(died)
    # No other process starts a worker in place of one that kills itself.
    for _ in range(workers.n_workers):
        workers.kill(0)
    assert_same(there, expected)
    assert_same(sparsemargin.load_model(tmp_path / "a.model"), expected)


@long
def test_two_causes_of_one_failure_are_both_restarted(tmp_path):
    def live_the_second_time(name):
        with suppress(FileExistsError):
            os.mkdir(tmp_path / name)
            os.kill(os.getpid(), signal.SIGKILL)
        return name

    with scheduler_and_workers(tmp_path, 4, **AT_ONCE) as (_, client, _):
        shared, *shards = (client.submit(live_the_second_time, name) for name in "abc")
        for future in shared, *shards:
            assert isinstance(future.exception(timeout=60), distributed.KilledWorker)
        backend = backends.DaskBackend(client, cut(*make_data(), 2))
        backend.needed.update([shared, *shards])
        backend.shards = shards
        calls = backend.over_shards(max, {0: [shared], 1: [shared]})
        assert backend.results(calls) == ["b", "c"]


@long
def test_lost_scheduler_leaves_the_last_mixture(paths, tmp_path):
    checkpoint = tmp_path / "last.model"
    with scheduler_and_workers(tmp_path, n_workers=1) as (scheduler, client, _):

        def kill(done):
            if done.epoch == 3:
                scheduler.kill()
                scheduler.wait()

        with pytest.raises(LostScheduler, match=r"gone away.*after epoch 3.*last\.model"):
            fit_distributed(paths, client=client, checkpoint=checkpoint, on_round=kill, **HOW)
    assert_same(sparsemargin.load_model(checkpoint), fit_distributed(paths, max_iter=3, **HOW))
    resumed = fit_distributed(paths, checkpoint=checkpoint, resume=True, **HOW)
    assert_same(resumed, fit_distributed(paths, **HOW))


def test_closed_client_raises_an_error():
    shards = cut(*make_data(), 2)
    client = distributed.Client(n_workers=1, processes=False, **LOCAL)
    with pytest.raises(LostScheduler, match="gone away in epoch 2"):
        fit_distributed(shards, client=client, on_round=lambda done: client.close())
    with pytest.raises(ConnectionError, match=r"is closed\. Pass one"):
        fit_distributed(shards, client=client)


def test_missing_scheduler_or_workers_raise_an_error(monkeypatch):
    monkeypatch.setattr(backends, "PATIENCE", 0.1)
    with (
        distributed.Client(n_workers=0, **LOCAL) as client,
        pytest.raises(ConnectionError, match=r"No worker has joined.*dask worker tcp://"),
    ):
        fit_distributed(cut(*make_data(), 2), client=client)
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fit_distributed(cut(*make_data(), 2), client="tcp://127.0.0.1:9")


@pytest.fixture
def command(client, paths, tmp_path):
    return ["train", *paths, "-o", tmp_path / "a.model", "--dask", client.scheduler.address]


def test_train_command_uses_a_cluster(command, paths, tmp_path):
    for options, max_iter in (["--epochs", "2"], 2), (["--resume"], 5):
        run(*command, "--algo", "alma", *options)
        expected = fit_distributed(paths, max_iter=max_iter, **HOW)
        assert_same(sparsemargin.load_model(tmp_path / "a.model"), expected)
    run(*command, "--algo", "alma", "--epochs", "2", "--min-rows", "10000")
    expected = fit_distributed([paths], max_iter=2, **HOW)
    assert_same(sparsemargin.load_model(tmp_path / "a.model"), expected)
    run(*command, "--algo", "alma")
    told = run(*command, "--algo", "alma", "--resume").stderr
    assert "has been trained for all 5 epochs" in told
    assert "Pass more --epochs" in told


@long
def test_train_command_says_that_no_epoch_is_left(command):
    command += ["--algo", "pnorm", "--epochs", "99"]
    run(*command)
    told = run(*command, "--resume").stderr
    assert "The last epoch made no correction" in told
    assert "--epochs" not in told


def test_ctrl_c_in_a_resumed_fit_is_not_reported_as_a_loss(command, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    run(*command, "--epochs", "1")
    monkeypatch.setattr(rounds.Rounds, "_make_round", interrupt)
    assert "no run to resume" not in run(*command, "--resume", code=130).stderr


def test_figures_of_an_interrupted_or_resumed_fit_are_those_of_its_model(command, monkeypatch):
    def figures(*options, code=0):
        told = run(*command, "--algo", "alma", "--json", "-q", *options, code=code).stdout
        found = json.loads(told.splitlines()[-1])
        return {name: found[name] for name in (
            "rows", "epochs", "corrections", "corrections_of_last_epoch", "mistakes",
            "progressive_error",
        )}  # fmt: skip

    def interrupt(self, epoch, *given):
        found = learn(self, epoch, *given)
        if epoch == last:
            raise KeyboardInterrupt
        return found

    epochs = some((1, 2), (1, 2, 3, 4))
    whole = {n: figures("--epochs", n) for n in epochs}
    assert [whole[n]["epochs"] for n in whole] == [*epochs]
    for n in epochs[1:]:
        made = whole[n]["corrections"] - whole[n - 1]["corrections"]
        assert made == whole[n]["corrections_of_last_epoch"] > 0
    learn, resume = rounds.Rounds._learn, []
    monkeypatch.setattr(rounds.Rounds, "_learn", interrupt)
    for last in some((2,), (2, 2, 4, 4)):
        assert figures("--epochs", epochs[-1], *resume, code=130) == whole[last - 1]
        resume = ["--resume"]
    monkeypatch.undo()
    assert figures("--epochs", epochs[-1], *resume) == whole[epochs[-1]]


DASK = ["--dask", "tcp://127.0.0.1:9"]


@pytest.mark.parametrize(("options", "code", "words"), [
    (["--mixing", "ring"], 2, "Pass --dask"),
    (["--min-rows", "9"], 2, "--min-rows is for training on several machines. Pass --dask"),
    ([*DASK, "--init", "x"], 2, "--init-model can't be combined with --dask"),
    ([*DASK, "--batch", "x"], 2, "--batch can't be combined with --dask"),
    ([*DASK, "--algo", "romma"], 1, "can't be mixed"),
])  # fmt: skip
def test_incompatible_options_are_rejected(options, code, words, paths, tmp_path):
    told = run("train", *paths, "-o", tmp_path / "a.model", *options, code=code)
    assert words in told.stderr
