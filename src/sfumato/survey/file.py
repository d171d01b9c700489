"""The survey file: TOML that a person writes. Every message names the field and says what would be right."""

import csv
import gzip
import io
import itertools
import tomllib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from sfumato.contexts import Blocks, Context, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.design import mechanism_for
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.partitions import grid_tiles, h3_parents, nearest_places
from sfumato.errors import InvalidSurvey, SfumatoError
from sfumato.mechanisms import Mechanism

__all__ = ["Described", "read_toml"]

Number = Annotated[Any, BeforeValidator(lambda value: _number(value))]
Text = str | int


def _number(value: object) -> object:
    """Numbers stay as they were typed; their range is the business of whoever uses them."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | str):
        raise ValueError("a number")  # noqa: TRY004 - what the schema library turns into a message
    return value


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)


class _Domain(_Section):
    kind: Literal["labels", "range", "grid", "h3"]
    labels: list[Text] | None = None
    file: str | None = None
    other: Text | None = None
    size: int | None = None
    start: int = 0
    south: Number | None = None
    north: Number | None = None
    west: Number | None = None
    east: Number | None = None
    step: Number | None = None
    resolution: int | None = None


class _Column(_Section):
    column: str


class _Context(_Section):
    kind: Literal["uniform", "high-low", "blocks", "metric", "matrix"]
    epsilon: Number | None = None
    sensitive: list[Text] | _Column | None = None
    rows: int | None = None
    columns: int | None = None
    parents: int | None = None
    nearest: str | None = None
    column: str | None = None
    block_of: list[Text] | dict[str, Text] | None = None
    distances: list[list[Number]] | str | None = None
    matrix: list[list[Number]] | str | None = None


class _Mechanism(_Section):
    code: Literal["best", "hadamard", "randomized"] = "best"
    max_bits: int | None = None


class _Repeat(_Section):
    every: str
    distinct: int


class _File(_Section):
    name: str
    title: str = ""
    text: str = ""
    contact: str = ""
    minimum_reports: int = 0
    opens: str = ""
    closes: str = ""
    repeat: Literal["once"] | _Repeat = "once"
    domain: _Domain
    context: _Context
    mechanism: _Mechanism = _Mechanism()


@dataclass(frozen=True)
class Described:
    """What a survey file describes, once its domain is read and its mechanism chosen."""

    name: str
    context: Context
    mechanism: Mechanism
    about: dict[str, Any]


def read_toml(raw: bytes, folder: Path) -> Described:
    """Read a survey file; other files that it names are looked for beside it."""
    try:
        # Decimals stay as they were typed: 0.1 is one tenth.
        data = tomllib.loads(raw.decode("utf-8-sig"), parse_float=_decimal)
    except UnicodeDecodeError:
        raise InvalidSurvey("a survey file must be text in UTF-8.") from None
    except tomllib.TOMLDecodeError as problem:
        raise InvalidSurvey(f"the survey file is not TOML: {problem}.") from None
    except (RecursionError, ValueError, ArithmeticError):
        raise InvalidSurvey(
            "the survey file is not TOML that can be read: it is nested too deeply, or a number is too long."
        ) from None
    try:
        file = _File.model_validate(data)
    except ValidationError as problem:
        raise InvalidSurvey("\n".join(dict.fromkeys(_in_words(error) for error in problem.errors()))) from None
    return _described(file, folder)


def _decimal(text: str) -> Decimal | str:
    """A number as it was typed; one that no decimal can hold stays text, for its field to refuse."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _described(file: _File, folder: Path) -> Described:
    table = _label_table(file.domain, folder)
    domain = _within("domain", lambda: _domain(file.domain, table))
    context = _within("context", lambda: _context(file.context, domain, table, folder))
    choice = file.mechanism
    mechanism = _within("mechanism", lambda: mechanism_for(context, code=choice.code, max_bits=choice.max_bits))
    repeat = file.repeat if isinstance(file.repeat, str) else file.repeat.model_dump()
    about = {name: getattr(file, name) for name in ("title", "text", "contact", "minimum_reports", "opens", "closes")}
    return Described(file.name, context, mechanism, {**about, "repeat": repeat})


# --- domain ----------------------------------------------------------------------------------------------------------


def _domain(given: _Domain, table: Mapping[str, Sequence[str]]) -> Domain:
    if given.kind == "labels":
        _only(given, "domain", ("labels", "file", "other"))
        if (given.labels is None) == (given.file is None):
            raise InvalidSurvey("domain needs either labels or file, not both.")
        return Domain(table["label"] if given.labels is None else given.labels, other=given.other)
    if given.kind == "range":
        _only(given, "domain", ("size", "start"))
        return IntegerDomain(_needed(given.size, "domain.size", "a whole number of symbols"), start=given.start)
    edges = ("south", "north", "west", "east")
    if given.kind == "grid":
        _only(given, "domain", (*edges, "step", "other"))
        values = [_needed(getattr(given, edge), f"domain.{edge}", "degrees") for edge in (*edges, "step")]
        return GridDomain(*values, other=given.other)
    _only(given, "domain", (*edges, "resolution", "file", "other"))
    if given.file is not None:
        return H3Domain(table["label"], other=given.other)
    box = {edge: _degrees(getattr(given, edge), f"domain.{edge}") for edge in edges}
    resolution = _needed(given.resolution, "domain.resolution", "0 to 15, or file = a list of cells")
    return H3Domain.box(resolution, other=given.other, **box)


