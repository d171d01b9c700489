"""The resolved survey: canonical JSON that clients, checkers and aggregators read.

How the format evolves: a field is never removed and never changes its meaning. New fields are
optional. Readers reject fields, kinds and versions that they do not know, because a promise that is
half understood is no promise. A change in the meaning of a field needs a new ``format``.

- ``promise``: format, name, domain and context, mechanism with its integers, repeat. Its SHA-256 is
  the fingerprint.
- ``about``: title, text, contact, minimum number of reports, opening and closing time. You may
  correct these.

Reading never chooses a mechanism: it is rebuilt from the integers in the file, even if this version
would choose another one.
"""

from collections.abc import Mapping

from sfumato.contexts import CONTEXT_KINDS, MAX_NESTING, Context, Uniform
from sfumato.domains import domain_of_record
from sfumato.errors import InvalidSurvey

__all__ = ["FORMAT", "require_buildable_codes", "require_buildable_context", "require_size"]

FORMAT = 1

# A code in a resolved survey of k symbols has at most OUTPUTS_PER_SYMBOL · k + FEW_OUTPUTS outputs.
OUTPUTS_PER_SYMBOL = 64
FEW_OUTPUTS = 2**16

# A short record can describe an object that fills the memory. Check its size before building it.


def require_size(symbols: int, limit: int) -> None:
    """Reject a survey with more symbols than its kind of context may have."""
    if symbols > limit:
        raise InvalidSurvey(
            f"a survey may have up to {Context.max_recorded_size:,} symbols, or "
            f"{Uniform.max_recorded_size:,} with a uniform context; this one has {symbols:,}."
        )


def require_buildable_context(record: object, nesting: int = 0) -> None:
    """Reject an untrusted context that would fill the memory, and unions with such a part.

    A ledger skips this check: contexts that a device has answered before must stay readable.
    """
    if not isinstance(record, Mapping) or nesting > MAX_NESTING:
        return  # the reader rejects it before it builds anything
    if "domain" in record:
        kind = CONTEXT_KINDS.get(str(record.get("kind")), Context)
        require_size(domain_of_record(record["domain"]).size, kind.max_recorded_size)
    parts = record.get("parts")
    for part in parts if isinstance(parts, list) else ():
        require_buildable_context(part, nesting + 1)


def require_buildable_codes(record: object, context: object, nesting: int = 0) -> None:
    """Reject codes with far more outputs than the survey has symbols.

    No code of Sfumato has 64 times as many.
    """
    if not isinstance(record, Mapping) or not isinstance(context, Mapping) or nesting > MAX_NESTING:
        return
    limit = OUTPUTS_PER_SYMBOL * domain_of_record(context["domain"]).size + FEW_OUTPUTS
    codes = record.get("codes")
    for code in codes if isinstance(codes, list) else ():
        outputs = code.get("outputs") if isinstance(code, Mapping) else 0
        if isinstance(outputs, int) and outputs > limit:
            raise InvalidSurvey(
                f"a code of this survey may have up to {limit:,} outputs; one has {outputs:,}."
            )
    parts = record.get("parts")
    for part in parts if isinstance(parts, list) else ():
        require_buildable_codes(part, context, nesting + 1)
