"""The secret of a job: kept by the driver, fetched by tasks, written down nowhere.

Whatever is handed to Spark may end on a disk: functions of more than a megabyte become files, smaller ones lie in
blocks that are moved to disk when memory is short, settings are in logs and on pages. So Spark gets a *ticket*: where
the driver listens, and a password. A task shows that it has the ticket and receives the secret into its memory:

    task → driver    a fresh X25519 public key, T
    driver → task    a fresh X25519 public key, D, and the secret in AES-256-GCM
                     under HKDF-SHA-256(X25519(T, D), salt = password, info = T ‖ D)

Guarantees: without the password the answer is noise, and a stranger's answer is refused, because the cipher
authenticates. Someone who recorded the exchange and finds the ticket later can read nothing, for the private halves of T
and D are gone. Once the secret is dropped, a ticket opens nothing.
"""

import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from sfumato.errors import EntropyUnavailable
from sfumato.randomness import KEY_BYTES, fresh_key

__all__ = ["Ticket", "offer_secret"]

_PUBLIC_BYTES = 32
_ANSWER_BYTES = _PUBLIC_BYTES + KEY_BYTES + 16  # D, the secret, and the tag of the cipher
_PATIENCE = 20.0  # seconds
_ONLY = bytes(12)  # every exchange has its own key, which enciphers once


@dataclass(frozen=True)
class Ticket:
    """Where a job's secret can be fetched, and the password that shows that one may."""

    host: str
    port: int
    password: bytes = field(repr=False)

    def fetch(self) -> bytes:
        """The secret; ``EntropyUnavailable`` once it has been dropped, or where the driver cannot be reached."""
        private = _private_key()
        public = private.public_key().public_bytes_raw()
        try:
            with socket.create_connection((self.host, self.port), timeout=_PATIENCE) as connection:
                connection.sendall(public)
                answer = _receive(connection, _ANSWER_BYTES)
            theirs = answer[:_PUBLIC_BYTES]
            return _cipher(private, theirs, self.password, public + theirs).decrypt(
                _ONLY, answer[_PUBLIC_BYTES:], None
            )
        except (OSError, ValueError, InvalidTag):
            raise EntropyUnavailable(
                f"the job's secret could not be fetched from the driver ({self.host}, port {self.port}); nothing was "
                "privatised. If the reports were asked for after their `with` block had ended, the secret is gone: use "
                "them inside it. Otherwise see that executors can reach the driver."
            ) from None


@contextmanager
def offer_secret(host: str, listen_on: str) -> Iterator[Ticket]:
    """A fresh secret, for as long as the block lasts; ``host`` is the driver's name among executors."""
    secret = fresh_key()
    password = fresh_key()

    class Exchange(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(_PATIENCE)
            try:
                theirs = _receive(self.request, _PUBLIC_BYTES)
                private = _private_key()
                public = private.public_key().public_bytes_raw()
                cipher = _cipher(private, theirs, password, theirs + public)
                self.request.sendall(public + cipher.encrypt(_ONLY, secret, None))
            except (OSError, ValueError):
                return  # somebody knocked who had nothing to say

    with _start_server(listen_on, Exchange) as server:
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()
        try:
            yield Ticket(host, server.server_address[1], password)
        finally:
            server.shutdown()


def _start_server(
    host: str, handler: type[socketserver.BaseRequestHandler]
) -> socketserver.ThreadingTCPServer:
    family, _, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]

    class Server(socketserver.ThreadingTCPServer):
        address_family = family
        request_queue_size = 1024  # all tasks of a stage may come at once
        daemon_threads = True
        block_on_close = False

    return Server((str(address[0]), 0), handler)


def _cipher(private: X25519PrivateKey, theirs: bytes, password: bytes, both: bytes) -> AESGCM:
    shared = private.exchange(X25519PublicKey.from_public_bytes(theirs))
    return AESGCM(HKDF(SHA256(), KEY_BYTES, salt=password, info=both).derive(shared))


def _private_key() -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(fresh_key())


def _receive(connection: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        part = connection.recv(count - len(got))
        if not part:
            raise ConnectionError("the other side said too little")
        got += part
    return got
