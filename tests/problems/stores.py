"""File stores on the loopback interface: S3, and a plain HTTP server with simulated faults."""

import threading
from contextlib import contextmanager
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
    """A server with its `files`, `faults` and log of requests `asked`, and its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Plain)
    server.files, server.faults, server.asked = {}, [], []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


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
