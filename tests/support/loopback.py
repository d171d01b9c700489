"""A tiny aggregator on the loopback: the wire's rules over a dictionary, with faults on demand."""

import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sfumato.batches import ARROW, parse_arrow_batch, parse_batch

PROBLEM = "urn:sfumato:problem:"
DROP = "drop"  # the request is read, nothing is done, the connection closes
SWALLOW = "swallow"  # the batch is counted, the connection closes before the answer


class Loopback(ThreadingHTTPServer):
    """Counts batches once. ``faults`` are taken one per request, from the front; ``always`` comes when none is left."""

    daemon_threads = True

    def __init__(self, *surveys):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.surveys = {survey.fingerprint: survey for survey in surveys}
        self.lock = threading.Lock()
        self.held, self.counts, self.closed = {}, Counter(), set()
        self.bodies, self.paths, self.connections = [], [], 0
        self.faults, self.always = [], None
        self._thread = threading.Thread(
            target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def reports(self):
        return sum(self.counts.values())

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self._thread.join()
        self.server_close()

    def process_request(self, request, client_address):
        self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        """Silent: clients that go away are part of the tests."""

    def fault(self):
        with self.lock:
            return self.faults.pop(0) if self.faults else self.always

    def count(self, fingerprint, batch):
        """The status for a batch, which is counted if it is new."""
        with self.lock:
            if fingerprint in self.closed:
                return 410
            key = fingerprint, batch.id
            content = tuple(batch.reports.tolist())
            if key in self.held:
                return 200 if self.held[key] == content else 409
            self.held[key] = content
            self.counts.update(content)
            return 201


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.server.paths.append(self.path)
        if (fault := self.server.fault()) is not None:
            return self._misbehave(fault)
        *_, last = self.path.split("/")
        if last == "surveys":
            listed = [
                {"fingerprint": s.fingerprint, "name": s.name, "title": s.title, "open": True}
                for s in self.server.surveys.values()
            ]
            return self._answer(200, json.dumps({"surveys": listed}).encode())
        if last in self.server.surveys:
            return self._answer(200, self.server.surveys[last].resolved())
        return self._problem(404, "unknown-survey")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.bodies.append(body)
        fault = self.server.fault()
        if fault not in (None, SWALLOW):
            return self._misbehave(fault)
        fingerprint = self.path.split("/")[-2]
        if fingerprint not in self.server.surveys:
            return self._problem(404, "unknown-survey")
        batch = (
            parse_arrow_batch(body) if self.headers["Content-Type"] == ARROW else parse_batch(body)
        )
        status = self.server.count(fingerprint, batch)
        if fault == SWALLOW:
            return self._hang_up()
        if status in (409, 410):
            return self._problem(status, {409: "batch-conflict", 410: "survey-closed"}[status])
        receipt = {
            "batch": batch.id.hex(),
            "reports": int(batch.reports.size),
            "survey": fingerprint,
        }
        return self._answer(status, json.dumps(receipt).encode())

    def _misbehave(self, fault):
        """A fault is DROP, or a status with further headers and a body: ``(503, {"Retry-After": "1"}, b"")``."""
        if fault == DROP:
            return self._hang_up()
        status, headers, body = fault
        return self._answer(status, body, headers)

    def _problem(self, status, name):
        problem = {"type": PROBLEM + name, "title": "", "status": status, "detail": ""}
        self._answer(status, json.dumps(problem).encode())

    def _answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _hang_up(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_):
        """Nothing is printed."""
