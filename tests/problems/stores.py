"""File stores on the loopback interface: S3, and a plain HTTP server with simulated faults."""

import gzip
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Plain(BaseHTTPRequestHandler):
    """Serves files of `server.files` by ranges; fails as often as specified in `server.faults`."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, *, with_body):
        data, server = self.server.files.get(self.path), self.server
        if data is None:
            return self.send_error(404)
        server.asked.append(self.headers.get("Range"))
        fault = server.faults.pop(0) if with_body and server.faults else None
        if fault == "busy":
            return self.send_error(503)
        start, stop = 0, len(data)
        if asked := self.headers.get("Range"):
            first, last = asked.removeprefix("bytes=").split("-")
            start, stop = int(first), min(len(data), int(last or len(data) - 1) + 1)
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(data)}")
        self.send_header("Content-Length", str(stop - start))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", f'"{hash(data)}"')
        self.end_headers()
        if with_body and fault == "cut":
            self.wfile.write(data[start : (start + stop) // 2])
            self.close_connection = True
        elif with_body:
            self.wfile.write(data[start:stop])
        return None

    def log_message(self, *told):
        pass


@contextmanager
def http_server():
    """A server with its `files`, `faults` and what it was `asked`, and its URL."""
    with serving(Plain) as (server, url):
        server.files, server.faults, server.asked = {}, [], []
        yield server, url


@contextmanager
def serving(handler):
    """A server whose requests the handler answers, and its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Odd(BaseHTTPRequestHandler):
    """Serves `server.data`, as `server.how` says.

    `ranges`: whether it knows ranges; `headers`: what tells the version; `told` and `head`: the
    length that GET and HEAD tell, as a share of the real one; `surplus_after`: for how many seconds
    it waits after the length that it told; `stops`: after which share of the body each connection
    breaks off; `packed`: whether it packs, whatever was asked for; `chunked`; `unframed`: no length
    at all; `no_total`: no length of the file beside a range; `status`: of all answers.
    `server.sent` counts bytes of bodies.
    """

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, *, with_body):
        server, how = self.server, self.server.how
        if "status" in how:
            return self.send_error(how["status"])
        data = gzip.compress(server.data, mtime=0) if how.get("packed") else server.data
        told = int(len(data) * how.get("told" if with_body else "head", 1))
        start, stop, asked = 0, len(data), self.headers.get("Range")
        if asked and how.get("ranges"):
            first, last = asked.removeprefix("bytes=").split("-")
            start, stop = int(first), min(len(data), int(last) + 1)
            if start >= len(data):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{told}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206)
            total = "*" if how.get("no_total") else told
            self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{total}")
            told = stop - start
        else:
            self.send_response(200)
        if how.get("packed"):
            self.send_header("Content-Encoding", "gzip")
        for name, value in how.get("headers", {}).items():
            self.send_header(name, value)
        if how.get("chunked"):
            self.send_header("Transfer-Encoding", "chunked")
        elif how.get("unframed"):
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(told))
        self.end_headers()
        if not with_body:
            return None
        body = data[start:stop]
        cut = len(body) > 1024 and "stops" in how
        if cut:
            body = body[: int(len(body) * how["stops"])]
        self.close_connection |= cut or how.get("told", 1) != 1
        with suppress(OSError):
            for i in range(0, len(body), 4096):
                part = body[i : i + 4096]
                if i < told <= i + 4096 and "surplus_after" in how:
                    self.wfile.write(part[: told - i])
                    time.sleep(how["surplus_after"])
                    part = part[told - i :]
                self.wfile.write(
                    b"%x\r\n%b\r\n" % (len(part), part) if how.get("chunked") else part
                )
                server.sent += len(part)
            if how.get("chunked") and not cut:
                self.wfile.write(b"0\r\n\r\n")
        return None

    def log_message(self, *told):
        pass


@contextmanager
def odd_server(data, **how):
    """A server of one file, and its URL; see `Odd`."""
    with serving(Odd) as (server, url):
        server.data, server.how, server.sent = data, how, 0
        yield server, f"{url}/a.svm"


@contextmanager
def s3_server(environment):
    """The URL of a bucket on an S3 server; `environment` sets variables."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1",
    }.items():  # fmt: skip
        environment(name, value)
    try:
        import fsspec

        fsspec.filesystem("s3", skip_instance_cache=True).mkdir("texts")
        yield "s3://texts"
    finally:
        server.stop()
