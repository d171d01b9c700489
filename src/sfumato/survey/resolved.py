"""The resolved survey: canonical JSON that clients, checkers and aggregators read.

How the format evolves: a field is never removed and never changes its meaning; new fields are optional, and readers
refuse fields, kinds and versions that they do not know, because a promise that is half understood is no promise. What
changes the meaning of existing fields gets a new ``format``. Two parts:

- ``promise``: format, name, domain and context, mechanism with its integers, repeat. Its SHA-256 is the fingerprint.
- ``about``: title, text, contact, the least number of reports, opening and closing time. Free to be corrected.

Reading never chooses anew: a mechanism is rebuilt from the integers in the file, whatever this version would choose.
"""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

from sfumato.codes import ClearCode, Code, CyclicCode, CyclicDesign, HadamardCode, RandomizedCode
from sfumato.contexts import (
    CONTEXT_KINDS,
    MAX_NESTING,
    Blocks,
    Context,
    ContextUnion,
    GroupedContext,
    HighLow,
    Uniform,
)
from sfumato.domains import domain_of_record
from sfumato.errors import InvalidSurvey
from sfumato.foundation.records import (
    Fields,
    is_count,
    parse_count,
    record_kind,
    require_canonical,
    require_fields,
    require_index,
    require_word_bits,
    unpack_u32,
)
from sfumato.mechanisms import (
    BinaryResponse,
    BlockResponse,
    GroupResponse,
    HighLowResponse,
    Mechanism,
    PlainResponse,
    ProductResponse,
    TableResponse,
    UnionResponse,
)
from sfumato.mechanisms.group_levels import GroupLevels
from sfumato.mechanisms.mechanism import MAX_OUTPUTS
from sfumato.randomness.odds import Epsilon
from sfumato.randomness.thresholds import TwoLevels

__all__ = [
    "FORMAT",
    "mechanism_of",
    "require_buildable_codes",
    "require_buildable_context",
    "require_size",
]

FORMAT = 1

OUTPUTS_PER_SYMBOL = 64
FEW_OUTPUTS = 2**16
"""A code in a resolved survey has at most ``OUTPUTS_PER_SYMBOL · k + FEW_OUTPUTS`` outputs for k symbols."""

_CODES = {code.kind: code for code in (ClearCode, HadamardCode, RandomizedCode)}


# --- sizes -----------------------------------------------------------------------------------------------------------
# A short record can describe something that fills the memory. These checks come before anything is built.


def require_size(symbols: int, limit: int) -> None:
    """Reject a survey with more symbols than its kind of context may have."""
    if symbols > limit:
        raise InvalidSurvey(
            f"a survey may have up to {Context.max_recorded_size:,} symbols, or "
            f"{Uniform.max_recorded_size:,} with a uniform context; this one has {symbols:,}."
        )


def require_buildable_context(record: object, nesting: int = 0) -> None:
    """Refuse an untrusted context that would fill the memory, parts of unions included.

    A ledger is not checked like this: contexts that a device has answered before must stay readable.
    """
    if not isinstance(record, Mapping) or nesting > MAX_NESTING:
        return  # the reader refuses it before it builds anything
    if "domain" in record:
        kind = CONTEXT_KINDS.get(str(record.get("kind")), Context)
        require_size(domain_of_record(record["domain"]).size, kind.max_recorded_size)
    parts = record.get("parts")
    for part in parts if isinstance(parts, list) else ():
        require_buildable_context(part, nesting + 1)


def require_buildable_codes(record: object, context: object, nesting: int = 0) -> None:
    """Refuse codes with many more outputs than the survey has symbols: no code of ours has 64 times as many."""
    if not isinstance(record, Mapping) or not isinstance(context, Mapping) or nesting > MAX_NESTING:
        return
    largest = OUTPUTS_PER_SYMBOL * domain_of_record(context["domain"]).size + FEW_OUTPUTS
    codes = record.get("codes")
    for code in codes if isinstance(codes, list) else ():
        outputs = code.get("outputs") if isinstance(code, Mapping) else 0
        if isinstance(outputs, int) and outputs > largest:
            raise InvalidSurvey(
                f"a code of this survey may have up to {largest:,} outputs; one has {outputs:,}."
            )
    parts = record.get("parts")
    for part in parts if isinstance(parts, list) else ():
        require_buildable_codes(part, context, nesting + 1)


# --- mechanisms ------------------------------------------------------------------------------------------------------


