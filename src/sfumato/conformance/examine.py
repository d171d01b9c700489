"""Test a client: send it every test vector, file by file, and report its wrong answers.

The package includes the test vectors. ``tools/make_vectors`` generates them.
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
    "format_2.json",
    "bad_format_2.json",
)

_MAX_TEXT_LENGTH = 200  # a failure quotes at most this many characters of a value
_MAX_LINE_BYTES = 2**22
_MAX_BUFFERED_LINES = 16
_ABSENT = object()  # the value of a missing field


@dataclass(frozen=True)
class Case:
    """A line-protocol request and its only correct answer.

    ``about`` describes what the case tests.
    """

    about: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]


@dataclass(frozen=True)
class Failure:
    """A wrong answer to one case.

    ``number`` is the position of the case in the file, counted from 0. ``place`` is where the
    answer first differs from the correct one. ``expected`` and ``actual`` are the values there.
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
    """Return the cases in a file, in order. Later cases use surveys that earlier ones load."""
    folder = find_resource("sfumato.conformance", "test-vectors", "test-vectors")
    text = folder.joinpath(file).read_text(encoding="ascii")
    return tuple(Case(**fields) for fields in json.loads(text))


def examine(
    command: Sequence[str], patience: float = 30, files: Sequence[str] = FILES
) -> Iterator[FileResult]:
    """Test a client on every case in ``files``, and yield the result for each file.

    ``command`` starts the client, once for each file. ``patience`` is how many seconds to wait for
    an answer.
    """
    for file in files:
        yield _examine_file(command, file, patience)


def _examine_file(command: Sequence[str], file: str, patience: float) -> FileResult:
    cases = read_cases(file)
    passed = 0
    failures: list[Failure] = []
    ended = ""
    process = LineProcess(
        command, patience, max_line_bytes=_MAX_LINE_BYTES, max_queued=_MAX_BUFFERED_LINES
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
    if not client.write(line).wait(client.timeout):
        raise _NoAnswer(f"the request was not read within {client.timeout:g} seconds")
    try:
        answer = client.lines.get(timeout=client.timeout)
    except queue.Empty:
        raise _NoAnswer(f"timed out after {client.timeout:g} seconds") from None
    if not answer:
        raise _NoAnswer(f"the client exited{client.exit_text()}")
    try:
        return json.loads(answer)
    except ValueError:
        return answer.decode("utf-8", "replace")


def _check(index: int, case: Case, answer: object) -> Failure | None:
    if not isinstance(answer, Mapping) or not ({"ok", "error"} & set(answer)):
        return Failure(index, case.about, "", 'an object with "ok" or "error"', _clip(answer))
    # Ignore other fields, such as an error message.
    relevant_fields = {field: answer[field] for field in ("ok", "error") if field in answer}
    if set(relevant_fields) != set(case.answer):
        return Failure(index, case.about, "", _clip(case.answer), _clip(answer))
    difference = first_difference(case.answer, relevant_fields)
    return None if difference is None else Failure(index, case.about, *difference)


def first_difference(
    expected: Any,  # noqa: ANN401 - any JSON
    actual: Any,  # noqa: ANN401
    location: str = "",
) -> tuple[str, str, str] | None:
    """Return where two JSON values first differ, and both values there; ``None`` if they are equal.

    ``location`` is the path to the two values, and the start of the returned path. The values true,
    1 and 1.0 all differ from each other.

    >>> first_difference({"ok": [1, 2, 3]}, {"ok": [1, 5, 3]})
    ('ok[1]', '2', '5')
    """
    children: list[tuple[str, Any, Any]] = []
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in (*expected, *(set(actual) - set(expected))):
            path = f"{location}.{key}".lstrip(".")
            children.append((path, expected.get(key, _ABSENT), actual.get(key, _ABSENT)))
    elif _are_lists_of_same_length(expected, actual):
        for index, (expected_child, actual_child) in enumerate(zip(expected, actual, strict=True)):
            children.append((f"{location}[{index}]", expected_child, actual_child))
    elif _to_text(expected) != _to_text(actual):
        return location, _clip(expected), _clip(actual)
    for path, expected_child, actual_child in children:
        difference = first_difference(expected_child, actual_child, path)
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
