"""Learning over shards on Dask's workers, which may die, as may the scheduler."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import sparsemargin
from long.kill_workers import Workers, fits_under_kills, scheduler_and_workers, write_shards
from problems.command_line import run
from problems.published_files import data_folder
from sparsemargin.datasets import load_rcv1
from sparsemargin.distributed import (
    LostScheduler,
    _backends,
    _fit,
    _rounds,
    fit_distributed,
)
from sparsemargin.distributed._shards import MatrixShard
from tests.distributed.test_distributed import assert_same, cut, make_data, parameters

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask.distributed")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Of a scheduler that two processes work for."""
    with scheduler_and_workers(tmp_path_factory.mktemp("dask")) as (client, _):
        client.wait_for_workers(2)
        yield client


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("shards"), 3, 400)


@pytest.mark.parametrize("name", ["pnorm 6", "alma 2", "joint", "ho", "so"])
def test_the_workers_come_to_the_same_model(name, client):
    shards = cut(*make_data(n_classes=3), 5)
    here = fit_distributed(shards, **parameters(name))
    assert_same(fit_distributed(shards, client=client, **parameters(name)), here)


def test_files_are_read_where_the_workers_are(client, paths, tmp_path):
    how = {"algo": "alma", "random_state": 0, "cache_dir": tmp_path / "caches"}
    here = fit_distributed(paths, algo="alma", random_state=0)
    assert_same(fit_distributed(paths, client=client.scheduler.address, **how), here)
    assert len(list((tmp_path / "caches").iterdir())) == 3


@pytest.mark.parametrize("lazy_labels", [True, False])
def test_dask_arrays_are_cut_at_their_blocks(lazy_labels, client):
    X, y = make_data()
    blocks = da.from_array(X.toarray(), chunks=(100, -1)).map_blocks(csr_matrix)
    labels = da.from_array(y, chunks=100) if lazy_labels else y
    shards = [(X[i : i + 100], y[i : i + 100]) for i in range(0, 240, 100)]
    how = {"algo": "pnorm", "p": 4, "random_state": 0}
    expected = fit_distributed(shards, **how)
    assert_same(fit_distributed(blocks, labels, client=client, **how), expected)
    assert_same(fit_distributed(blocks, labels, **how), expected)


def test_pairs_may_be_on_their_way(client):
    shards = cut(*make_data(), 2)
    futures = [(client.submit(csr_matrix, X), client.submit(np.array, y)) for X, y in shards]
    lazy = [(dask_delayed(csr_matrix)(X), y) for X, y in shards]
    expected = fit_distributed(shards, algo="alma", random_state=0)
    for given in futures, lazy:
        assert_same(fit_distributed(given, client=client, algo="alma", random_state=0), expected)
    assert_same(fit_distributed(futures, algo="alma", random_state=0), expected)
    whole = client.submit(tuple, shards[0])
    with pytest.raises(ValueError, match=r"tuple\(delayed\(load, nout=2\)"):
        fit_distributed([whole], client=client)


def dask_delayed(function):
    from dask import delayed

    return delayed(function)


@pytest.mark.parametrize("kind", ["pairs", "blocks", "files"])
def test_shards_are_spread_over_the_workers(kind, client, paths, monkeypatch):
    X, y = make_data(400)
    blocks = da.from_array(X.toarray(), chunks=(200, -1)).map_blocks(csr_matrix)
    given = {"pairs": (cut(X, y, 2),), "blocks": (blocks, y), "files": (paths[:2],)}[kind]
    found, known, submit = [], set(), client.submit

    def hesitate(*arguments, **how):
        # So that what Dask was told before has been done, as it has where shards are large.
        time.sleep(0.03)
        return submit(*arguments, **how)

    def look(done):
        # It may take a moment to forget the shards of the fit before.
        mine = {key: at for key, at in client.who_has().items() if "open_shard" in key}
        found.append({at for key, at in mine.items() if key not in known})
        known.update(mine)

    monkeypatch.setattr(client, "submit", hesitate)
    for _ in range(3):
        fit_distributed(*given, client=client, algo="alma", max_iter=1, on_round=look)
    # What a worker has done when the next is told of is a matter of moments.
    assert max(map(len, found)) == 2


@pytest.mark.parametrize(
    ("X_chunks", "y_chunks", "words"),
    [((100, 20), 100, "whose blocks have all columns"), ((100, -1), 120, "with the blocks of X")],
)
def test_blocks_that_do_not_fit_are_told(X_chunks, y_chunks, words):
    X, y = make_data()
    with pytest.raises(ValueError, match=words):
        fit_distributed(da.from_array(X.toarray(), chunks=X_chunks), da.from_array(y, y_chunks))


def test_labels_that_do_not_fit_are_told():
    X, y = make_data()
    blocks = da.from_array(X.toarray(), chunks=(100, -1))
    for labels, words in ((y[:-1], "239 labels"), (None, "y is missing")):
        with pytest.raises(ValueError, match=words):
            fit_distributed(blocks, labels)