def mechanism_of(record: object, context: Context) -> Mechanism:
    """The mechanism that a record describes, with the integers it holds."""
    kind = record_kind(record, "promise.mechanism")
    readers: Mapping[str, Callable[[Fields, Context], Mechanism]] = {
        "binary": _table,
        "table": _table,
        "plain": _framed,
        "blocks": _framed,
        "high-low": _framed,
        "groups": _grouped,
        "product": _product,
        "union": _union_response,
    }
    if kind not in readers or not isinstance(record, Mapping):
        raise InvalidSurvey(f"mechanism.kind {kind!r} is not known to this version.")
    return require_canonical(readers[kind](record, context), record, "mechanism")


class _RecordedCodes:
    """A family that hands out the codes of a record, by the number of symbols and the ε that they serve there."""

    def __init__(self, recorded: Mapping[tuple[int, Epsilon], Code], kind: str) -> None:
        self._recorded, self.kind = recorded, kind

    def __call__(self, points: int, epsilon: Epsilon, word_bits: int = 64) -> Code:
        held = self._recorded[points, epsilon]
        if held.word_bits == word_bits:
            return held
        return held.family(points, epsilon, word_bits)


def _framed(record: Fields, context: Context) -> Mechanism:
    kind = record["kind"]
    fields = require_fields(record, "mechanism", _FRAME_FIELDS[kind])
    if not isinstance(context, Uniform | Blocks | HighLow):
        raise InvalidSurvey(f"a mechanism of kind {kind!r} cannot keep a context of this kind.")
    if not fields["codes"]:
        raise InvalidSurvey("mechanism.codes must hold at least one code.")
    served = _served(context)
    numbers = [0] if isinstance(context, HighLow) else fields.get("code_of_block", [0])
    if len(numbers) != len(served):
        raise InvalidSurvey(f"mechanism.code_of_block must have an entry per block, {len(served)}.")
    recorded: dict[tuple[int, Epsilon], Code] = {}
    for (size, epsilon), number in zip(served, numbers, strict=True):
        if (size, epsilon) not in recorded:
            which = require_index(number, len(fields["codes"]), "mechanism.code_of_block")
            recorded[size, epsilon] = _code(fields["codes"][which], epsilon)
    fits = all(_serves(code, size) for (size, _), code in recorded.items())
    frame, wanted = _FRAMES[kind]
    if not isinstance(context, wanted) or not fits:
        raise InvalidSurvey(f"mechanism of kind {kind!r} does not fit the context.")
    codes = list(recorded.values())
    made: Mechanism = frame(
        context, _RecordedCodes(recorded, codes[-1].kind), word_bits=codes[0].word_bits
    )
    return made


def _serves(code: Code, size: int) -> bool:
    """Whether a code can serve so many symbols: one that is not balanced needs a symbol for every point."""
    return code.points == size or (code.points > size and code.balanced)


def _served(context: Uniform | Blocks | HighLow) -> list[tuple[int, Epsilon]]:
    """How many symbols each code of a frame serves, and with which ε."""
    if isinstance(context, Blocks):
        return list(zip(context.sizes.tolist(), context.exact_epsilons, strict=True))
    return [
        (
            int(context.sensitive.size) if isinstance(context, HighLow) else context.size,
            context.exact_inside,
        )
    ]


_FRAMES: Mapping[str, tuple[Any, type[Context]]] = {
    "plain": (PlainResponse, Uniform),
    "blocks": (BlockResponse, Blocks),
    "high-low": (HighLowResponse, HighLow),
}
_FRAME_FIELDS = {
    "plain": ("kind", "codes", "code_of_block"),
    "blocks": ("kind", "codes", "code_of_block"),
    "high-low": ("kind", "codes"),
}


def _grouped(record: Fields, context: Context) -> Mechanism:
    fields = require_fields(
        record, "mechanism", ("kind", "codes", "levels", "code_of_group", "clear", "word_bits")
    )
    if context.groups is None:
        raise InvalidSurvey("a mechanism of kind 'groups' cannot keep a context of this kind.")
    if not all(isinstance(fields[name], list) for name in ("codes", "levels", "code_of_group")):
        raise InvalidSurvey(
            "mechanism.codes, mechanism.levels and mechanism.code_of_group must be lists."
        )
    levels = [
        GroupLevels(
            *(parse_count(require_fields(level, "levels", _LEVELS)[name]) for name in _LEVELS)
        )
        for level in fields["levels"]
    ]
    numbers = [
        require_index(number, len(fields["codes"]), "mechanism.code_of_group")
        for number in fields["code_of_group"]
    ]
    promised = dict(zip(numbers, _promised_inside(context.groups), strict=False))
    codes = [_code(code, promised.get(number, inf)) for number, code in enumerate(fields["codes"])]
    bits = require_word_bits(fields["word_bits"])
    return GroupResponse.of_integers(
        context, codes, levels, numbers, parse_count(fields["clear"]), bits
    )


