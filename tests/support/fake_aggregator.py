"""A fake aggregator on loopback: the HTTP rules over a dictionary, with faults on demand."""

import json
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sfumato.batches import ARROW_MEDIA_TYPE, UploadRules, parse_arrow_batch, parse_batch

PROBLEM = "urn:sfumato:problem:"
DROP_REQUEST = "drop request"  # read the request, do nothing, close the connection
DROP_RESPONSE = "drop response"  # count the batch, close the connection without a response


class FakeAggregator(ThreadingHTTPServer):
    """Counts each batch once.

    Each request takes one fault from the front of `faults`, then `default_fault` when none is left.
    """

    daemon_threads = True

    def __init__(self, *surveys):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.surveys = {survey.fingerprint: survey for survey in surveys}
        self.lock = threading.Lock()
        self.batches = {}
        self.counts = Counter()
        self.closed = set()
        self.bodies = []
        self.paths = []
        self.connections = 0
        self.faults = []
        self.default_fault = None
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
        """Ignore clients that disconnect: they are part of the tests."""

    def next_fault(self):
        with self.lock:
            return self.faults.pop(0) if self.faults else self.default_fault

    def count(self, fingerprint, batch):
        """Count a batch if it is new, and return the status of the response."""
        with self.lock:
            if fingerprint in self.closed:
                return 410
            key = fingerprint, batch.id
            content = tuple(batch.reports.tolist())
            if key in self.batches:
                return 200 if self.batches[key] == content else 409
            self.batches[key] = content
            self.counts.update(content)
            return 201


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        self.server.paths.append(self.path)
        if (fault := self.server.next_fault()) is not None:
            return self._misbehave(fault)
        *_, last = self.path.split("/")
        if last == "surveys":
            surveys = [
                {"fingerprint": s.fingerprint, "name": s.name, "title": s.title, "open": True}
                for s in self.server.surveys.values()
            ]
            return self._respond(200, json.dumps({"surveys": surveys}).encode())
        if last in self.server.surveys:
            return self._respond(200, self.server.surveys[last].resolved())
        return self._problem(404, "unknown-survey")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.paths.append(self.path)
        self.server.bodies.append(body)
        fault = self.server.next_fault()
        if fault not in (None, DROP_RESPONSE):
            return self._misbehave(fault)
        fingerprint = self.path.split("/")[-2]
        if fingerprint not in self.server.surveys:
            return self._problem(404, "unknown-survey")
        parse = (
            parse_arrow_batch if self.headers["Content-Type"] == ARROW_MEDIA_TYPE else parse_batch
        )
        batch = parse(body, UploadRules.from_survey(self.server.surveys[fingerprint]))
        status = self.server.count(fingerprint, batch)
        if fault == DROP_RESPONSE:
            return self._hang_up()
        if status in (409, 410):
            return self._problem(status, {409: "batch-conflict", 410: "survey-closed"}[status])
        receipt = {
            "batch": batch.id.hex(),
            "reports": int(batch.reports.size),
            "survey": fingerprint,
        }
        return self._respond(status, json.dumps(receipt).encode())

    def _misbehave(self, fault):
        """Commit a fault: DROP_REQUEST, or a response like `(503, {"Retry-After": "1"}, b"")`."""
        if fault == DROP_REQUEST:
            return self._hang_up()
        status, headers, body = fault
        return self._respond(status, body, headers)

    def _problem(self, status, name):
        problem = {"type": PROBLEM + name, "title": "", "status": status, "detail": ""}
        self._respond(status, json.dumps(problem).encode())

    def _respond(self, status, body, headers=()):
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
        """Print nothing."""
