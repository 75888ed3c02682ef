"""The download command, against a server on this machine."""

import gzip
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from papers.data import load_letter, load_mnist, load_sonar, load_usps, load_wbc
from problems.synthetic_files import (
    BY_HAND,
    CONTENTS,
    DATA_SETS,
    MADE,
    PACKABLE,
    SERVED,
    hide_copies,
    served_name,
    write_files,
)
from sparsemargin.datasets import load_breast_er, load_colon, load_leukemia, load_lymphoma
from sparsemargin.datasets.__main__ import main

WBC_FILE = "breast-cancer-wisconsin.data"
PACKED = {
    served_name(name): content if served_name(name) == name else gzip.compress(content, 1)
    for name, content in PACKABLE.items()
}


class Server(ThreadingHTTPServer):
    """Serves the small files, one of which may be faulty, and records the requests."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked, self.faulty, self.fault = [], None, None
        self.test_over = threading.Event()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        self.server.asked.append(name)
        fault = self.server.fault if name == self.server.faulty else None
        if fault == "know nothing":
            return self.send_error(404)
        content = sent = fault if isinstance(fault, bytes) else (CONTENTS | PACKED | SERVED)[name]
        if fault in ("break off", "interrupt"):
            sent = content[: len(content) // 2]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(sent)
        if fault == "interrupt":
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            self.server.test_over.wait(timeout=30)
        return None

    def log_message(self, *args):
        pass


@pytest.fixture
def server(register):
    """A server for the registered files."""
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        register(CONTENTS | PACKABLE | MADE, server.url)
        yield server
        server.test_over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """The destination of files, which does not exist yet."""
    hide_copies(monkeypatch, tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "folder"


def left_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def run(capsys, *arguments):
    """The exit code, the standard output, and the lines of errors."""
    code = main(["download", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err.splitlines()


def refused(capsys, *arguments):
    """The only error message of a download that fails."""
    code, out, (complaint,) = run(capsys, *arguments)
    assert (code, "fetched" in out) == (1, False)
    return complaint


def test_downloaded_files_load_and_are_not_fetched_again(server, folder, capsys):
    code, out, complaints = run(capsys, "sonar", "wbc", "--to", folder)
    assert (code, complaints) == (0, [])
    for name, content in CONTENTS.items():
        assert (folder / name).read_bytes() == content
        assert (folder / name).stat().st_mode & 0o777 == 0o644
        assert f"{name}  {len(content):,} bytes  fetched" in out
    assert out.count("Licence: A licence") == 2
    assert f"Folder: {folder}" in out
    assert left_in(folder) == sorted(CONTENTS)
    assert load_sonar("all", data_home=folder).data.shape == (5, 60)
    assert run(capsys, "wbc")[0] == 0
    assert load_wbc().data.shape == (3, 9)
    server.asked.clear()
    code, out, _ = run(capsys, "sonar", "--to", folder)
    assert (code, out.count("already there"), server.asked) == (0, 2, [])


@pytest.mark.parametrize("older", [None, "right", "wrong"])
def test_compressed_files_stay_compressed_and_load(server, folder, capsys, older):
    if older in ("right", "wrong"):
        old = {name: text if older == "right" else text[::-1] for name, text in PACKABLE.items()}
        write_files(folder, old, old)
    arriving = {} if older == "right" else dict(PACKED)
    code, _, complaints = run(capsys, "mnist", "usps", "letter", "--to", folder)
    assert (code, complaints) == (0, [])
    assert sorted(server.asked) == sorted(arriving)
    assert all((folder / name).read_bytes() == content for name, content in arriving.items())
    assert load_mnist("all", data_home=folder).data.shape == (5, 784)
    assert load_usps("all", data_home=folder).data.shape == (5, 256)
    assert load_letter("all", data_home=folder).data.shape == (5002, 16)


@pytest.mark.parametrize("older", [None, b"an older copy"])
@pytest.mark.parametrize(("data", "file", "fault", "words"), [
    ("wbc", WBC_FILE, "break off", ""), ("wbc", WBC_FILE, "know nothing", "404"),
    ("wbc", WBC_FILE, CONTENTS[WBC_FILE].replace(b",8,", b",9,"), ""),
    ("usps", "zip.train.gz", b"\x1f\x8b and nonsense", "it cannot be unpacked"),
    ("usps", "zip.train.gz", gzip.compress(b"1 2 3", mtime=0), "it has 5 bytes instead of"),
])  # fmt: skip
def test_failures_keep_existing_files(server, folder, capsys, data, file, fault, words, older):
    server.faulty, server.fault = file, fault
    if older is not None:
        folder.mkdir()
        (folder / file).write_bytes(older)
    complaint = refused(capsys, data, "--to", folder)
    name = file.removesuffix(".gz")
    assert complaint.startswith(f"error: {name} not fetched from {server.url}/{file}: ")
    assert words in complaint
    assert server.asked == [file]
    assert left_in(folder) == ([] if older is None else [file])
    assert older is None or (folder / file).read_bytes() == older


def test_failure_keeps_earlier_files_and_leaves_no_partial_file(server, folder, capsys):
    server.faulty, server.fault = "sonar.rocks", "break off"
    assert run(capsys, "sonar", "wbc", "--to", folder)[0] == 1
    assert left_in(folder) == ["sonar.mines"]
    server.fault = "interrupt"
    code, _, complaints = run(capsys, "sonar", "--to", folder)
    assert (code, complaints) == (130, ["interrupted"])
    assert left_in(folder) == ["sonar.mines"]


def test_missing_network_or_folder_is_reported(register, folder, capsys):
    with Server() as closed:
        register(server=closed.url)
    complaint = refused(capsys, "wbc", "--to", folder)
    assert complaint.startswith(f"error: {WBC_FILE} not fetched from {closed.url}/{WBC_FILE}: ")
    assert "refused" in complaint
    assert left_in(folder) == []
    (folder.parent / "a file").write_text("")
    assert "a file" in refused(capsys, "wbc", "--to", folder.parent / "a file")


def test_the_remedy_names_parts_only_where_they_help(server, folder, capsys):
    server.faulty, server.fault = "tissues.html", "know nothing"
    assert "Right copies of these, put into" in refused(capsys, "colon", "--to", folder)
    (folder.parent / "a file").write_text("")
    complaint = refused(capsys, "colon", "--to", folder.parent / "a file")
    assert "exists" in complaint
    assert "copies" not in complaint


MICROARRAYS = {"colon": load_colon, "leukemia": load_leukemia, "breast_er": load_breast_er,
               "lymphoma": load_lymphoma}  # fmt: skip


def test_files_are_converted_from_downloads_or_local_copies(server, folder, capsys):
    code, out, complaints = run(capsys, *MICROARRAYS, "--to", folder)
    assert (code, complaints, out.count("fetched")) == (0, [], len(MADE))
    # The labels are also made from the file of numbers, which is in the folder by then.
    assert sorted(server.asked) == sorted(SERVED)
    assert {name: (folder / name).read_bytes() for name in left_in(folder)} == MADE
    for load in MICROARRAYS.values():
        assert len(load(data_home=folder).data) in (3, 5)
    (folder / "colon_alon1999.csv").unlink()
    (folder / "I2000.html.gz").write_bytes(gzip.compress(SERVED["I2000.html"]))
    server.asked.clear()
    assert run(capsys, "colon", "--to", folder)[0] == 0
    assert server.asked == ["tissues.html"]
    (folder / "colon_alon1999.csv").unlink()
    (folder / "I2000.html.gz").write_bytes(b"another page")
    assert f"colon_alon1999.csv not made of {folder / 'I2000.html.gz'} and {server.url}" in refused(
        capsys, "colon", "--to", folder
    )


@pytest.mark.parametrize(("data", "file", "fault", "words"), [
    ("colon", "tissues.html", "know nothing", "404"), ("colon", "tissues.html", "break off", ""),
    ("colon", "tissues.html", b"<html>-1\n1\n</html>", "not of the form that is known"),
    ("colon", "I2000.html", b"<html>moved</html>", "not of the form that is known"),
    ("colon", "I2000.html", b"1..2 3 4\n1 2 3", "not of the form that is known"),
    ("colon", "I2000.html", SERVED["I2000.html"].replace(b"20.0", b"21.0"), "its sha256 is"),
    ("leukemia", "data_set_ALL_AML_train.csv", b"<html>moved</html>", "Gene Accession Number"),
    ("leukemia", "data_set_ALL_AML_independent.csv",
     SERVED["data_set_ALL_AML_independent.csv"].replace(b"B_at", b"C_at"), "other probes"),
    ("lymphoma", "Lymphoma.arff", b"<html>moved</html>", "not of the form that is known"),
    ("lymphoma", "Lymphoma.arff", SERVED["Lymphoma.arff"].replace(b"1,FL", b"1,CLL"),
     "bytes instead"),
    ("breast_er", "breast.csv", b"moved", "it has 5 bytes instead of"),
])  # fmt: skip
def test_files_with_a_wrong_checksum_are_not_kept(server, folder, capsys, data, file, fault, words):
    server.faulty, server.fault = file, fault
    made = {"lymphoma": "lymphoma_labels.csv"}.get(data, DATA_SETS[data][0])
    write_files(folder, [made], {made: b"an older copy"})
    code, _, (complaint,) = run(capsys, data, "--to", folder)
    assert code == 1
    assert complaint.startswith(f"error: {made} not made of {server.url}/")
    assert f"{server.url}/{file}" in complaint
    assert words in complaint
    assert complaint.endswith(f"Right copies of these, put into {folder}, would do")
    assert left_in(folder) == sorted({made, DATA_SETS[data][0]})
    assert (folder / made).read_bytes() == b"an older copy"


def test_scikit_learn_fetches_rcv1_if_there_is_no_sample(register, folder, capsys, monkeypatch):
    register(BY_HAND)
    fetched = []
    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", lambda data_home: fetched.append(data_home))
    write_files(folder, ["rcv1_topics.txt"])
    code, out, complaints = run(capsys, "rcv1", "--to", folder)
    assert (code, complaints, fetched) == (0, [], [folder])
    assert "sklearn.datasets.fetch_rcv1 fetches all of it" in out

    def fail(data_home):
        raise OSError("no such\nhost")

    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", fail)
    told = refused(capsys, "rcv1", "--to", folder)
    assert told == "error: sklearn.datasets.fetch_rcv1 did not fetch it: no such host"
    write_files(folder, BY_HAND)
    code, out, complaints = run(capsys, "rcv1", "--to", folder)
    assert (code, out.count("already there"), complaints) == (0, 2, [])
    (folder / "rcv1_topics.txt").write_text("another file")
    told = refused(capsys, "rcv1", "--to", folder)
    assert told.endswith("rcv1_topics.txt was taken from A source; A recipe")
    assert (folder / "rcv1_topics.txt").read_text() == "another file"


@pytest.mark.parametrize(("arguments", "code", "words"), [
    (["upload", "wbc"], 2, "download"), (["download", "iris"], 2, "{rcv1,lymphoma,"),
    (["download", "--help"], 0, "  sonar  92,269 bytes, CC BY 4.0\n"),
    (["download", "--help"], 0, "  colon  843,259 bytes, none stated"),
    (["download", "--help"], 0, "  rcv1  9,589,743 bytes, or all of it by fetch_rcv1, none formal"),
])  # fmt: skip
def test_help_and_errors_list_the_data_sets(arguments, code, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == code
    assert words in "".join(capsys.readouterr())
