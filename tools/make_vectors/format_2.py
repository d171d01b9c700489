"""Surveys, batches and charges of format 2, and surveys of format 2 that a client must reject."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from sfumato.batches import Batch, to_json
from sfumato.cells import CellKey
from sfumato.conformance import Case
from sfumato.contexts import Uniform
from sfumato.foundation.canonical import canonical_bytes, fingerprint
from sfumato.mechanisms import PlainResponse
from sfumato.survey import Question, Survey
from tools.make_vectors.case import accept, load, load_request, reject, survey_request
from tools.make_vectors.catalogue import large_surveys, surveys
from tools.make_vectors.device import SECRETS, SURVEY_NAMES, answers, identifiers

Data = dict[str, Any]

_WORDS = ("0" * 32, "0123456789abcdef" * 2, "8" + "0" * 15 + "f" * 16, "f" * 32)
_REPEATS = ("once", "day", "week", "month", "year")
_PERIODS = {"day": "2026-11-15", "week": "2026-W46", "month": "2026-11", "year": "2026"}

# Values that a field of format 2 must not have in this version.
_BAD_PROMISE: dict[str, list[Any]] = {
    "cap": ["2", 2, False],
    "cohorts": [0, 2, 32, True, "1", None],
    "collection": ["relay", "counts", "Plain", None],
    "format": [0, 3, "2", True, None],
    "invitations": [False, True, "open"],
    "learn": [[], ["mean"], ""],
    "public": [None, {}, [{"labels": ["north", "south"], "name": "region"}]],
    "questions": [None, [], {}, "lunch"],
    "repeat": [None, {"answers": 1, "every": "month", "of": 6}, {"every": "week"}],
}
_BAD_QUESTION: dict[str, list[Any]] = {
    "missing": ["no answer", 0, ""],
    "name": ["", " mode", "mode\n", None, 7, "x" * 101],
    "context": [None, {}, []],
}
_BAD_ABOUT: dict[str, list[Any]] = {
    "texts": [None, [], "", {"de": {"title": "Mittagessen"}}],
    "uploads": [0, 65_537, "1", False, {}],
}


def format_2() -> Iterator[Case]:
    """Yield everything that exists in format 1 and can be asked for in format 2."""
    for survey in _second_edition():
        yield load(survey)
        yield _reports(survey)
    for every in _REPEATS:
        survey = _repeating_survey(every)
        yield from identifiers(survey, every)
        yield from _batches(survey, every)
        yield _charge(survey)
    yield from answers(_upgrade(large_surveys()[0]))


def _upgrade(survey: Survey) -> Survey:
    """Return the same survey in edition 2."""
    return Survey.from_description(replace(survey.description, edition=2), survey.mechanism)


def _second_edition() -> Iterator[Survey]:
    known = surveys()
    for name in SURVEY_NAMES:
        yield _upgrade(known[name])
    context = Uniform(["car", "bus", "bike"], 1)
    yield Survey("a named question", Question("mode", context), edition=2)
    yield Survey("a longer name", Question("How do you get to work?", context), edition=2)
    yield Survey("fifty reports per upload", context, reports_per_upload=50, edition=2)


def _repeating_survey(every: str) -> Survey:
    repeat: Any = "once" if every == "once" else {"every": every, "distinct": 3}
    context = Uniform(["bus", "tram", "bicycle"], 1)
    name = f"uploads of format 2: {every}"
    return Survey(name, context, PlainResponse(context), repeat=repeat, edition=2)


def _reports(survey: Survey) -> Case:
    mechanism = survey.mechanism
    symbols = []
    words = []
    for index, digits in enumerate(_WORDS):
        symbols.append(index % mechanism.inputs)
        words.append([int(digits[:16], 16), int(digits[16:], 16)])
    used = np.array(words, dtype=np.uint64)[:, : mechanism.words]
    used >>= np.uint64(64 - mechanism.word_bits)
    reports = mechanism.reports_from(symbols, used).tolist()
    request = survey_request("reports", survey.fingerprint, symbols=symbols, words=list(_WORDS))
    return accept(f"{survey.name}: reports", request, reports=reports)


def _batches(survey: Survey, every: str) -> Iterator[Case]:
    period = _PERIODS.get(every)
    for reports in ([0], [3, 1, 2]):
        id_ = bytes(range(16))
        batch = Batch(
            id_,
            survey.fingerprint,
            np.array(reports, dtype=np.uint32),
            CellKey(period or ""),
            survey.edition,
        )
        request = survey_request(
            "batch", survey.fingerprint, batch=id_.hex(), reports=reports, period=period
        )
        about = f"{survey.name}: a batch of {len(reports)}"
        yield accept(about, request, body=to_json(batch).decode("ascii"))


def _charge(survey: Survey) -> Case:
    is_once = not survey.description.every
    request = survey_request(
        "charge",
        survey.fingerprint,
        secret=SECRETS[1].hex()[:32],
        entries=[],
        budget="4",
        allow_clear=False,
    )
    return accept(f"{survey.name}: cost", request, spent="1" if is_once else "3", entries=1)


# --- surveys to reject ----------------------------------------------------------------------------


def bad_format_2() -> Iterator[Case]:
    """Yield surveys of format 2 with one field that is wrong, missing or unknown."""
    survey = _repeating_survey("week")
    sections: dict[str, tuple[Callable[[Data], Data], dict[str, list[Any]]]] = {
        "promise": (lambda data: data["promise"], _BAD_PROMISE),
        "question": (lambda data: data["promise"]["questions"][0], _BAD_QUESTION),
        "about": (lambda data: data["about"], _BAD_ABOUT),
    }
    for name, (find, bad_values) in sections.items():
        for field, values in bad_values.items():
            for value in values:
                data = _parse(survey)
                find(data)[field] = value
                text = json.dumps(value, ensure_ascii=True)
                yield _reject_data(f"{name}: {field} = {text[:40]}", data)
        for field in find(_parse(survey)):
            data = _parse(survey)
            del find(data)[field]
            yield _reject_data(f"{name}: {field} is missing", data)
        data = _parse(survey)
        find(data)["zeal"] = "1"
        yield _reject_data(f"{name}: an unknown field", data)
    data = _parse(survey)
    data["promise"]["questions"] *= 2
    yield _reject_data("two questions", data)
    data = _parse(survey)
    data["promise"]["context"] = data["promise"]["questions"][0]["context"]
    yield _reject_data("a context of format 1 as well", data)


def _parse(survey: Survey) -> Data:
    data: Data = json.loads(survey.resolved())
    return data


def _reject_data(about: str, data: Data) -> Case:
    text = canonical_bytes(data).decode("utf-8")
    pin = fingerprint(data["promise"])
    return reject(about, load_request(text, pin), "InvalidSurvey")
