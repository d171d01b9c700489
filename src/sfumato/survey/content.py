"""Recognise files that are not survey files, such as tables of answers.

No message quotes the content of a file: it could contain answers.
"""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sfumato.errors import InvalidSurvey
from sfumato.foundation.formatting import printable

__all__ = ["has_resolved_name", "has_table_name", "require_resolved", "require_toml"]

_TEXT_ENDINGS = (".csv", ".tsv", ".jsonl", ".ndjson", ".gz", ".bz2", ".zst")
_BINARY_ENDINGS = (".parquet", ".feather", ".arrow", ".arrows", ".xlsx", ".xls")
_STATISTICS_ENDINGS = (".sav", ".zsav", ".dta")
_TABLE_ENDINGS = (*_TEXT_ENDINGS, *_BINARY_ENDINGS, *_STATISTICS_ENDINGS)
_CONTENT_BY_START = {
    b"PAR1": "a Parquet table",
    b"\x1f\x8b": "compressed with gzip",
    b"PK\x03\x04": "a ZIP archive or a spreadsheet",
}


def has_resolved_name(path: Path) -> bool:
    """Return whether a file's name says that it contains a resolved survey: it ends in .json."""
    return path.suffix.lower() == ".json"


def has_table_name(path: Path) -> bool:
    """Return whether a file's name says that it contains a table, such as answers."""
    return path.suffix.lower() in _TABLE_ENDINGS


def require_toml(raw: bytes, path: Path) -> None:
    """Reject a file that is clearly not a TOML survey file, and say what it is instead."""
    _reject_tables(raw, path)
    data = _parse_json(raw) if raw.lstrip().startswith((b"{", b"[")) else None
    if _is_resolved(data):
        name = printable(path.name)
        new_name = printable(path.with_suffix(".json").name)
        raise InvalidSurvey(
            f"{name} is a resolved survey (JSON), but its name does not end in .json. Rename it to "
            f"{new_name}."
        )
    if data is not None:
        raise _not_a_survey(path, "JSON, but not a resolved survey")
    # The reasons that tomllib gives may quote the file. Give them only for a file named .toml.
    if path.suffix.lower() != ".toml" and _parse_toml(raw) is None:
        raise _not_a_survey(path, "neither TOML nor JSON")


def require_resolved(raw: bytes, path: Path) -> None:
    """Reject a file that is clearly not a resolved survey, and say what it is instead.

    A damaged resolved survey passes, because its reader says what is wrong with it.
    """
    _reject_tables(raw, path)
    data = _parse_json(raw)
    if data is not None and not _is_resolved(data):
        raise _not_a_survey(path, "JSON, but not a resolved survey")
    if data is None and "name" in (_parse_toml(raw) or {}):
        name = printable(path.name)
        new_name = printable(path.with_suffix(".toml").name)
        raise InvalidSurvey(
            f"{name} is a survey in TOML, but its name says JSON. Rename it to {new_name}."
        )


def _reject_tables(raw: bytes, path: Path) -> None:
    content = ""
    if has_table_name(path):
        content = f"a {path.suffix.lower()} file"
    elif b"\x00" in raw:
        content = "binary"
    for start, kind in _CONTENT_BY_START.items():
        if raw.startswith(start):
            content = kind
    if content:
        raise _not_a_survey(path, content)


def _not_a_survey(path: Path, content: str) -> InvalidSurvey:
    return InvalidSurvey(
        f"{printable(path.name)} is not a survey file: it is {content}. A survey file is TOML, or "
        "a resolved survey (JSON). In a command, the survey comes first, then the answers."
    )


def _parse_json(raw: bytes) -> Any:  # noqa: ANN401
    """Return the content of a JSON file, or ``None`` if it is not JSON."""
    try:
        return json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def _is_resolved(data: object) -> bool:
    return isinstance(data, Mapping) and "promise" in data


def _parse_toml(raw: bytes) -> dict[str, Any] | None:
    """Return the content of a TOML file, or ``None`` if it is not TOML."""
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError, ArithmeticError):
        return None
