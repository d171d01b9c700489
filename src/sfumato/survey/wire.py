"""The resolved survey: canonical JSON that clients, checkers and aggregators read.

How the format evolves: a field is never removed and never changes its meaning; new fields are optional, and readers
refuse fields, kinds and versions that they do not know, because a promise that is half understood is no promise. What
changes the meaning of existing fields gets a new ``format``. Two parts:

- ``promise``: format, name, domain and context, mechanism with its integers, repeat. Its SHA-256 is the fingerprint.
- ``about``: title, text, contact, the least number of reports, opening and closing time. Free to be corrected.

Reading never chooses anew: a mechanism is rebuilt from the integers in the file, whatever this version would choose.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.codes import ClearCode, Code, HadamardCode, RandomizedCode
from sfumato.contexts import Blocks, Context, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.errors import InvalidSurvey
from sfumato.mechanisms import BinaryResponse, BlockResponse, HighLowResponse, Mechanism, PlainResponse, TableResponse
from sfumato.mechanisms.mechanism import LARGEST_OUTPUTS
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import TwoLevels

__all__ = ["FORMAT", "context_of", "domain_of", "fields_of", "mechanism_of"]

FORMAT = 1

_Made = TypeVar("_Made", Domain, Context, Mechanism)

Fields = Mapping[str, Any]
_CODES: Mapping[str, type[Code]] = {code.kind: code for code in (ClearCode, HadamardCode, RandomizedCode)}


def fields_of(record: object, name: str, known: Sequence[str]) -> Fields:
    """A JSON object with exactly these fields."""
    if not isinstance(record, Mapping):
        raise InvalidSurvey(f"{name} must be an object with the fields {', '.join(known)}.")
    if set(record) != set(known):
        strange, missing = sorted(set(record) - set(known)), sorted(set(known) - set(record))
        found = [f"unknown {strange}"] * bool(strange) + [f"missing {missing}"] * bool(missing)
        raise InvalidSurvey(f"{name} must have the fields {', '.join(known)}; {', '.join(found)}.")
    return record


def domain_of(record: object) -> Domain:
    """The domain that a record describes."""
    kind = _kind(record, "promise.context.domain")
    if kind == "labels":
        fields = fields_of(record, "domain", ("kind", "labels", "other"))
        return _unchanged(Domain(fields["labels"], other=fields["other"]), record, "domain")
    if kind == "range":
        fields = fields_of(record, "domain", ("kind", "size", "start"))
        return IntegerDomain(fields["size"], start=fields["start"])
    if kind == "grid":
        edges = ("south", "north", "west", "east", "step")
        fields = fields_of(record, "domain", ("kind", *edges, "other"))
        return _unchanged(GridDomain(*(fields[edge] for edge in edges), other=fields["other"]), record, "domain")
    if kind == "h3":
        fields = fields_of(record, "domain", ("kind", "cells", "other"))
        return _unchanged(H3Domain(fields["cells"], other=fields["other"]), record, "domain")
    raise InvalidSurvey(f"domain.kind {kind!r} is not known to this version.")


def context_of(record: object) -> Context:
    """The context that a record describes, with its domain."""
    kind = _kind(record, "promise.context")
    extra = {
        "uniform": ("epsilon",),
        "high-low": ("epsilon", "sensitive"),
        "blocks": ("epsilon", "block_of"),
        "metric": ("epsilon", "distances"),
        "matrix": ("matrix",),
    }
    if kind not in extra:
        raise InvalidSurvey(f"context.kind {kind!r} is not known to this version.")
    fields = fields_of(record, "context", ("kind", "domain", *extra[kind]))
    domain = domain_of(fields["domain"])
    context: Context
    if kind == "uniform":
        context = Uniform(domain, fields["epsilon"])
    elif kind == "high-low":
        symbols = _u32(fields["sensitive"], "sensitive", domain.size)
        context = HighLow(domain, [domain.labels[x] for x in symbols.tolist()], fields["epsilon"])
    elif kind == "blocks":
        context = Blocks(_u32(fields["block_of"], "block_of", domain.size), fields["epsilon"], domain=domain)
    elif kind == "metric":
        context = Metric(fields["distances"], fields["epsilon"], domain=domain)
    else:
        context = PrivacyMatrix(fields["matrix"], domain=domain)
    return _unchanged(context, record, "context")


def mechanism_of(record: object, context: Context) -> Mechanism:
    """The mechanism that a record describes, with the integers it holds."""
    kind = _kind(record, "promise.mechanism")
    readers: Mapping[str, Callable[[Fields, Context], Mechanism]] = {
        "binary": _table,
        "table": _table,
        "plain": _framed,
        "blocks": _framed,
        "high-low": _framed,
    }
    if kind not in readers or not isinstance(record, Mapping):
        raise InvalidSurvey(f"mechanism.kind {kind!r} is not known to this version.")
    return _unchanged(readers[kind](record, context), record, "mechanism")


class _RecordedCodes:
    """A family that hands out the codes of a record, by the number of symbols that they serve there."""

    def __init__(self, by_size: Mapping[int, Code], kind: str) -> None:
        self._by_size, self.kind = by_size, kind

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        held = self._by_size[points]
        if held.word_bits == word_bits:
            return held
        return type(held)(points, epsilon, word_bits)  # type: ignore[call-arg]


def _framed(record: Fields, context: Context) -> Mechanism:
    fields = fields_of(record, "mechanism", _FRAME_FIELDS[record["kind"]])
    if not isinstance(context, Uniform | Blocks | HighLow):
        raise InvalidSurvey(f"a mechanism of kind {record['kind']!r} cannot keep a context of this kind.")
    codes = [_code(code, context.exact_inside) for code in fields["codes"]]
    if not codes:
        raise InvalidSurvey("mechanism.codes must hold at least one code.")
    if isinstance(context, HighLow):
        by_size, kind = {int(context.sensitive.size): codes[0]}, "high-low"
    else:
        sizes = context.sizes.tolist() if isinstance(context, Blocks) else [context.size]
        if len(fields["code_of_block"]) != len(sizes):
            raise InvalidSurvey(f"mechanism.code_of_block must have an entry per block, {len(sizes)}.")
        by_size = {size: codes[number] for size, number in zip(sizes, fields["code_of_block"], strict=True)}
        kind = "blocks" if isinstance(context, Blocks) else "plain"
    if kind != record["kind"] or any(code.points < size for size, code in by_size.items()):
        raise InvalidSurvey(f"mechanism of kind {record['kind']!r} does not fit the context.")
    frames: Mapping[str, Any] = {"plain": PlainResponse, "blocks": BlockResponse, "high-low": HighLowResponse}
    made: Mechanism = frames[kind](context, _RecordedCodes(by_size, codes[-1].kind), word_bits=codes[0].word_bits)
    return made


_FRAME_FIELDS = {
    "plain": ("kind", "codes", "code_of_block"),
    "blocks": ("kind", "codes", "code_of_block"),
    "high-low": ("kind", "codes"),
}


def _table(record: Fields, context: Context) -> Mechanism:
    fields = fields_of(record, "mechanism", ("kind", "word_bits", "rows"))
    _word(fields["word_bits"])
    rows = [[_count(entry) for entry in row] for row in fields["rows"]]
    if fields["kind"] == "binary":
        return BinaryResponse.of_integers(context, rows, word_bits=fields["word_bits"])
    return TableResponse(context, rows, word_bits=fields["word_bits"])


def _code(record: object, epsilon: Epsilon) -> Code:
    kind = _kind(record, "a code of the mechanism")
    if kind not in _CODES:
        raise InvalidSurvey(f"code {kind!r} is not known to this version.")
    names = ("kind", "points", "outputs", "word_bits", "high", "low", "leftover")
    fields = fields_of(record, "a code of the mechanism", names)
    _word(fields["word_bits"])
    if not isinstance(fields["outputs"], int) or not 0 <= fields["outputs"] <= LARGEST_OUTPUTS:
        raise InvalidSurvey("a code has between 0 and 2^31 outputs.")
    levels = TwoLevels(*(_count(fields[name]) for name in ("high", "low", "leftover")))
    return _CODES[kind].of_integers(fields["outputs"], levels, epsilon, fields["word_bits"])


def _word(bits: object) -> int:
    if isinstance(bits, bool) or not isinstance(bits, int) or not 8 <= bits <= 64:
        raise InvalidSurvey("word_bits must be a whole number from 8 to 64.")
    return bits


def _kind(record: object, name: str) -> str:
    if not isinstance(record, Mapping) or not isinstance(record.get("kind"), str):
        raise InvalidSurvey(f"{name} must be an object with a kind.")
    return str(record["kind"])


def _count(text: object) -> int:
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or len(text) > 40:
        raise InvalidSurvey("counts of words must be non-negative whole numbers, written as text.")
    return int(text)


def _u32(text: object, name: str, size: int) -> NDArray[np.int64]:
    try:
        raw = base64.b64decode(str(text), validate=True)
        numbers = np.frombuffer(raw, dtype="<u4").astype(np.int64)
    except ValueError:
        raise InvalidSurvey(f"{name} must be base64 of little-endian 32-bit integers.") from None
    if numbers.size and numbers.max() >= size:
        raise InvalidSurvey(f"{name} must hold numbers below {size}.")
    return numbers


def _unchanged(made: _Made, record: object, name: str) -> _Made:
    """What was read must say again what it was read from: nothing is mended in silence."""
    if made.record() != record:
        raise InvalidSurvey(f"{name} is not written in its canonical form. Resolve the survey again.")
    return made
