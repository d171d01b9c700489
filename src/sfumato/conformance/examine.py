"""Test a client: send it every test vector, file by file, and report its wrong answers.

The package includes the test vectors. ``tools/make_vectors`` writes them.
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


_MAX_TEXT_LENGTH = 200  # the most characters of a value that a failure quotes
_MAX_LINE_BYTES = 2**22
_MAX_BUFFERED_LINES = 16
_ABSENT = object()  # the value of a missing field


@dataclass(frozen=True)
class Case:
    """A line-protocol request and its only correct answer.

    ``about`` says what the case tests.
    """

    about: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """A wrong answer to one case.

    ``number`` is the position of the case in the file, from 0. ``place`` is where the
    answer first differs from the correct one. ``expected`` and ``actual`` are the two values there.
    """

    number: int
    about: str
    place: str
    expected: str
    actual: str


@dataclass(frozen=True)
class FileResult:
    """A client's results for one file of test vectors.

    ``cases``: the number of cases.
    ``passed``: how many of them passed.
    ``ended``: why the remaining cases were skipped; empty if none were.
    """

    file: str
    cases: int
    passed: int
    failures: tuple[Failure, ...]
    ended: str = ""


@cache
def read_cases(file: str) -> tuple[Case, ...]:
    """Return the cases in a file, in order: later cases use surveys that earlier ones load."""
    folder = find_resource("sfumato.conformance", "test-vectors", "test-vectors")
    text = folder.joinpath(file).read_text(encoding="ascii")
    return tuple(Case(**fields) for fields in json.loads(text))


def examine(
    command: Sequence[str], patience: float = 30, files: Sequence[str] = FILES
) -> Iterator[FileResult]:
    """Test a client on every case in these files, restarting it for each file.

    ``command`` starts the client. ``patience`` is how many seconds to wait for an answer.
    """
    for file in files:
        yield _examine_file(command, file, patience)


def _examine_file(command: Sequence[str], file: str, patience: float) -> FileResult:
    cases = read_cases(file)
    passed = 0
    failures: list[Failure] = []
    ended = ""
    process = LineProcess(
        command, patience, max_line=_MAX_LINE_BYTES, max_queued=_MAX_BUFFERED_LINES
    )
    with process as client:
        for index, case in enumerate(cases):
            try:
                answer = _ask(client, case.request)
            except _NoAnswer as problem:
                ended = f"{problem}, at case {index} ({case.about})"
                break
            failure = _check(index, case, answer)
            if failure is None:
                passed += 1
            else:
                failures.append(failure)
    return FileResult(file, len(cases), passed, tuple(failures), ended)


class _NoAnswer(Exception):
    """The client did not answer, so the remaining requests are skipped."""


def _ask(client: LineProcess, request: Mapping[str, Any]) -> object:
    """Send a request and return the parsed answer, or its text if it is not JSON."""
    line = json.dumps(request, separators=(",", ":")).encode("ascii") + b"\n"
    if not client.write(line).wait(client.patience):
        raise _NoAnswer(f"the request was not read within {client.patience:g} seconds")
    try:
        answer = client.lines.get(timeout=client.patience)
    except queue.Empty:
        raise _NoAnswer(f"timed out after {client.patience:g} seconds") from None
    if not answer:
        raise _NoAnswer(f"the client exited{client.exit_text()}")
    try:
        return json.loads(answer)
    except ValueError:
        return answer.decode("utf-8", "replace")


def _check(index: int, case: Case, answer: object) -> Failure | None:
    if not isinstance(answer, Mapping) or not ({"ok", "error"} & set(answer)):
        return Failure(index, case.about, "", 'an object with "ok" or "error"', _clip(answer))
    # Ignore other fields, such as a message or a time.
    compared = {field: answer[field] for field in ("ok", "error") if field in answer}
    if set(compared) != set(case.answer):
        return Failure(index, case.about, "", _clip(case.answer), _clip(answer))
    difference = first_difference(case.answer, compared)
    return None if difference is None else Failure(index, case.about, *difference)


def first_difference(
    expected: Any,  # noqa: ANN401 - any JSON
    actual: Any,  # noqa: ANN401
    location: str = "",
) -> tuple[str, str, str] | None:
    """Return the location where two JSON values first differ, and both values there.

    ``location`` is where the two values themselves are.

    The values true, 1 and 1.0 all count as different from each other.

    >>> first_difference({"ok": [1, 2, 3]}, {"ok": [1, 5, 3]})
    ('ok[1]', '2', '5')
    """
    children: list[tuple[str, Any, Any]] = []
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in (*expected, *(set(actual) - set(expected))):
            path = f"{location}.{key}".lstrip(".")
            children.append((path, expected.get(key, _ABSENT), actual.get(key, _ABSENT)))
    elif _are_lists_of_same_length(expected, actual):
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            children.append((f"{location}[{index}]", left, right))
    elif _to_text(expected) != _to_text(actual):
        return location, _clip(expected), _clip(actual)
    for path, left, right in children:
        difference = first_difference(left, right, path)
        if difference is not None:
            return difference
    return None


def _are_lists_of_same_length(expected: object, actual: object) -> bool:
    if not isinstance(expected, list) or not isinstance(actual, list):
        return False
    return len(expected) == len(actual)


def _to_text(value: object) -> str:
    if value is _ABSENT:
        return "nothing"
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _clip(value: object) -> str:
    text = _to_text(value)
    if len(text) <= _MAX_TEXT_LENGTH:
        return text
    return f"{text[:_MAX_TEXT_LENGTH]}… ({len(text)} characters)"