_LEVELS = ("high", "low", "cover")


def _promised_inside(groups: GroupedContext) -> list[Epsilon]:
    """The ε inside each group that owes something; it enters the codes' ideal levels alone."""
    return [groups.inside[g] for g in groups.owing_groups]


def _product(record: Fields, context: Context) -> Mechanism:
    fields = require_fields(record, "mechanism", ("kind", "codes"))
    if (
        not isinstance(context, Blocks)
        or not isinstance(fields["codes"], list)
        or len(fields["codes"]) != 2
    ):
        raise InvalidSurvey("a mechanism of kind 'product' has two codes and keeps blocks.")
    promised = ProductResponse.epsilons(context)
    sizes = (int(context.sizes.size), context.size)
    codes = [_code(code, epsilon) for code, epsilon in zip(fields["codes"], promised, strict=True)]
    if not all(_serves(code, size) for code, size in zip(codes, sizes, strict=True)):
        raise InvalidSurvey("mechanism of kind 'product' does not fit the context.")
    recorded: dict[tuple[int, Epsilon], Code] = dict(
        zip(zip(sizes, promised, strict=True), codes, strict=True)
    )
    return ProductResponse(
        context, _RecordedCodes(recorded, codes[-1].kind), word_bits=codes[0].word_bits
    )


def _union_response(record: Fields, context: Context) -> Mechanism:
    fields = require_fields(record, "mechanism", ("kind", "parts"))
    if not isinstance(context, ContextUnion) or not isinstance(fields["parts"], list):
        raise InvalidSurvey("a mechanism of kind 'union' keeps a union of contexts, part by part.")
    if len(fields["parts"]) != len(context.parts):
        raise InvalidSurvey(f"mechanism.parts must have an entry per block, {len(context.parts)}.")
    parts = [
        mechanism_of(part, inner)
        for part, inner in zip(fields["parts"], context.parts, strict=True)
    ]
    return UnionResponse(context, parts)


def _table(record: Fields, context: Context) -> Mechanism:
    crowded = record["kind"] == "table" and "crowd" in record
    fields = require_fields(
        record, "mechanism", ("kind", "word_bits", "rows", *(("crowd",) if crowded else ()))
    )
    require_word_bits(fields["word_bits"])
    rows = [[parse_count(entry) for entry in row] for row in fields["rows"]]
    if fields["kind"] == "binary":
        return BinaryResponse.of_integers(context, rows, word_bits=fields["word_bits"])
    crowd = [parse_count(entry) for entry in fields["crowd"]] if crowded else None
    return TableResponse(context, rows, word_bits=fields["word_bits"], crowd=crowd)


def _code(record: object, epsilon: Epsilon) -> Code:
    kind = record_kind(record, "a code of the mechanism")
    if kind not in _CODES and kind != "cyclic":
        raise InvalidSurvey(f"code {kind!r} is not known to this version.")
    names = ("kind", "points", "outputs", "word_bits", "high", "low", "leftover")
    fields = require_fields(
        record, "a code of the mechanism", names + ("base", "base_blocks") * (kind == "cyclic")
    )
    require_word_bits(fields["word_bits"])
    if not all(
        is_count(fields[name]) and fields[name] <= MAX_OUTPUTS for name in ("outputs", "points")
    ):
        raise InvalidSurvey("a code has between 0 and 2^31 points and outputs.")
    levels = TwoLevels(*(parse_count(fields[name]) for name in ("high", "low", "leftover")))
    if kind == "cyclic":
        return CyclicCode(_design(fields), levels, epsilon, fields["word_bits"])
    return _CODES[kind].of_integers(fields["outputs"], levels, epsilon, fields["word_bits"])


def _design(fields: Fields) -> CyclicDesign:
    """The base blocks of a cyclic code, block after block."""
    base, t = unpack_u32(fields["base"], "base", fields["points"]), fields["base_blocks"]
    if not is_count(t) or t == 0 or base.size == 0 or base.size % t:
        raise InvalidSurvey("base must hold base_blocks blocks of equally many numbers.")
    return CyclicDesign.of_arrays(fields["points"], base.reshape(t, -1))
