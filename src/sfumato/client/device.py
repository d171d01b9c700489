"""What a device keeps on disk: one secret, one ledger, and an answer log for each survey.

Four rules of order make a lost file visible, whenever a crash comes:

- The ledger is written before the secret. So a secret without a ledger means that the ledger was
  lost, and with it the record of what this device has promised.
- A survey's log is written before the survey is charged. So a charge without a log means that the
  log was lost, and with it the record of the answers.
- A survey is charged before it is answered. So an answer without a charge means that the ledger is
  an older copy, and that later promises are unknown.
- ``forget`` deletes the secret first, then the logs. So logs without a secret mean that the secret
  was lost: a new one would give other reports for the same values.

Every file is written to a temporary name, synced and renamed; then the folder is synced too. So a
crash leaves either the old or the new content. Records end with a checksum, so a file that a broken
disk or a careless copy has truncated is an error, never an older state.
"""

import errno
import hashlib
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sfumato.client.answer_log import Answer, AnswerLog
from sfumato.client.ledger import LEDGER_FORMATS, Entry, Ledger
from sfumato.client.memory import fresh_secret, secret_tag
from sfumato.errors import DamagedState
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.foundation.files import write_atomically
from sfumato.survey import Survey

__all__ = ["Device", "DeviceFolder", "sync_folder"]

_LOCK = "lock"
_SECRET = "secret"  # noqa: S105 - the name of a file
_LEDGER = "ledger"
_LOG_PREFIX = "answers-"
_LOG_FORMAT = 1

_CAN_LOCK = find_spec("fcntl") is not None  # not on Windows


class Device:
    """The secret, the ledger and the answer logs in one folder.

    Call all methods under ``lock``. A log belongs to a survey (a fingerprint) and a secret (a tag).
    ``DamagedState`` means that a file is lost or damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = DeviceFolder(folder)
        self.lock = self._folder.lock
        with self.lock():
            self.ledger()  # not the secret: a device that has lost it must be able to forget

    def ledger(self) -> Ledger:
        """Return the ledger; an empty one if the device is new."""
        record = self._folder.read_record(_LEDGER, LEDGER_FORMATS)
        if record is not None:
            ledger = Ledger.from_record(record)
            self._require_charges(ledger)
            return ledger
        if self._folder.read(_SECRET) is not None or self._has_logs():
            raise DamagedState(
                f"the ledger in {self._folder.path} is missing, so what this device has promised "
                "is unknown. Nothing was sent. Restore the file, or stop using this folder."
            )
        return Ledger()

    def charge(self, survey: Survey, budget: Fraction | None) -> tuple[bytes, AnswerLog]:
        """Charge a survey unless it was charged before. Return the secret and the survey's log.

        ``BudgetExceeded`` if the ledger would exceed the budget; then nothing is charged.
        """
        secret, ledger = self._open()
        tag = secret_tag(secret)
        entry = Entry.from_survey(survey, tag)
        charged = ledger.charge(entry, budget)
        if charged is not ledger:
            if self.log(survey.fingerprint, tag) is None:
                self.write_log(survey.fingerprint, AnswerLog(tag))
            self._write_ledger(charged)
        log = self.log(survey.fingerprint, tag)
        if log is None:
            raise DamagedState(
                f"{self._folder.path / _log_name(survey.fingerprint)} is missing, so what this "
                "device answered is unknown. Nothing was sent. Restore the file; or call forget(), "
                "and answering costs again."
            )
        return secret, log

    def current_log(self, fingerprint: str) -> AnswerLog | None:
        """Return a survey's log under the current secret; ``None`` if there is no such log."""
        secret, _ = self._open()
        return self.log(fingerprint, secret_tag(secret))

    def log(self, fingerprint: str, tag: str) -> AnswerLog | None:
        """Return a survey's log under the secret with this tag, or ``None``."""
        record = self._folder.read_record(_log_name(fingerprint), [_LOG_FORMAT])
        if record is None or record["secret"] != tag:
            return None
        return AnswerLog.from_record(record)

    def write_log(self, fingerprint: str, log: AnswerLog) -> None:
        """Replace a survey's log."""
        self._folder.write_record(_log_name(fingerprint), log.to_record(), _LOG_FORMAT)

    def mark_delivered(self, fingerprint: str, tag: str, answer: Answer) -> None:
        """Record that an answer was counted, unless the device has forgotten it."""
        log = self.log(fingerprint, tag)
        if log is not None:
            self.write_log(fingerprint, log.mark_delivered(answer))

    def forget(self) -> None:
        """Delete the secret and all logs. The ledger stays."""
        self.ledger()  # if the ledger is lost, only the secret and the logs show it: keep them
        self._folder.delete(_SECRET)
        for name in self._folder.names(_LOG_PREFIX):
            self._folder.delete(name)

    def _open(self) -> tuple[bytes, Ledger]:
        """Return the secret and the ledger; create both if the device is new or has forgotten."""
        ledger = self.ledger()
        secret = self._folder.read(_SECRET)
        if secret is not None and secret_tag(secret) == ledger.secret:
            return secret, ledger
        if secret is not None or self._has_logs():
            problem = "missing" if secret is None else "damaged"
            raise DamagedState(
                f"the secret in {self._folder.path} is {problem}, so this device cannot repeat its "
                "answers. Nothing was sent. Restore the file; or call forget(), and answering "
                "costs again."
            )
        secret = fresh_secret()
        ledger = replace(ledger, secret=secret_tag(secret))
        self._write_ledger(ledger)
        self._folder.write(_SECRET, secret)
        return secret, ledger

    def _require_charges(self, ledger: Ledger) -> None:
        """Refuse a ledger that lacks the charge of an answer."""
        charges = {entry.key for entry in ledger.entries}
        for file_name in self._folder.names(_LOG_PREFIX):
            fingerprint = file_name.removeprefix(_LOG_PREFIX)
            if (fingerprint, ledger.secret) in charges:
                continue
            record = self._folder.read_record(file_name, [_LOG_FORMAT])
            if record is None:
                continue
            log = AnswerLog.from_record(record)
            if log.last is not None and (fingerprint, log.secret) not in charges:
                raise DamagedState(
                    f"the ledger in {self._folder.path} is older than the answers next to it, so "
                    "what this device has promised is unknown. Nothing was sent. Restore the "
                    "newer ledger, or stop using this folder."
                )

    def _write_ledger(self, ledger: Ledger) -> None:
        self._folder.write_record(_LEDGER, ledger.to_record(), LEDGER_FORMATS[-1])

    def _has_logs(self) -> bool:
        return bool(self._folder.names(_LOG_PREFIX))

    def __repr__(self) -> str:
        return f"Device({str(self._folder.path)!r})"


