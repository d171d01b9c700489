"""Examine a client: ask it every test vector, file by file, and say where it was wrong.

The package ships the test vectors. ``tools/make_vectors`` writes the files.
"""

import json
import queue
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sfumato.auditing import LineProcess
from sfumato.foundation.files import find_resource

FILES = (
    "mechanisms.json",
    "samples.json",
    "canonical.json",
    "domains.json",
    "memory.json",
    "batches.json",
    "bad_surveys.json",
    "budget.json",
    "strangers.json",
)


_MAX_SHOWN = 200  # characters of an answer
_MAX_LINE = 2**22
_MAX_WAITING = 16  # lines of a client that are read before they are needed
_ABSENT = object()  # a field that only one of two objects has


@dataclass(frozen=True)
class Case:
    """A request of the line protocol and its only right answer.

    ``about`` says what the case tests.
    """

    about: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """A wrong answer to one case.

    ``number`` is the position of the case in the file. ``place`` is where the answer first differs
    from the right one; ``expected`` and ``actual`` are the two values there.
    """

    number: int
    about: str
    place: str
    expected: str
    actual: str


@dataclass(frozen=True)
class FileResult:
    """How a client did on one file.

    ``ended`` says why the remaining cases were not asked; it is empty if all were.
    """

    file: str
    cases: int
    passed: int
    failures: tuple[Failure, ...]
    ended: str = ""


@cache
def read_cases(file: str) -> tuple[Case, ...]:
    """Return the cases of a file in order: later cases use surveys that earlier ones load."""
    folder = find_resource("sfumato.conformance", "test-vectors", "test-vectors")
    text = folder.joinpath(file).read_text(encoding="ascii")
    return tuple(Case(**fields) for fields in json.loads(text))


def examine(
    command: Sequence[str], patience: float = 30, files: Sequence[str] = FILES
) -> Iterator[FileResult]:
    """Ask a client every case of these files. The client is started again for each file.

    ``command`` starts the client, and ``patience`` is how many seconds to wait for an answer.
    """
    for file in files:
        yield _examine_file(command, file, patience)


def _examine_file(command: Sequence[str], file: str, patience: float) -> FileResult:
    cases = read_cases(file)
    passed = 0
    failures: list[Failure] = []
    ended = ""
    with LineProcess(command, patience, max_line=_MAX_LINE, max_waiting=_MAX_WAITING) as client:
        for number, case in enumerate(cases):
            try:
                answer = _ask(client, case.request)
            except _NoAnswer as problem:
                ended = f"{problem}, at case {number} ({case.about})"
                break
            failure = _check(number, case, answer)
            if failure is None:
                passed += 1
            else:
                failures.append(failure)
    return FileResult(file, len(cases), passed, tuple(failures), ended)


class _NoAnswer(Exception):
    """The client gave no answer and will give no more."""


def _ask(client: LineProcess, request: Mapping[str, Any]) -> object:
    """Return the answer to a request. Text that is not JSON comes back as text."""
    line = json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n"
    if not client.write(line).wait(client.patience):
        raise _NoAnswer(f"the request was not read within {client.patience:g} seconds")
    try:
        answer = client.lines.get(timeout=client.patience)
    except queue.Empty:
        raise _NoAnswer(f"timed out after {client.patience:g} seconds") from None
    if not answer:
        raise _NoAnswer(f"the client ended{client.exit_text()}")
    try:
        return json.loads(answer)
    except ValueError:
        return answer.decode("utf-8", "replace")


def _check(number: int, case: Case, answer: object) -> Failure | None:
    if not isinstance(answer, Mapping) or not ({"ok", "error"} & set(answer)):
        return Failure(number, case.about, "", 'an object with "ok" or "error"', _clip(answer))
    # Ignore other fields, such as a message or a time.
    compared = {field: answer[field] for field in ("ok", "error") if field in answer}
    if set(compared) != set(case.answer):
        return Failure(number, case.about, "", _clip(case.answer), _clip(answer))
    difference = first_difference(case.answer, compared)
    return None if difference is None else Failure(number, case.about, *difference)


def first_difference(
    expected: Any,  # noqa: ANN401 - any JSON
    actual: Any,  # noqa: ANN401
    place: str = "",
) -> tuple[str, str, str] | None:
    """Return where two JSON values first differ, and both values there. True is not 1, nor is 1.0.

    >>> first_difference({"ok": [1, 2, 3]}, {"ok": [1, 5, 3]})
    ('ok[1]', '2', '5')
    """
    parts: list[tuple[str, Any, Any]] = []
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in (*expected, *(set(actual) - set(expected))):
            name = f"{place}.{key}".lstrip(".")
            parts.append((name, expected.get(key, _ABSENT), actual.get(key, _ABSENT)))
    elif _is_same_length(expected, actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            parts.append((f"{place}[{index}]", one, other))
    elif _text(expected) != _text(actual):
        return place, _clip(expected), _clip(actual)
    for name, one, other in parts:
        difference = first_difference(one, other, name)
        if difference is not None:
            return difference
    return None


def _is_same_length(expected: object, actual: object) -> bool:
    """Return whether both are lists of the same length."""
    if not isinstance(expected, list) or not isinstance(actual, list):
        return False
    return len(expected) == len(actual)


def _text(value: object) -> str:
    if value is _ABSENT:
        return "nothing"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _clip(value: object) -> str:
    text = _text(value)
    if len(text) <= _MAX_SHOWN:
        return text
    return f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"