def test_labels_beside_blocks_may_have_any_form():
    X, y = make_data()
    blocks = da.from_array(X.toarray(), chunks=(100, -1))
    indicator = np.stack([y == 0, y == 1], axis=1).astype(int)
    how = {"algo": "pnorm", "random_state": 0}
    expected = fit_distributed(blocks, indicator, **how)
    for labels in csr_matrix(indicator), [[label] for label in y]:
        model = fit_distributed(blocks, labels, **how)
        np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_of_collections_only_arrays_are_taken():
    X, y = make_data()
    with pytest.raises(ValueError, match="Of Dask's collections an array is taken"):
        fit_distributed(dask_delayed(csr_matrix)(X), y)
    with pytest.raises(ValueError, match="y must be a Dask array"):
        fit_distributed(da.from_array(X.toarray(), chunks=(100, -1)), dask_delayed(np.array)(y))


def test_bad_shards_are_named_on_workers_too(client, paths, tmp_path):
    with pytest.raises(OSError, match=r"Shard 3 of 4.*none\.svm"):
        fit_distributed([*paths, tmp_path / "none.svm"], client=client, algo="alma")
    X, y = make_data()
    X.data[7] = np.inf
    with pytest.raises(ValueError, match=r"Shard 1 of 2.*infinity at row"):
        fit_distributed([(X[20:], y[20:]), (X, y)], client=client, algo="alma")


def test_workers_need_the_same_version(client, monkeypatch):
    monkeypatch.setattr(_fit, "__version__", "0.0.7")
    with pytest.raises(ConnectionError, match=r"has sparsemargin .*, this process 0\.0\.7"):
        fit_distributed(cut(*make_data(), 2), client=client)


def test_workers_need_the_library(near, monkeypatch):
    def fail(X, y):
        raise ModuleNotFoundError("No module named 'sparsemargin'", name="sparsemargin")

    monkeypatch.setattr(MatrixShard, "of", fail)
    with pytest.raises(ConnectionError, match=r"A worker has no sparsemargin: pip install"):
        fit_distributed(cut(*make_data(), 2), client=near)


# ------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "how",
    [{"algo": "pnorm", "p": 6, "max_iter": 30}, {"algo": "so", "max_iter": 6, "max_updates": 200}],
)
def test_workers_may_be_killed(how, tmp_path):
    paths = write_shards(tmp_path, 3, 3000)
    with scheduler_and_workers(tmp_path / "dask") as (client, workers):
        kills, _, others = fits_under_kills(client, workers, paths, 2, 3, **how)
        assert (kills, others) == (2, 0)
        workers.kill(0)
        expected = fit_distributed(paths, random_state=0, **how)
        assert_same(fit_distributed(paths, client=client, random_state=0, **how), expected)


def start_scheduler(port_file):
    command = [sys.executable, "-m", "dask", "scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--scheduler-file", str(port_file)]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while not port_file.exists() or not port_file.stat().st_size:
        assert process.poll() is None
        time.sleep(0.05)
    return process, dask.Client(scheduler_file=str(port_file), set_as_default=False)


def test_a_scheduler_that_goes_away_leaves_the_last_mixture(paths, tmp_path):
    how = {"algo": "alma", "random_state": 0}
    checkpoint = tmp_path / "last.model"
    process, client = start_scheduler(tmp_path / "scheduler.json")

    def kill(done):
        if done.epoch == 3:
            process.kill()
            process.wait()

    try:
        with (
            client,
            Workers(client.scheduler.address, 1, tmp_path / "dask"),
            pytest.raises(LostScheduler, match=r"gone away.*after epoch 3.*last\.model"),
        ):
            fit_distributed(paths, client=client, checkpoint=checkpoint, on_round=kill, **how)
    finally:
        process.kill()
    kept = sparsemargin.load_model(checkpoint)
    assert_same(kept, fit_distributed(paths, max_iter=3, **how))
    resumed = fit_distributed(paths, checkpoint=checkpoint, resume=True, **how)
    assert_same(resumed, fit_distributed(paths, **how))


def test_a_scheduler_without_workers_is_told_of(monkeypatch):
    monkeypatch.setattr(_backends, "PATIENCE", 0.3)
    with (
        dask.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        pytest.raises(ConnectionError, match=r"No worker has joined.*dask worker tcp://"),
    ):
        fit_distributed(cut(*make_data(), 2), client=cluster.scheduler_address)