def _log_name(fingerprint: str) -> str:
    return _LOG_PREFIX + fingerprint


class DeviceFolder:
    """The folder of one device, readable by its owner only.

    ``lock`` keeps threads and processes apart that share the folder. It uses ``flock``. Windows has
    none: there, only one process at a time may use a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()
        if not self.path.exists():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self.path.parent)
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            reason = (
                "a device's folder holds a secret, so only its owner may have access. "
                "Run chmod 700 on it, or choose a new folder"
            )
            raise OSError(errno.EPERM, reason, str(path))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other threads and processes out. Do not wait for the network inside."""
        if not _CAN_LOCK:
            yield
            return
        import fcntl

        with (self.path / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a crash releases it
            try:
                yield
            finally:
                # Closing the file is not enough: a child that was forked inside has it open too.
                fcntl.flock(file, fcntl.LOCK_UN)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or ``None`` if it does not exist."""
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Replace a file atomically and durably, readable by its owner only."""
        write_atomically(self.path / name, content, mode=0o600)
        sync_folder(self.path)

    def read_record(self, name: str, formats: Collection[int]) -> dict[str, Any] | None:
        """Read a record of one of these formats; ``None`` if the file does not exist.

        ``DamagedState`` if its checksum or its format is wrong.
        """
        content = self.read(name)
        if content is None:
            return None
        body, _, _ = content.partition(b"\n")
        if content != _with_checksum(body):
            raise DamagedState(
                f"{self.path / name} is damaged, so what this device has promised is unknown. "
                "Nothing was sent. Restore the file, or stop using this folder."
            )
        record: dict[str, Any] = json.loads(body)
        if record.get("format") not in formats:
            raise DamagedState(
                f"{self.path / name} was written by another version of Sfumato. Nothing was sent."
            )
        return record

    def write_record(self, name: str, record: Mapping[str, Json], version: int) -> None:
        """Replace a record, in format ``version``."""
        self.write(name, _with_checksum(canonical_bytes({**record, "format": version})))

    def delete(self, name: str) -> None:
        """Delete a file, and whatever a crash left of an unfinished write to it."""
        (self.path / name).unlink(missing_ok=True)
        for leftover in self.path.glob(f".{name}.*"):
            leftover.unlink(missing_ok=True)
        sync_folder(self.path)

    def names(self, prefix: str) -> list[str]:
        """List the files whose names start with ``prefix``."""
        return sorted(path.name for path in self.path.glob(f"{prefix}*"))


def sync_folder(folder: Path) -> None:
    """Force a folder's directory entries to disk, where the system allows it."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _with_checksum(body: bytes) -> bytes:
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode("ascii") + b"\n"
