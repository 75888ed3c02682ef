"""Remote files are read and written despite faults, and refused if they change."""

from pathlib import Path

import numpy as np
import pytest

import sparsemargin
from problems.command_line import run
from problems.shards import assert_same, make_data, write
from problems.stores import http_server, s3_server
from sparsemargin.distributed import fit_distributed
from sparsemargin.files import remote
from sparsemargin.files.http import HEAD_BYTES
from sparsemargin.files.remote import RemoteFile, RemoteReader
from sparsemargin.files.sources import open_sources

fsspec = pytest.importorskip("fsspec")
HOW = {"algo": "alma", "max_iter": 3, "random_state": 0}


@pytest.fixture
def text(tmp_path):
    return write(tmp_path / "a.svm", *make_data(n_classes=3))


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cached"))
    monkeypatch.setattr(remote, "WAITS", (0.01,) * 5)
    monkeypatch.setattr(remote, "_BLOCK_BYTES", 5000)


@pytest.fixture
def server():
    pytest.importorskip("aiohttp")
    with http_server() as (server, url):
        yield server, url


def test_fsspec_memory_file_equals_a_local_file(text):
    store = fsspec.filesystem("memory")
    store.pipe("/news/a.svm", Path(text).read_bytes())
    expected = sparsemargin.fit_svmlight(text, **HOW)
    assert_same(sparsemargin.fit_svmlight("memory://news/a.svm", **HOW), expected)
    assert_same(sparsemargin.fit_svmlight("memory://news/*.svm", **HOW), expected)
    sparsemargin.save_model(expected, "memory://news/a.model")
    assert_same(sparsemargin.load_model("memory://news/a.model"), expected)
    with pytest.raises(FileNotFoundError, match="memory://news/none: no such file"):
        sparsemargin.fit_svmlight("memory://news/none")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        sparsemargin.fit_svmlight("memory://news/*.none")
    with pytest.raises(ValueError, match="fsspec does not support this URL"):
        sparsemargin.fit_svmlight("nothing://news/a.svm")


@pytest.mark.parametrize("faults", [
    ["cut"], ["busy", "cut", "busy"], ["cut"] * 4, ["busy", None, "cut", None, "busy"],
])  # fmt: skip
def test_broken_connections_do_not_change_the_model(faults, text, server):
    server, url = server
    server.files["/a.svm"] = Path(text).read_bytes()
    server.faults += faults
    model = sparsemargin.fit_svmlight(f"{url}/a.svm", **HOW)
    assert_same(model, sparsemargin.fit_svmlight(text, **HOW))
    assert server.faults == []


def test_remote_reads_agree_with_the_file_at_any_offset(server):
    server, url = server
    data = np.random.default_rng(0).bytes(23_456)
    server.files["/a"] = data
    with RemoteReader(RemoteFile.find(f"{url}/a")) as reader:
        assert reader.read() == data
        for place in 0, 4999, 5000, 17_000, 23_456:
            reader.seek(place)
            found = reader.read(7000)
            assert data[place : place + len(found)] == found
            assert found or place == len(data)


def test_permanent_server_errors_are_reported(text, server):
    server, url = server
    server.files["/a.svm"] = Path(text).read_bytes()
    server.faults += ["busy"] * 50
    with pytest.raises(OSError, match=r"a\.svm can't be reached.* Check the address"):
        sparsemargin.fit_svmlight(f"{url}/a.svm", **HOW)
    with pytest.raises(FileNotFoundError, match="no such file"):
        sparsemargin.fit_svmlight(f"{url}/none.svm", **HOW)


def test_changed_remote_file_is_reported_and_cached_again(text, server, tmp_path):
    server, url = server
    data = server.files["/a.svm"] = Path(text).read_bytes()
    expected = fit_distributed([f"{url}/a.svm"], **HOW)
    assert_same(expected, sparsemargin.fit_svmlight(text, **HOW))
    assert len(list((tmp_path / "cached" / "sparsemargin" / "rows").iterdir())) == 1
    server.asked.clear()
    assert_same(fit_distributed([f"{url}/a.svm"], **HOW), expected)
    assert set(server.asked) == {f"bytes=0-{HEAD_BYTES - 1}"}  # the rows are read from the cache

    def change(done):
        server.files["/a.svm"] = data.replace(b"\n0 ", b"\n1 ")

    with pytest.raises(ValueError, match="not those that training began with"):
        fit_distributed([f"{url}/a.svm"], on_round=change, **HOW)
    server.files["/a.svm"] = data
    (source,) = open_sources(f"{url}/a.svm")
    with RemoteReader(source.remote) as reader:
        reader.read(10)
        server.files["/a.svm"] = data[:-100]
        with pytest.raises(ValueError, match="changed while it was read"):
            reader.read()
    server.files["/a.svm"] = data[::-1]
    with pytest.raises(ValueError, match="changed while it was read"):
        source.check_unchanged()


def test_s3_files_are_read_and_written(text, monkeypatch, tmp_path):
    pytest.importorskip("s3fs")
    pytest.importorskip("moto")
    with s3_server(monkeypatch.setenv) as bucket:
        store = fsspec.filesystem("s3")
        for part in range(3):
            store.put_file(text, f"{bucket}/part-{part}.svm")
        expected = sparsemargin.fit_svmlight([text] * 3, **HOW)
        model = sparsemargin.fit_svmlight(f"{bucket}/part-*.svm", **HOW)
        assert_same(model, expected)
        how = {"min_rows": 1, "checkpoint": f"{bucket}/news.model", **HOW}
        parts = [f"{bucket}/part-{part}.svm" for part in range(3)]
        fit_distributed(parts, **{**how, "max_iter": 1})
        resumed = fit_distributed(parts, resume=True, **how)
        assert_same(resumed, fit_distributed(parts, min_rows=1, **HOW))
        assert_same(sparsemargin.load_model(f"{bucket}/news.model"), resumed)
        assert "a model, " in run("info", f"{bucket}/news.model").stdout
        assert_same(fit_distributed(f"{bucket}/part-*.svm", min_rows=1, **HOW), resumed)


def test_remote_parquet_is_read_in_parts(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    texts = ["cheap pills", "lunch at noon", "cheap watches", "see you at noon"] * 20
    table = pyarrow.table({"text": texts, "label": ["spam", "ham"] * 40})
    store = fsspec.filesystem("memory")
    with store.open("/mail/a.parquet", "wb") as file:
        write_table(table, file)
    model = sparsemargin.fit_text("memory://mail/a.parquet", random_state=0)
    assert model.predict(["cheap pills now"]).tolist() == ["spam"]
    shards = fit_distributed(["memory://mail/a.parquet"] * 2, random_state=0)
    assert shards.predict(["cheap pills now"]).tolist() == ["spam"]


def test_server_without_ranges_sends_the_whole_file(monkeypatch):
    class Store:
        protocol = "store"

        def cat_file(self, path, start, end):
            return b"0123456789"

    monkeypatch.setattr(remote, "_store_of", lambda url: (Store(), "a"))
    assert RemoteFile("http://a", 10, "").read(2, 5) == b"234"