def test_a_scheduler_that_is_not_there_is_told_of(monkeypatch):
    monkeypatch.setattr(_backends, "PATIENCE", 0.3)
    with pytest.raises(ConnectionError, match=r"No Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        fit_distributed(cut(*make_data(), 2), client="tcp://127.0.0.1:9")


@pytest.fixture
def near():
    """A client of a cluster in this process."""
    with (
        dask.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        dask.Client(cluster, set_as_default=False) as client,
    ):
        yield client


class Labels(np.ndarray):
    """Have a column named key, and one named result."""

    key = result = 0


def test_only_futures_are_on_their_way(near):
    X, y = make_data()
    expected = fit_distributed([(X, y)], algo="alma", random_state=0)
    for client in near, None:
        given = [(X, y.view(Labels))]
        assert_same(fit_distributed(given, client=client, algo="alma", random_state=0), expected)


def test_a_client_that_is_closed_is_told_of():
    shards = cut(*make_data(), 2)
    with dask.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        client = dask.Client(cluster, set_as_default=False)
        with pytest.raises(LostScheduler, match="gone away in epoch 2"):
            fit_distributed(shards, client=client, on_round=lambda done: client.close())
        with pytest.raises(ConnectionError, match=r"is closed\. Pass one"):
            fit_distributed(shards, client=client)


@pytest.mark.parametrize("address", ["localhost", "", "http://127.0.0.1:8786", "tcp://host"])
def test_what_is_no_address_is_told_of(address):
    with pytest.raises(ValueError, match=r"no address of a Dask scheduler. Write tcp://HOST:PORT"):
        fit_distributed(cut(*make_data(), 2), client=address)


def test_dask_is_needed_for_workers_only(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    with pytest.raises(ImportError, match=r"sparsemargin\[distributed\]"):
        fit_distributed(cut(*make_data(), 2), client="tcp://127.0.0.1:9")


# ------------------------------------------------------------------------------ the command line


def test_training_from_the_shell(client, paths, tmp_path):
    model = str(tmp_path / "a.model")
    command = ["train", *paths, "-o", model, "--dask", client.scheduler.address, "--algo", "alma"]
    run(*command, "--epochs", "2")
    expected = fit_distributed(paths, algo="alma", random_state=0, max_iter=2)
    assert_same(sparsemargin.load_model(model), expected)
    run(*command, "--resume")
    expected = fit_distributed(paths, algo="alma", random_state=0)
    assert_same(sparsemargin.load_model(model), expected)
    told = run(*command, "--resume").stderr
    assert "has made its 5 epochs" in told
    assert "Pass more --epochs" in told


def test_a_fit_that_has_settled_is_not_resumed(client, paths, tmp_path):
    command = ["train", *paths, "-o", str(tmp_path / "a.model"), "--algo", "pnorm",
               "--epochs", "99", "--dask", client.scheduler.address]  # fmt: skip
    run(*command)
    told = run(*command, "--resume").stderr
    assert "The last made no correction" in told
    assert "--epochs" not in told


def test_ctrl_c_upon_a_resumed_fit_is_no_end(client, paths, tmp_path, monkeypatch):
    command = ["train", *paths, "-o", str(tmp_path / "a.model"), "--algo", "alma",
               "--dask", client.scheduler.address]  # fmt: skip
    run(*command, "--epochs", "1")

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_rounds.Rounds, "_make_round", interrupt)
    assert "nothing is left" not in run(*command, "--resume", code=130).stderr


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--mixing", "errors"], 2, "pass --dask"),
        (["--resume"], 2, "pass --dask"),
        (
            ["--dask", "tcp://127.0.0.1:9", "--init", "x"],
            2,
            "--init-model can't be had with --dask",
        ),
        (["--dask", "tcp://127.0.0.1:9", "--algo", "romma"], 1, "can't be mixed"),
        (["--dask", "tcp://127.0.0.1:9", "-o", "part-0.svm"], 1, "part-0.svm would replace"),
        (["--dask", "tcp://127.0.0.1:9", "--kernel", "rbf"], 1, "kernel='rbf' needs all rows"),
    ],
)
def test_options_that_do_not_go_together(options, code, words, paths, tmp_path, monkeypatch):
    monkeypatch.chdir(Path(paths[0]).parent)
    told = run("train", *paths, "-o", tmp_path / "a.model", *options, code=code)
    assert words in told.stderr


# ---------------------------------------------------------------------------------- real texts


@pytest.fixture(scope="module")
def rcv1():
    folder = data_folder("rcv1_subsets_topics.svm.bz2", "rcv1_topics.txt")
    stories = load_rcv1(
        ["CCAT", "GCAT"], source="sample", n_train=10_000, n_test=10_000, data_home=folder
    )
    labels = 2 * stories.target[:20_000].toarray().astype(np.int64) - 1
    return stories.data[:20_000], labels


@pytest.fixture(scope="module", params=["processes by address", "LocalCluster"])
def two_workers(request):
    if request.param == "processes by address":
        yield request.getfixturevalue("client").scheduler.address
        return
    with (
        dask.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("topic", [0, 1])
@pytest.mark.parametrize("algo", ["pnorm", "alma", "so"])
def test_two_workers_err_as_one_machine_does(algo, topic, rcv1, two_workers):
    X, y = rcv1[0], rcv1[1][:, topic]
    how = {"algo": algo, "max_iter": 2 if algo == "so" else 5, "random_state": 0}
    serial = sparsemargin.fit_csr(X[:10_000], y[:10_000], **how)
    shards = cut(X[:10_000], y[:10_000], 2)
    mixed = fit_distributed(shards, client=two_workers, **how)
    assert mixed.score(X[10_000:], y[10_000:]) > serial.score(X[10_000:], y[10_000:]) - 0.003
