"""Bulk senders: who may upload many reports at once, each with a key that can be revoked.

The store contains only hashes of the keys. A key has 256 random bits, so a plain hash is safe.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from sfumato.aggregator.store.database import senders
from sfumato.errors import InvalidArgument
from sfumato.randomness import fresh_key

__all__ = [
    "OPERATOR",
    "Sender",
    "create_secret",
    "find_sender",
    "insert_sender",
    "list_senders",
    "revoke_key",
    "secret_hash",
]

OPERATOR = "operator"
"""The sender of bulk uploads with the analyst token."""

_RESERVED_NAMES = (OPERATOR, "anonymous")
_REVOKED = ""
_match_name = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}").fullmatch


@dataclass(frozen=True)
class Sender:
    """A bulk sender, and whether its key was revoked."""

    name: str
    is_revoked: bool


def create_secret() -> str:
    """Create a token or a key: 256 random bits as text."""
    return base64.urlsafe_b64encode(fresh_key()).decode("ascii").rstrip("=")


def secret_hash(secret: str) -> str:
    """Return the hash that the store contains instead of a token or a key."""
    return hashlib.sha256(secret.encode()).hexdigest()


def require_sender_name(name: str) -> None:
    """Reject a name that is reserved, or that cannot be part of a URL."""
    if not _match_name(name) or name in _RESERVED_NAMES:
        raise InvalidArgument(
            "a sender's name must be 1 to 64 lowercase letters, digits, dots, hyphens or "
            f"underscores, and none of {', '.join(_RESERVED_NAMES)}."
        )


def insert_sender(connection: Connection, survey_number: int, name: str) -> str:
    """Add a sender, or replace its key. Return the new key, which is not stored."""
    require_sender_name(name)
    key = create_secret()
    matches = (senders.c.survey == survey_number) & (senders.c.name == name)
    statement = update(senders).where(matches).values(key_sha256=secret_hash(key))
    if connection.execute(statement).rowcount == 0:
        row = {"survey": survey_number, "name": name, "key_sha256": secret_hash(key)}
        connection.execute(insert(senders).values(row))
    return key


def revoke_key(connection: Connection, survey_number: int, name: str) -> bool:
    """Revoke a sender's key. Return whether there is such a sender."""
    matches = (senders.c.survey == survey_number) & (senders.c.name == name)
    result = connection.execute(update(senders).where(matches).values(key_sha256=_REVOKED))
    return result.rowcount > 0


def list_senders(connection: Connection, survey_number: int) -> list[Sender]:
    """List a survey's senders by name, including those whose key was revoked."""
    query = select(senders.c.name, senders.c.key_sha256).where(senders.c.survey == survey_number)
    rows = connection.execute(query.order_by(senders.c.name)).all()
    return [Sender(name, key_hash == _REVOKED) for name, key_hash in rows]


def find_sender(connection: Connection, survey_number: int, key: str) -> str | None:
    """Return the name of the sender with this key, or ``None``."""
    new_hash = secret_hash(key)
    query = select(senders.c.name, senders.c.key_sha256).where(senders.c.survey == survey_number)
    for name, key_hash in connection.execute(query).all():
        if hmac.compare_digest(new_hash, key_hash):
            return str(name)
    return None
