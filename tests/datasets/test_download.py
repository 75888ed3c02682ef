"""The download command, against a server on this machine."""

import gzip
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO

import pytest

from papers.data import load_letter, load_mnist, load_sonar, load_usps, load_wbc
from problems.synthetic_files import (
    BY_HAND,
    CONTENTS,
    PACKABLE,
    hide_copies,
    served_name,
    write_files,
)
from sparsemargin.datasets.__main__ import main

pooch = pytest.importorskip("pooch")

WBC_FILE = "breast-cancer-wisconsin.data"
PACKED = {
    served_name(name): content if served_name(name) == name else gzip.compress(content, 1)
    for name, content in PACKABLE.items()
}
SERVED = CONTENTS | PACKED
WRONG = CONTENTS[WBC_FILE].replace(b",8,", b",9,")


class Server(ThreadingHTTPServer):
    """Serves the small files, each as `faults` has it, and keeps count of what is asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.faults = {}
        self.test_over = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.strip("/")
        self.server.asked.append(name)
        self.server.faults.get(name, Handler.give)(self, SERVED[name])

    def give(self, content, announced=None):
        self.send_response(200)
        self.send_header("Content-Length", str(announced or len(content)))
        self.end_headers()
        self.wfile.write(content)

    def break_off(self, content):
        self.give(content[: len(content) // 2], announced=len(content))

    def give_other(self, content):
        self.give(WRONG)

    def give_encoded(self, content):
        """As servers do that take the packing for a matter of the transfer."""
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def know_nothing(self, content):
        self.send_error(404)

    def interrupt(self, content):
        self.give(content[: len(content) // 2], announced=len(content))
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        self.server.test_over.wait(timeout=30)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        yield server
        server.test_over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Where files are to go; not there yet."""
    hide_copies(monkeypatch, tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    return tmp_path / "folder"


@pytest.fixture
def files(server, register):
    """The registry whose files the server has."""
    register(server=server.url)


def left_in(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def run(capsys, *arguments):
    """The exit code, what was printed, and the lines of complaint."""
    code = main(["download", *map(str, arguments)])
    printed = capsys.readouterr()
    return code, printed.out, printed.err.splitlines()


def refused(capsys, *arguments):
    """The only complaint about a download that fails."""
    code, out, complaints = run(capsys, *arguments)
    assert code == 1
    assert "fetched" not in out
    (complaint,) = complaints
    return complaint


@pytest.mark.usefixtures("files")
def test_files_arrive_and_load(folder, capsys):
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


@pytest.mark.usefixtures("files")
def test_without_a_folder_files_go_where_the_loaders_look(folder, capsys):
    assert run(capsys, "wbc")[0] == 0
    assert load_wbc().data.shape == (3, 9)


def test_what_is_there_is_not_fetched_again(files, folder, server, capsys, monkeypatch):
    run(capsys, "sonar", "--to", folder)
    server.asked.clear()
    monkeypatch.setitem(sys.modules, "pooch", None)
    code, out, _ = run(capsys, "sonar", "--to", folder)
    assert code == 0
    assert out.count("already there") == 2
    assert server.asked == []


@pytest.mark.parametrize("older", ["none", "right", "wrong"])
def test_packed_files_arrive_packed_and_load(register, folder, server, capsys, older):
    register(PACKABLE, server.url)
    if older != "none":
        old = {name: text if older == "right" else text[::-1] for name, text in PACKABLE.items()}
        write_files(folder, old, old)
    code, _, complaints = run(capsys, "mnist", "usps", "letter", "--to", folder)
    assert (code, complaints) == (0, [])
    if older == "right":
        assert server.asked == []
    else:
        assert all((folder / name).read_bytes() == PACKED[name] for name in PACKED)
    assert load_mnist("all", data_home=folder).data.shape == (5, 784)
    assert load_usps("all", data_home=folder).data.shape == (5, 256)
    assert load_letter("all", data_home=folder).data.shape == (5002, 16)


def test_packed_files_may_be_unpacked_on_the_way(register, folder, server, capsys):
    register(PACKABLE, server.url)
    server.faults = {"zip.train.gz": Handler.give_encoded}
    assert run(capsys, "usps", "--to", folder)[0] == 0
    assert (folder / "zip.train.gz").read_bytes() == PACKABLE["zip.train"]
    assert load_usps(data_home=folder).data.shape == (3, 256)


@pytest.mark.parametrize(("content", "complaint"), [
    (b"\x1f\x8b and nonsense", "it cannot be unpacked"),
    (gzip.compress(b"1 2 3", mtime=0), "the sha256 of its numbers is"),
])  # fmt: skip
def test_packed_files_that_hold_something_else_are_refused(
    register, folder, server, capsys, monkeypatch, content, complaint
):
    register(PACKABLE, server.url)
    monkeypatch.setitem(SERVED, "zip.train.gz", content)
    told = refused(capsys, "usps", "--to", folder)
    assert told.startswith(f"error: zip.train not fetched from {server.url}/zip.train.gz")
    assert complaint in told
    assert left_in(folder) == []


@pytest.mark.parametrize("older", [None, b"an older copy"])
@pytest.mark.parametrize("fault", ["break_off", "give_other", "know_nothing"])
def test_failures_leave_what_was_there(files, folder, server, capsys, fault, older):
    server.faults = {WBC_FILE: getattr(Handler, fault)}
    if older is not None:
        folder.mkdir()
        (folder / WBC_FILE).write_bytes(older)
    complaint = refused(capsys, "wbc", "--to", folder)
    assert complaint.startswith(f"error: {WBC_FILE} not fetched from {server.url}/{WBC_FILE}: ")
    assert server.asked == [WBC_FILE]
    assert left_in(folder) == ([] if older is None else [WBC_FILE])
    if older is not None:
        assert (folder / WBC_FILE).read_bytes() == older


def test_files_before_a_failure_stay(files, folder, server, capsys):
    server.faults = {"sonar.rocks": Handler.break_off}
    assert run(capsys, "sonar", "wbc", "--to", folder)[0] == 1
    assert left_in(folder) == ["sonar.mines"]


def test_an_interrupt_leaves_nothing(files, folder, server, capsys):
    server.faults = {WBC_FILE: Handler.interrupt}
    code, _, complaints = run(capsys, "wbc", "--to", folder)
    assert (code, complaints) == (130, ["interrupted"])
    assert server.asked == [WBC_FILE]
    assert left_in(folder) == []


def test_without_network(folder, register, capsys):
    with Server() as closed:
        register(server=closed.url)
    complaint = refused(capsys, "wbc", "--to", folder)
    assert complaint.startswith(f"error: {WBC_FILE} not fetched from {closed.url}/{WBC_FILE}: ")
    assert "refused" in complaint
    assert left_in(folder) == []


def test_without_pooch(files, folder, server, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    told = refused(capsys, "wbc", "--to", folder)
    assert told == "error: downloads need pooch: pip install 'sparsemargin[download]'"
    assert server.asked == []


@pytest.mark.usefixtures("files")
def test_a_folder_that_cannot_be_one(folder, capsys):
    folder.write_text("a file")
    assert str(folder) in refused(capsys, "wbc", "--to", folder)


@pytest.mark.parametrize("older", [None, b"another file"])
def test_of_files_that_no_address_serves_the_way_to_get_them_is_told(
    register, folder, capsys, monkeypatch, older
):
    register(BY_HAND)
    monkeypatch.setitem(sys.modules, "pooch", None)
    write_files(folder, ["rcv1_subsets_topics.svm.bz2"])
    if older is not None:
        (folder / "rcv1_topics.txt").write_bytes(older)
    assert refused(capsys, "rcv1", "--to", folder) == (
        "error: no address serves rcv1_topics.txt, get it by hand: rcv1_topics.txt was taken from "
        "A source; A recipe"
    )
    assert older is None or (folder / "rcv1_topics.txt").read_bytes() == older


def test_copies_of_files_that_no_address_serves_are_checked(register, folder, capsys):
    register(BY_HAND)
    write_files(folder, BY_HAND)
    code, out, complaints = run(capsys, "rcv1", "lymphoma", "--to", folder)
    assert (code, complaints) == (0, [])
    assert out.count("already there") == 4


def use_terminal(monkeypatch):
    """Put a terminal in the place of the error stream and return what it is sent."""
    stream = StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


@pytest.mark.parametrize(("fault", "line"), [("give", ""), ("break_off", "error: ")])
def test_progress_leaves_a_clear_line(files, folder, server, monkeypatch, fault, line):
    pytest.importorskip("tqdm")
    server.faults = {WBC_FILE: getattr(Handler, fault)}
    shown = use_terminal(monkeypatch)
    main(["download", "wbc", "--to", str(folder)])
    before, cleared, after = shown.getvalue().rsplit("\r", 2)
    assert f"\r{WBC_FILE}: " in before
    assert cleared.isspace()
    assert after.startswith(line)
    assert bool(after) == bool(line)


@pytest.mark.parametrize(("arguments", "known"), [
    ([], "download"), (["upload", "wbc"], "download"),
    (["download"], "{sonar,wbc,"), (["download", "iris"], "{sonar,wbc,"),
])  # fmt: skip
def test_unknown_names_are_refused_with_those_that_exist(arguments, known, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert known in capsys.readouterr().err


def test_help_lists_names_sizes_and_licences(capsys):
    with pytest.raises(SystemExit):
        main(["download", "--help"])
    text = capsys.readouterr().out
    assert "  sonar  92,269 bytes, CC BY 4.0\n" in text
    assert "  wbc  19,889 bytes, CC BY 4.0\n" in text
    assert "  colon  347,103 bytes, by hand, none stated" in text
