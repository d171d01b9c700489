"""A job's secret: the driver holds it, tasks fetch it, and it is never written to disk.

Anything you pass to Spark may end up on disk. Serialised functions of more than a megabyte are
written to files, smaller ones are stored in blocks that Spark moves to disk when memory is low, and
settings appear in logs and on web pages. So Spark gets only a *ticket*: the driver's address and a
password. A task that has the ticket fetches the secret into memory:

    task → driver    a fresh X25519 public key, T
    driver → task    a fresh X25519 public key, D, and the secret in AES-256-GCM
                     under HKDF-SHA-256(X25519(T, D), salt = password, info = T ‖ D)

Without the password, the reply looks random. A task rejects an impostor's reply, because the
encryption is authenticated. Someone who records the exchange and later finds the ticket learns
nothing, because the private keys for T and D are gone. Once the secret is discarded, a ticket is
useless.
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

_PUBLIC_KEY_BYTES = 32
_TAG_BYTES = 16
_REPLY_BYTES = _PUBLIC_KEY_BYTES + KEY_BYTES + _TAG_BYTES
_TIMEOUT = 20.0  # seconds
_NONCE = bytes(12)  # safe, because each key encrypts only one message


@dataclass(frozen=True)
class Ticket:
    """Where to fetch a job's secret, and the password that gives access to it."""

    host: str
    port: int
    password: bytes = field(repr=False)

    def fetch(self) -> bytes:
        """Fetch the secret from the driver.

        Raise ``EntropyUnavailable`` if the secret was discarded or the driver is unreachable.
        """
        task_private = _fresh_private_key()
        task_public = task_private.public_key().public_bytes_raw()
        try:
            with socket.create_connection((self.host, self.port), timeout=_TIMEOUT) as connection:
                connection.sendall(task_public)
                reply = _receive(connection, _REPLY_BYTES)
            driver_public = reply[:_PUBLIC_KEY_BYTES]
            ciphertext = reply[_PUBLIC_KEY_BYTES:]
            cipher = _derive_cipher(
                task_private, driver_public, self.password, task_public + driver_public
            )
            return cipher.decrypt(_NONCE, ciphertext, None)
        except (OSError, ValueError, InvalidTag):
            raise EntropyUnavailable(
                f"cannot fetch the job's secret from the driver ({self.host}, port {self.port}), "
                "so nothing was privatised. If you used the reports after their `with` block "
                "ended, the secret is gone: use them inside the block. Otherwise check that "
                "executors can reach the driver."
            ) from None


@contextmanager
def offer_secret(host: str, listen_on: str) -> Iterator[Ticket]:
    """Generate a secret and serve it to ticket holders until the block ends.

    ``host``: the driver's host name, as seen by executors. ``listen_on``: the address to bind to.
    """
    secret = fresh_key()
    password = fresh_key()

    class ExchangeHandler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.settimeout(_TIMEOUT)
            try:
                task_public = _receive(self.request, _PUBLIC_KEY_BYTES)
                driver_private = _fresh_private_key()
                driver_public = driver_private.public_key().public_bytes_raw()
                cipher = _derive_cipher(
                    driver_private, task_public, password, task_public + driver_public
                )
                self.request.sendall(driver_public + cipher.encrypt(_NONCE, secret, None))
            except (OSError, ValueError):
                return  # a broken connection, or a peer that is not a task

    with _start_server(listen_on, ExchangeHandler) as server:
        poll_interval = 0.05  # seconds
        threading.Thread(target=server.serve_forever, args=[poll_interval], daemon=True).start()
        try:
            yield Ticket(host, server.server_address[1], password)
        finally:
            server.shutdown()


def _start_server(
    listen_on: str, handler: type[socketserver.BaseRequestHandler]
) -> socketserver.ThreadingTCPServer:
    family, _, _, _, address = socket.getaddrinfo(listen_on, 0, type=socket.SOCK_STREAM)[0]

    class Server(socketserver.ThreadingTCPServer):
        address_family = family
        request_queue_size = 1024  # all tasks in a stage may connect at once
        daemon_threads = True
        block_on_close = False

    return Server((str(address[0]), 0), handler)


def _derive_cipher(
    private_key: X25519PrivateKey, peer_public: bytes, password: bytes, public_keys: bytes
) -> AESGCM:
    """Return the cipher for one exchange; ``public_keys`` is T ‖ D."""
    shared_secret = private_key.exchange(X25519PublicKey.from_public_bytes(peer_public))
    key_derivation = HKDF(SHA256(), KEY_BYTES, salt=password, info=public_keys)
    return AESGCM(key_derivation.derive(shared_secret))


def _fresh_private_key() -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(fresh_key())


def _receive(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        chunk = connection.recv(size - len(content))
        if not chunk:
            raise ConnectionError("the peer closed the connection early")
        content += chunk
    return content