def _degrees(value: Any, name: str) -> float:  # noqa: ANN401
    try:
        return float(_needed(value, name, "degrees"))
    except ValueError:
        raise InvalidSurvey(f"{name} must be a number of degrees; found text.") from None


def _label_table(given: _Domain, folder: Path) -> Mapping[str, Sequence[str]]:
    """The columns of the labels file, if there is one: label, and whatever else it holds."""
    if given.file is None:
        return {}
    table = _read_csv(folder / given.file, "domain.file")
    if "label" not in table:
        raise InvalidSurvey(f"domain.file: {given.file} must have a column named label; found {sorted(table)}.")
    return table


# --- context ---------------------------------------------------------------------------------------------------------


def _context(given: _Context, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path) -> Context:
    if given.kind == "matrix":
        _only(given, "context", ("matrix",))
        matrix = _needed(given.matrix, "context.matrix", "rows of numbers, or the name of a CSV file")
        return PrivacyMatrix(_matrix(matrix, folder, "context.matrix"), domain=domain)
    epsilon = _needed(given.epsilon, "context.epsilon", "a number above 0 and at most 40, e.g. 1.0")
    if given.kind == "uniform":
        _only(given, "context", ("epsilon",))
        return Uniform(domain, epsilon)
    if given.kind == "high-low":
        _only(given, "context", ("epsilon", "sensitive"))
        return HighLow(domain, _sensitive(given.sensitive, domain, table), epsilon)
    if given.kind == "metric":
        _only(given, "context", ("epsilon", "distances"))
        distances = _needed(given.distances, "context.distances", "rows of numbers, or the name of a CSV file")
        return Metric(_matrix(distances, folder, "context.distances"), epsilon, domain=domain)
    _only(given, "context", ("epsilon", "rows", "columns", "parents", "nearest", "column", "block_of"))
    return Blocks(_block_of(given, domain, table, folder), epsilon, domain=domain)


def _sensitive(given: list[Text] | _Column | None, domain: Domain, table: Mapping[str, Sequence[str]]) -> list[Any]:
    if given is None:
        raise InvalidSurvey('context.sensitive is missing: write a list of labels, or { column = "sensitive" }.')
    if isinstance(given, list):
        return given
    marks = _column(table, given.column, "context.sensitive")
    yes, no = {"1", "true", "yes"}, {"0", "false", "no", ""}
    strange = [mark for mark in marks if mark.lower() not in yes | no]
    if strange:
        raise InvalidSurvey(f"context.sensitive: column {given.column!r} must hold yes or no; found {strange[0]!r}.")
    return [label for label, mark in zip(table["label"], marks, strict=True) if mark.lower() in yes]


def _block_of(given: _Context, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path) -> Any:  # noqa: ANN401
    ways = {
        "rows and columns": given.rows is not None or given.columns is not None,
        "parents": given.parents is not None,
        "nearest": given.nearest is not None,
        "column": given.column is not None,
        "block_of": given.block_of is not None,
    }
    chosen = [way for way, is_given in ways.items() if is_given]
    if len(chosen) != 1:
        raise InvalidSurvey(f"context needs one way to make blocks ({', '.join(ways)}); found {chosen or 'none'}.")
    if given.block_of is not None:
        return given.block_of
    if given.column is not None:
        blocks = list(_column(table, given.column, "context.column"))
        # A symbol for `other` is not in the file: it gets a block of its own, named as no block of the file is.
        own = next(name for name in map(str, itertools.count()) if name not in blocks)
        return blocks + [own] * (domain.size - len(blocks))
    if given.parents is not None:
        if not isinstance(domain, H3Domain):
            raise InvalidSurvey("context.parents needs a domain of kind h3.")
        return h3_parents(domain, given.parents)
    if given.nearest is not None:
        if not isinstance(domain, GridDomain | H3Domain):
            raise InvalidSurvey("context.nearest needs a domain of kind grid or h3.")
        return nearest_places(domain, *_places(folder / given.nearest))
    if not isinstance(domain, GridDomain) or given.rows is None or given.columns is None:
        raise InvalidSurvey("context.rows and context.columns go together, with a domain of kind grid.")
    return grid_tiles(domain, given.rows, given.columns)


def _places(path: Path) -> tuple[list[float], list[float]]:
    table = _read_csv(path, "context.nearest")
    try:
        return [float(value) for value in table["latitude"]], [float(value) for value in table["longitude"]]
    except (KeyError, ValueError):
        raise InvalidSurvey(
            f"context.nearest: {path.name} must have columns latitude and longitude, in degrees."
        ) from None


