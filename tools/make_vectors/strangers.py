"""Untrusted surveys: large ones that a client must refuse before it builds them, and forged tables."""

import json
from collections.abc import Iterator, Sequence

from sfumato.codes import HadamardCode
from sfumato.conformance import Case
from sfumato.contexts import Blocks, Context, HighLow, Uniform
from sfumato.foundation.canonical import canonical_bytes, fingerprint
from sfumato.mechanisms import PlainResponse, TableResponse
from sfumato.survey import Survey
from tools.make_vectors.case import load, refuse

__all__ = ["strangers"]

_N = 2**64


def strangers() -> Iterator[Case]:
    """Surveys that fill the memory, under another's pin and under their own; tables whose rows were exchanged."""
    yield from _large_domains()
    yield from _large_codes()
    yield from _table_forgeries()


def _large_domains() -> Iterator[Case]:
    small = {
        "high-low": (Survey("oversized", HighLow(8, [1, 2], 1)), (10**8, 2**31)),
        "plain": (Survey("oversized", Uniform(7, 1), PlainResponse(Uniform(7, 1))), (2**31 - 1,)),
    }
    for kind, (survey, sizes) in small.items():
        for size in sizes:
            data = json.loads(survey.resolved())
            data["promise"]["context"]["domain"]["size"] = size
            text = canonical_bytes(data).decode("utf-8")
            pinned = {"op": "load", "fingerprint": survey.fingerprint, "text": text}
            yield refuse(
                f"{kind} over {size} symbols, another survey is pinned", pinned, "WrongSurvey"
            )
            own = {**pinned, "fingerprint": fingerprint(data["promise"])}
            yield refuse(f"{kind} over {size} symbols", own, "InvalidSurvey")


def _large_codes() -> Iterator[Case]:
    """A code has at most 64 outputs for each symbol, and 2^16 more."""
    context = Uniform(7, 1)
    for points, error in (
        (2**16 - 1, ""),
        (2**17 - 1, "InvalidSurvey"),
        (2**31 - 1, "InvalidSurvey"),
    ):
        survey = Survey("oversized code", context, PlainResponse(context))
        data = json.loads(survey.resolved())
        data["promise"]["mechanism"]["codes"] = [
            HadamardCode(points, context.uniform_epsilon).record()
        ]
        text = canonical_bytes(data).decode("utf-8")
        if error:
            request = {"op": "load", "fingerprint": fingerprint(data["promise"]), "text": text}
            yield refuse(f"7 symbols, a code of {points} points", request, error)
        else:
            yield load(Survey.of_resolved(text.encode("utf-8")))


def _table_forgeries() -> Iterator[Case]:
    """Each with its honest twin: the same numbers, and rows in places that keep the promise."""
    blocks = Blocks([0] * 1001 + [1], "0.01")
    by_symbol = [0 if x < 2 else 1 + x % 3 for x in range(1001)]
    yield _forgery(
        "a table that sends the symbol", blocks, [*map(_certain, by_symbol), _certain(4)]
    )
    yield load(_table("a table that sends the block", blocks, [_certain(0)] * 1001 + [_certain(4)]))
    uniform = Uniform(1100, 1)
    steps = [_N // 16 * weight for weight in (6, 4, 4, 2)]
    yield _forgery(
        "rows that are permutations of each other",
        uniform,
        [_rotate(steps, x % 4) for x in range(1100)],
    )
    gentle = [_N // 16 * weight for weight in (5, 4, 4, 3)]
    yield load(
        _table("the same, closer together", uniform, [_rotate(gentle, x % 4) for x in range(1100)])
    )


def _forgery(about: str, context: Context, rows: Sequence[Sequence[int]]) -> Case:
    survey = _table(about, context, rows)
    request = {
        "op": "load",
        "fingerprint": survey.fingerprint,
        "text": survey.resolved().decode("utf-8"),
    }
    return refuse(about, request, "PrivacyViolation")


def _table(name: str, context: Context, rows: Sequence[Sequence[int]]) -> Survey:
    return Survey(name, context, TableResponse(context, [list(row) for row in rows]))


def _certain(report: int) -> list[int]:
    """The row of a symbol that always sends this one of five reports."""
    return [_N if y == report else 0 for y in range(5)]


def _rotate(row: Sequence[int], places: int) -> list[int]:
    return [*row[places:], *row[:places]]
