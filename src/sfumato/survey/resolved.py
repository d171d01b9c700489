"""The resolved survey: canonical JSON that clients, checkers and aggregators read.

- ``promise``: the format, the name, the context with its domain, the mechanism as integers, and
  ``repeat``. The SHA-256 of the promise is the survey's fingerprint.
- ``about``: the title, text, contact, minimum number of reports, and opening and closing times.
  Correcting them does not change the fingerprint.

Within one ``format``, no field is ever removed or changes its meaning. New fields are optional.
Readers reject unknown fields, kinds and versions, because they must not rely on a promise that they
only partly understand.

Reading a resolved survey never chooses a mechanism: the mechanism is rebuilt from the integers in
the file, even if this version of Sfumato would choose a different one.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from sfumato.contexts import CONTEXT_KINDS, MAX_NESTING, Context, Uniform
from sfumato.domains import domain_from_record
from sfumato.errors import InvalidSurvey, WrongSurvey
from sfumato.foundation.canonical import Json, canonical_bytes, fingerprint
from sfumato.foundation.formatting import printable

_MAX_FILE_BYTES = 2**28

# A code in a resolved survey of k symbols has at most
# MAX_OUTPUTS_PER_SYMBOL · k + EXTRA_OUTPUTS outputs.
MAX_OUTPUTS_PER_SYMBOL = 64
EXTRA_OUTPUTS = 2**16


def read_survey_file(path: Path) -> bytes:
    """Return the content of a TOML or JSON survey file; reject files over 256 MiB."""
    name = printable(path.name)
    if path.is_dir():
        raise InvalidSurvey(f"{printable(str(path))} is a folder. Choose a survey file in it.")
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise InvalidSurvey(f"{name} is not a survey: it is larger than 256 MiB.")
        return path.read_bytes()
    except FileNotFoundError:
        raise InvalidSurvey(
            f"{name} cannot be read: there is no such file. Check the path, or run sfumato init to "
            "write a survey file."
        ) from None
    except OSError as problem:
        raise InvalidSurvey(f"{name} cannot be read: {problem.strerror}.") from None


def parse_resolved(raw: bytes) -> Json:
    """Parse a resolved survey; accept only canonical JSON."""
    try:
        data: Json = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        raise InvalidSurvey("a resolved survey must be UTF-8 JSON.") from None
    try:
        canonical = canonical_bytes(data)
    except (ValueError, TypeError, RecursionError):
        canonical = b""  # canonical JSON cannot represent this data
    require_canonical(raw, canonical)
    return data


def require_canonical(raw: bytes, canonical: bytes) -> None:
    """Reject a file that is not in canonical form; allow a trailing newline."""
    if not canonical or raw not in (canonical, canonical + b"\n"):
        raise InvalidSurvey("the resolved survey is not in canonical form. Resolve it again.")


def require_pinned(data: Json, pinned_fingerprint: str) -> None:
    """Reject a survey whose fingerprint is not the pinned one."""
    promise = data.get("promise") if isinstance(data, Mapping) else None
    actual = fingerprint(promise)
    if actual != pinned_fingerprint:
        raise WrongSurvey(
            f"survey {actual[:12]}… is not the pinned one ({pinned_fingerprint[:12]}…): it makes a "
            "different promise. Do not answer it; contact the survey's author."
        )


# A short record can describe an object that would exhaust memory, so check the size of each object
# before building it.


def require_max_size(symbol_count: int, max_size: int) -> None:
    """Reject a survey with more than ``max_size`` symbols, the maximum for its kind of context."""
    if symbol_count > max_size:
        raise InvalidSurvey(
            f"a survey may have up to {Context.max_recorded_size:,} symbols, or "
            f"{Uniform.max_recorded_size:,} with a uniform context; this one has {symbol_count:,}."
        )


def require_buildable_context(record: object, nesting: int = 0) -> None:
    """Reject an untrusted context that would exhaust memory, or that has a part that would.

    A ledger skips this check, because the contexts of surveys that a device has already answered
    must stay readable.
    """
    if not isinstance(record, Mapping) or nesting > MAX_NESTING:
        return  # parsing rejects such a record later, before anything is built
    if "domain" in record:
        kind = CONTEXT_KINDS.get(str(record.get("kind")), Context)
        require_max_size(domain_from_record(record["domain"]).size, kind.max_recorded_size)
    for part in _list_field(record, "parts"):
        require_buildable_context(part, nesting + 1)


def require_buildable_codes(
    mechanism_record: object, context_record: object, nesting: int = 0
) -> None:
    """Reject codes with far more outputs than the survey has symbols.

    Codes that Sfumato builds have far fewer outputs than this check allows.
    """
    if (
        not isinstance(mechanism_record, Mapping)
        or not isinstance(context_record, Mapping)
        or nesting > MAX_NESTING
    ):
        return
    symbol_count = domain_from_record(context_record["domain"]).size
    max_outputs = MAX_OUTPUTS_PER_SYMBOL * symbol_count + EXTRA_OUTPUTS
    for code in _list_field(mechanism_record, "codes"):
        outputs = code.get("outputs") if isinstance(code, Mapping) else 0
        if isinstance(outputs, int) and outputs > max_outputs:
            raise InvalidSurvey(
                f"a code in this survey may have up to {max_outputs:,} outputs; one has "
                f"{outputs:,}."
            )
    for part in _list_field(mechanism_record, "parts"):
        require_buildable_codes(part, context_record, nesting + 1)


def _list_field(record: Mapping[str, object], name: str) -> list[object]:
    """Return a field of an untrusted record, or an empty list if the field is not a list."""
    items = record.get(name)
    return items if isinstance(items, list) else []