def _matrix(given: list[list[Number]] | str, folder: Path, name: str) -> list[list[Any]]:
    """Rows of numbers, inline or from a CSV file without a header."""
    if isinstance(given, list):
        return given
    with _opened(folder / given, name) as lines:
        try:
            return [row for row in csv.reader(lines) if row]
        except csv.Error as problem:
            raise InvalidSurvey(f"{name}: {given} is not CSV: {problem}.") from None


# --- reading ---------------------------------------------------------------------------------------------------------


def _column(table: Mapping[str, Sequence[str]], column: str, name: str) -> Sequence[str]:
    if column not in table:
        found = f"found {sorted(table)}" if table else "the domain is not read from a file"
        raise InvalidSurvey(f"{name}: there is no column {column!r} in domain.file; {found}.")
    return table[column]


def _read_csv(path: Path, name: str) -> dict[str, list[str]]:
    with _opened(path, name) as lines:
        reader = csv.DictReader(lines, strict=True)
        try:
            rows = list(reader)
        except csv.Error as problem:
            raise InvalidSurvey(f"{name}: {path.name} is not CSV: {problem}.") from None
        header = reader.fieldnames or []
    ragged = next((i for i, row in enumerate(rows) if None in row or None in row.values()), None)
    if not rows or len(set(header)) != len(header) or ragged is not None:
        where = f"; line {ragged + 2} has another number of columns" if ragged is not None else ""
        raise InvalidSurvey(f"{name}: {path.name} must have a header of distinct names and at least one row{where}.")
    return {column: [row[column] for row in rows] for column in header}


class _opened:  # noqa: N801 - reads as a verb where it is used
    """A text file beside the survey, gzip or not, byte-order mark or not."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name

    def __enter__(self) -> Iterator[str]:
        try:
            raw = self._path.read_bytes()
            raw = gzip.decompress(raw) if self._path.suffix == ".gz" else raw
            return io.StringIO(raw.decode("utf-8-sig"), newline="")
        except UnicodeDecodeError:
            raise InvalidSurvey(f"{self._name}: {self._path.name} must be text in UTF-8.") from None
        except OSError as problem:
            reason = problem.strerror or "it is damaged"
            raise InvalidSurvey(f"{self._name}: {self._path.name} cannot be read: {reason}.") from None
        except (EOFError, ValueError, zlib.error):
            shown = self._path.name.replace("\0", "")
            raise InvalidSurvey(f"{self._name}: {shown} cannot be read: it is damaged.") from None

    def __exit__(self, *_: object) -> None:
        return None


def _needed(value: Any, name: str, wanted: str) -> Any:  # noqa: ANN401
    if value is None:
        raise InvalidSurvey(f"{name} is missing: write {wanted}.")
    return value


def _only(section: _Section, name: str, allowed: Sequence[str]) -> None:
    kind = getattr(section, "kind", "")
    strange = sorted(section.model_fields_set - {"kind", *allowed})
    if strange:
        raise InvalidSurvey(f"{name}.{strange[0]} means nothing for kind = {kind!r}; allowed: {', '.join(allowed)}.")


def _within(section: str, make: Any) -> Any:  # noqa: ANN401
    """Errors of the rooms below, with the section of the file in front."""
    try:
        return make()
    except InvalidSurvey:
        raise
    except SfumatoError as problem:
        raise InvalidSurvey(f"{section}: {problem}") from problem


_WANTED = {
    "int_type": "a whole number",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "value_error": "a number",
}
_FOUND = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    Decimal: "a decimal number",
    list: "a list",
    dict: "a table",
}


def _in_words(error: Any) -> str:  # noqa: ANN401
    """A message of the schema in the words of the file."""
    path: list[str] = []
    model: Any = _File
    for part in error["loc"]:  # what follows the last field of the file are the schema's own alternatives
        if not isinstance(part, str) or model is None:
            break
        path.append(part)
        model = {"domain": _Domain, "context": _Context, "mechanism": _Mechanism}.get(part) if model is _File else None
    field, kind = ".".join(path), error["type"]
    if kind == "missing":
        deeper = ".".join(
            str(part) for part in error["loc"] if isinstance(part, str) and part.isidentifier() and part[0] != "_"
        )
        return f"{deeper if field == 'repeat' else field} is missing."
    if kind == "extra_forbidden":
        return f"{field} is not a field of a survey file; check its spelling."
    if kind == "literal_error" and field != "repeat":
        return f"{field} must be one of {error['ctx']['expected']}; found {error['input']!r}."
    wanted = _UNIONS.get(field) or _WANTED.get(kind)
    found = next((words for of, words in _FOUND.items() if isinstance(error["input"], of)), "something else")
    return f"{field} must be {wanted or 'something else'}; found {found}."


_UNIONS = {
    "context.sensitive": 'a list of labels, or { column = "…" }',
    "context.block_of": "a list of blocks in the order of labels, or a table from label to block",
    "context.distances": "rows of numbers, or the name of a CSV file",
    "context.matrix": "rows of numbers, or the name of a CSV file",
    "domain.labels": "a list of text or whole numbers",
    "repeat": '"once", or { every = "week", distinct = 3 }',
}
