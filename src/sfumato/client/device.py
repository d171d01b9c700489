"""A device's files: one secret, one ledger, and an answer log for each survey.

Four ordering rules make a lost file detectable, no matter when a crash occurs:

- The ledger is written before the secret. So a secret without a ledger means that the ledger was
  lost, and with it the record of the privacy promises that this device has made.
- A survey's log is written before the survey is charged. So a charge without a log means that the
  log was lost, and with it the record of the answers.
- A survey is charged before it is answered. So an answer without a charge means that the ledger is
  an older copy, which is missing later promises.
- ``forget`` deletes the secret first, then the logs. So logs without a secret mean that the secret
  was lost. A new secret would produce different reports for the same values.

Every file is written under a temporary name, synced and renamed; then the folder is synced too. So
a crash leaves either the old or the new content. Records end with a checksum, so a truncated file
raises an error and is never mistaken for an older state.
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
from sfumato.client.ledger import LEDGER_FORMATS, BudgetChoice, Entry, Ledger
from sfumato.client.memory import fresh_secret, secret_tag
from sfumato.errors import DamagedState
from sfumato.foundation.canonical import Json, canonical_bytes
from sfumato.foundation.files import write_atomically
from sfumato.survey import Survey

__all__ = ["Device", "DeviceFolder", "sync_folder"]

# File names.
_LOCK_FILE = "lock"
_SECRET_FILE = "secret"  # noqa: S105 - a file name
_LEDGER_FILE = "ledger"
_LOG_PREFIX = "answers-"

_LOG_FORMAT = 1
_CAN_LOCK = find_spec("fcntl") is not None  # false on Windows


class Device:
    """The secret, the ledger and the answer logs in one folder.

    Hold ``lock`` while calling any method. Each log belongs to a survey (identified by its
    fingerprint) and a secret (identified by its tag). Methods raise ``DamagedState`` if a file is
    lost or damaged.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = DeviceFolder(folder)
        self.lock = self._folder.lock
        with self.lock():
            self.read_ledger()  # not the secret: a device that lost it must still be able to forget

    def read_ledger(self) -> Ledger:
        """Return the ledger, or an empty one if the device is new."""
        record = self._folder.read_record(_LEDGER_FILE, LEDGER_FORMATS)
        if record is not None:
            ledger = Ledger.from_record(record)
            self._require_charges(ledger)
            return ledger
        if self._folder.read(_SECRET_FILE) is not None or self._has_logs():
            raise DamagedState(
                f"the ledger in {self._folder.path} is missing, so what this device has promised "
                "is unknown. Nothing was sent. Restore the file, or stop using this folder."
            )
        return Ledger()

    def charge(
        self, survey: Survey, budget: Fraction | BudgetChoice | None
    ) -> tuple[bytes, AnswerLog]:
        """Charge a survey unless it was already charged. Return the secret and the survey's log.

        A budget that the caller passes replaces the one in the ledger. Raise ``BudgetExceeded``,
        and change nothing, if the ledger would exceed it.
        """
        secret, ledger = self._load_state()
        tag = secret_tag(secret)
        entry = Entry.from_survey(survey, tag)
        limited_ledger = ledger
        if not isinstance(budget, BudgetChoice):
            limited_ledger = replace(ledger, budget=budget)
        charged_ledger = limited_ledger.charge(entry)
        # Only a new charge may start a log: an empty one must not replace a lost one.
        is_new = charged_ledger.entries != ledger.entries
        if is_new and self.read_log(survey.fingerprint, tag) is None:
            self.write_log(survey.fingerprint, AnswerLog(tag))
        if charged_ledger != ledger:
            self._write_ledger(charged_ledger)
        log = self.read_log(survey.fingerprint, tag)
        if log is None:
            raise DamagedState(
                f"{self._folder.path / _log_name(survey.fingerprint)} is missing, so what this "
                "device answered is unknown. Nothing was sent. Restore the file, or call forget(); "
                "answering will then be charged again."
            )
        return secret, log

    def read_current_log(self, fingerprint: str) -> AnswerLog | None:
        """Return a survey's log under the current secret, or ``None`` if it does not exist."""
        secret, _ = self._load_state()
        return self.read_log(fingerprint, secret_tag(secret))

    def read_log(self, fingerprint: str, tag: str) -> AnswerLog | None:
        """Return a survey's log under the secret with this tag, or ``None`` without one."""
        record = self._folder.read_record(_log_name(fingerprint), [_LOG_FORMAT])
        if record is None or record["secret"] != tag:
            return None
        return AnswerLog.from_record(record)

    def write_log(self, fingerprint: str, log: AnswerLog) -> None:
        """Replace a survey's log."""
        self._folder.write_record(_log_name(fingerprint), log.to_record(), _LOG_FORMAT)

    def mark_delivered(self, fingerprint: str, tag: str, answer: Answer) -> None:
        """Record that an answer was counted, unless the device forgot it in the meantime."""
        log = self.read_log(fingerprint, tag)
        if log is not None:
            self.write_log(fingerprint, log.mark_delivered(answer))

    def forget(self) -> None:
        """Delete the secret and all logs. The ledger is kept."""
        self.read_ledger()  # if the ledger is lost, keep the secret and the logs as evidence
        self._folder.delete(_SECRET_FILE)
        for name in self._folder.list_files(_LOG_PREFIX):
            self._folder.delete(name)

    def _load_state(self) -> tuple[bytes, Ledger]:
        """Return the secret and the ledger. Create the secret if necessary."""
        ledger = self.read_ledger()
        secret = self._folder.read(_SECRET_FILE)
        if secret is not None and secret_tag(secret) == ledger.secret:
            return secret, ledger
        if secret is not None or self._has_logs():
            problem = "missing" if secret is None else "damaged"
            raise DamagedState(
                f"the secret in {self._folder.path} is {problem}, so this device cannot repeat its "
                "answers. Nothing was sent. Restore the file, or call forget(); answering will "
                "then be charged again."
            )
        secret = fresh_secret()
        ledger = replace(ledger, secret=secret_tag(secret))
        self._write_ledger(ledger)
        self._folder.write(_SECRET_FILE, secret)
        return secret, ledger

    def _require_charges(self, ledger: Ledger) -> None:
        """Reject a ledger that is missing the charge for an answer."""
        charged_keys = {entry.key for entry in ledger.entries}
        for file_name in self._folder.list_files(_LOG_PREFIX):
            fingerprint = file_name.removeprefix(_LOG_PREFIX)
            if (fingerprint, ledger.secret) in charged_keys:
                continue
            record = self._folder.read_record(file_name, [_LOG_FORMAT])
            if record is None:
                continue
            log = AnswerLog.from_record(record)
            if log.last is not None and (fingerprint, log.secret) not in charged_keys:
                raise DamagedState(
                    f"the ledger in {self._folder.path} is older than the answers next to it, so "
                    "what this device has promised is unknown. Nothing was sent. Restore the "
                    "newer ledger, or stop using this folder."
                )

    def _write_ledger(self, ledger: Ledger) -> None:
        self._folder.write_record(_LEDGER_FILE, ledger.to_record(), LEDGER_FORMATS[-1])

    def _has_logs(self) -> bool:
        return bool(self._folder.list_files(_LOG_PREFIX))

    def __repr__(self) -> str:
        return f"Device({str(self._folder.path)!r})"


