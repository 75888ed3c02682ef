"""Servers that state a wrong length, ignore ranges, compress, break off or state no version.

The rows are those of the file, or an error names the URL and the reason.
"""

import gzip
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import sparsemargin
from depth import some
from problems.shards import assert_same, make_data, write
from problems.stores import odd_server
from sparsemargin.files import remote
from sparsemargin.files.remote import RemoteFile
from sparsemargin.readers.row_cache import default_cache_path

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")
HOW = {"algo": "alma", "max_iter": 1, "random_state": 0}
VERSION = {"headers": {"ETag": '"1"'}}


@pytest.fixture
def text(tmp_path):
    return write(tmp_path / "a.svm", *make_data(n_classes=3))


@pytest.fixture
def data(text):
    return Path(text).read_bytes()


@pytest.fixture(autouse=True)
def at_home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cached"))
    monkeypatch.setattr(remote, "WAITS", (0.01,) * 2)
    monkeypatch.setattr(remote, "_BLOCK_BYTES", 5000)
    monkeypatch.setattr(remote._http(), "_SURPLUS_WAIT", 0.05)


@pytest.mark.parametrize("how", [
    {}, {"chunked": True}, {"packed": True}, {"packed": True, "chunked": True},
    {"ranges": True}, {"ranges": True, "packed": True}, {"head": 0.5}, {"head": 2},
    {"ranges": True, "no_total": True}, {"ranges": True, "head": 0.5}, {"ranges": True, "head": 2},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("epochs", some([3], [1, 3]))
def test_unusual_servers_give_the_rows_of_the_file(how, epochs, text, data):
    expected = sparsemargin.fit_svmlight(text, **{**HOW, "max_iter": epochs})
    with odd_server(data, **how) as (server, url):
        assert_same(sparsemargin.fit_svmlight(url, **{**HOW, "max_iter": epochs}), expected)
        # The file is read once, and its beginning several times. Because it is short, the system
        # buffers all of it each time.
        passes = server.sent / len(gzip.compress(data) if how.get("packed") else data)
        assert passes < 5


def test_server_without_ranges_sends_the_file_once_per_epoch():
    line = b"1 1:1 2:0.5\n0 2:1 3:0.25\n"
    data = line * (32_000_000 // len(line))
    with odd_server(data) as (server, url):
        sparsemargin.fit_svmlight(url, **{**HOW, "shuffle": False})
        assert server.sent < 2 * len(data)


@pytest.mark.parametrize(("how", "reason"), [
    # Surplus bytes that arrive late are read as the answer to the next request.
    ({"told": 0.5}, "is longer than the [0-9,]+ bytes that the server states|Bad status line"),
    ({"told": 2}, "broke|payload|[Bb]ytes"), ({"stops": 0.5}, "broke|payload"),
    ({"stops": 0.5, "chunked": True}, "payload|TransferEncoding|chunk"),
    ({"ranges": True, "told": 2}, "broke off after"),
    ({"ranges": True, "told": 0.5}, "is longer than the [0-9,]+ bytes that the server states"),
    ({"unframed": True}, "does not state its length"),
    ({"status": 403}, "HTTP status 403 Forbidden"), ({"status": 401}, "HTTP status 401"),
    ({"status": 404}, "no such file .HTTP status 404"), ({"status": 500}, "HTTP status 500"),
    ({"status": 400}, "HTTP status 400"), ({"status": 302}, "HTTP status 302, without a file"),
], ids=str)  # fmt: skip
def test_server_errors_are_reported_with_url_and_reason(how, reason, data, monkeypatch):
    monkeypatch.setattr(remote._http(), "_SURPLUS_WAIT", 5)
    with odd_server(data, **how) as (_, url):
        with pytest.raises((OSError, ValueError), match=reason) as told:
            sparsemargin.fit_svmlight(url, **HOW)
        assert url in str(told.value)
        assert "None" not in str(told.value)
        assert len(str(told.value)) < 500


def test_surplus_bytes_that_arrive_late_are_found(data, monkeypatch):
    monkeypatch.setattr(remote._http(), "_SURPLUS_WAIT", 5)
    with (
        odd_server(data, told=0.5, surplus_after=0.3) as (_, url),
        pytest.raises((OSError, ValueError), match=r"server states|Bad status line"),
    ):
        sparsemargin.fit_svmlight(url, **HOW)


def test_surplus_bytes_are_found_if_the_body_arrives_before_it_is_read(monkeypatch):
    http = remote._http()
    fetch = http.sync

    def slow(*call):
        answer = fetch(*call)
        time.sleep(0.1)
        return answer

    monkeypatch.setattr(http, "sync", slow)
    with (
        odd_server(b"1 1:1 2:0.5\n0 2:1 3:0.25\n" * 8000, told=0.9998) as (_, url),
        pytest.raises(ValueError, match=r"is longer than the [0-9,]+ bytes that the server states"),
    ):
        sparsemargin.fit_svmlight(url, **HOW)


def test_refused_connection_is_reported():
    url = "http://127.0.0.1:9/a.svm"
    with pytest.raises(OSError, match=f"{url} can't be reached: .*[Cc]onnect.* Check the address"):
        sparsemargin.fit_svmlight(url, **HOW)


def test_interrupted_download_is_continued(data, monkeypatch):
    with odd_server(data) as (server, url):
        file, waits = RemoteFile.find(url), []
        server.how["stops"] = 0.5

        def mended(seconds):
            waits.append(seconds)
            del server.how["stops"]

        monkeypatch.setattr(remote.time, "sleep", mended)
        with file.open() as stream:
            assert stream.read() == data
        assert len(waits) == 1
        server.how["stops"] = 0.5

        def changed(seconds):
            del server.how["stops"]
            server.data = data[::-1]

        monkeypatch.setattr(remote.time, "sleep", changed)
        with file.open() as stream, pytest.raises(ValueError, match=f"{url} changed while it was"):
            stream.read()


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("headers", [
    {"ETag": '"{}"'}, {"Last-Modified": "Thu, 0{} Jan 2026 00:00:00 GMT"},
], ids=list)  # fmt: skip
def test_row_cache_is_reused_until_the_file_changes(ranges, headers, data):
    how = {**HOW, "cache": True, "max_iter": 2}
    other = data.replace(b"\n0 ", b"\n1 ")

    def served(server, text, number):
        server.data = text
        server.how["headers"] = {name: value.format(number) for name, value in headers.items()}

    with odd_server(data, ranges=ranges) as (server, url):
        served(server, data, 1)
        first = sparsemargin.fit_svmlight(url, **how)
        written = default_cache_path([url]).stat().st_ino
        assert_same(sparsemargin.fit_svmlight(url, **how), first)
        assert default_cache_path([url]).stat().st_ino == written
        served(server, other, 2)
        assert len(other) == len(data)
        changed = sparsemargin.fit_svmlight(url, **how)
        assert not np.array_equal(changed.coef_, first.coef_)


def test_missing_version_disables_the_row_cache_with_one_warning(data):
    how = {**HOW, "cache": True, "max_iter": 2}
    with odd_server(data) as (server, url):
        with pytest.warns(UserWarning, match=f"{url}: the server sends neither ETag"):
            first = sparsemargin.fit_svmlight(url, **how)
        server.data = data.replace(b"\n0 ", b"\n1 ")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            changed = sparsemargin.fit_svmlight(url, **how)
        assert not np.array_equal(changed.coef_, first.coef_)


@pytest.mark.parametrize("how", [{}, {"packed": True}, {"ranges": True, "packed": True}], ids=str)
def test_models_and_tables_are_read_from_unusual_servers(how, data, text, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    model = sparsemargin.fit_svmlight(text, **HOW)
    sparsemargin.save_model(model, tmp_path / "a.model")
    with odd_server((tmp_path / "a.model").read_bytes(), **how) as (_, url):
        assert_same(sparsemargin.load_model(url), model)
    texts = ["cheap pills", "lunch at noon", "cheap watches", "see you at noon"] * 20
    write_table(
        pyarrow.table({"text": texts, "label": ["spam", "ham"] * 40}), tmp_path / "a.parquet"
    )
    with odd_server((tmp_path / "a.parquet").read_bytes(), **how) as (_, url):
        found = sparsemargin.fit_text(url, format="parquet", random_state=0)
    assert found.predict(["cheap pills now"]).tolist() == ["spam"]


def test_empty_remote_file_is_reported(data):
    for ranges in True, False:
        with (
            odd_server(b"", ranges=ranges) as (_, url),
            pytest.raises(ValueError, match="has no rows") as told,
        ):
            sparsemargin.fit_svmlight(url, **HOW)
        assert f"{url} has no rows" in str(told.value)
