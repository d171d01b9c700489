"""The examination of a client: every vector, file by file, and where it was wrong."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.conformance.case import Case
from sfumato.conformance.client_process import ClientGone, interview
from sfumato.conformance.vectors import FILES, cases_of

__all__ = ["Failure", "FileResult", "examine"]


@dataclass(frozen=True)
class Failure:
    """A case that went wrong: its number in the file, and where its answer leaves the right one."""

    number: int
    about: str
    place: str
    expected: str
    found: str


@dataclass(frozen=True)
class FileResult:
    """How a client did on one file; ``ended`` says why it was not asked the rest, if it was not."""

    file: str
    cases: int
    passed: int
    failures: tuple[Failure, ...]
    ended: str = ""


def examine(
    command: Sequence[str], patience: float = 30, files: Sequence[str] = tuple(FILES)
) -> Iterator[FileResult]:
    """Ask the client of this command every case. Each file is an interview of its own."""
    for file in files:
        yield _file_result(command, file, patience)


def _file_result(command: Sequence[str], file: str, patience: float) -> FileResult:
    cases, passed = cases_of(file), 0
    failures: list[Failure] = []
    with interview(command, patience) as client:
        for number, case in enumerate(cases):
            try:
                failure = _failure(number, case, client.ask(case.request))
            except ClientGone as problem:
                ended = f"{problem}, at case {number} ({case.about})"
                return FileResult(file, len(cases), passed, tuple(failures), ended)
            if failure is None:
                passed += 1
            else:
                failures.append(failure)
    return FileResult(file, len(cases), passed, tuple(failures))


def _failure(number: int, case: Case, found: object) -> Failure | None:
    if not isinstance(found, Mapping) or not ({"ok", "error"} & set(found)):
        return Failure(number, case.about, "", 'an object with "ok" or "error"', _clipped(found))
    # Other fields may stand beside them: a message, a time.
    told = {field: found[field] for field in ("ok", "error") if field in found}
    if set(told) != set(case.answer):
        return Failure(number, case.about, "", _clipped(case.answer), _clipped(found))
    difference = first_difference(case.answer, told)
    return None if difference is None else Failure(number, case.about, *difference)


def first_difference(expected: Any, found: Any, place: str = "") -> tuple[str, str, str] | None:  # noqa: ANN401 - any JSON
    """Where two JSON values first differ, and what stands there. True is not 1, and 1.0 is not 1.

    >>> first_difference({"ok": [1, 2, 3]}, {"ok": [1, 5, 3]})
    ('ok[1]', '2', '5')
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        steps = [
            (f"{place}.{key}".lstrip("."), key)
            for key in (*expected, *(set(found) - set(expected)))
        ]
        pairs = [
            (name, expected.get(key, _NOTHING), found.get(key, _NOTHING)) for name, key in steps
        ]
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = [
            (f"{place}[{i}]", *pair) for i, pair in enumerate(zip(expected, found, strict=True))
        ]
    else:
        return (
            None
            if _shown(expected) == _shown(found)
            else (place, _clipped(expected), _clipped(found))
        )
    differences = (first_difference(one, other, name) for name, one, other in pairs)
    return next((difference for difference in differences if difference is not None), None)


class _Nothing:
    """A field that is not there."""


_NOTHING = _Nothing()


def _shown(value: object) -> str:
    return (
        "nothing"
        if isinstance(value, _Nothing)
        else json.dumps(value, sort_keys=True, ensure_ascii=False)
    )


def _clipped(value: object) -> str:
    text = _shown(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"