def _log_name(fingerprint: str) -> str:
    return _LOG_PREFIX + fingerprint


class DeviceFolder:
    """The folder of one device, readable by its owner only.

    ``lock`` serialises access by the threads and processes that share the folder. It uses
    ``flock``, which Windows lacks: there, only one process at a time may use a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).resolve()
        if not self.path.exists():
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(self.path.parent)
        if os.name == "posix" and self.path.stat().st_mode & 0o077:
            reason = (
                "a device's folder contains a secret, so only its owner may have access. "
                "Run chmod 700 on it, or choose a new folder"
            )
            raise OSError(errno.EPERM, reason, str(path))

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold an exclusive lock. Do not perform network I/O while holding it."""
        if not _CAN_LOCK:
            yield
            return
        import fcntl

        with (self.path / _LOCK_FILE).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # a crash releases the lock
            try:
                yield
            finally:
                # Closing the file is not enough: a process forked in the meantime also has it open.
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
        """Read a record in one of these formats. Return ``None`` if the file does not exist.

        Raise ``DamagedState`` if its checksum or format is wrong.
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
                f"{self.path / name} was written by a different version of Sfumato. "
                "Nothing was sent."
            )
        return record

    def write_record(self, name: str, record: Mapping[str, Json], format_: int) -> None:
        """Write a record with its format and a checksum, replacing the old one."""
        self.write(name, _with_checksum(canonical_bytes({**record, "format": format_})))

    def delete(self, name: str) -> None:
        """Delete a file, and any temporary files that a crash left behind."""
        (self.path / name).unlink(missing_ok=True)
        for leftover in self.path.glob(f".{name}.*"):
            leftover.unlink(missing_ok=True)
        sync_folder(self.path)

    def list_files(self, prefix: str) -> list[str]:
        """List the names of the files that start with ``prefix``."""
        return sorted(path.name for path in self.path.glob(f"{prefix}*"))


def sync_folder(folder: Path) -> None:
    """Sync a folder's directory entries to disk, if the platform supports it."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _with_checksum(body: bytes) -> bytes:
    return body + b"\nsha256 " + hashlib.sha256(body).hexdigest().encode("ascii") + b"\n"
