"""The survey file: TOML that a person writes. Every message names the field and says what would be right."""

import csv
import itertools
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sfumato.contexts import Blocks, Context, HighLow, Metric, PrivacyMatrix, Uniform
from sfumato.design import mechanism_for
from sfumato.domains import Domain, GridDomain, H3Domain, IntegerDomain
from sfumato.domains.partitions import grid_tiles, h3_parents, nearest_places
from sfumato.errors import InvalidSurvey, SfumatoError
from sfumato.mechanisms import Mechanism
from sfumato.survey.beside import column_of, opened, read_columns
from sfumato.survey.schema import (
    ColumnFields,
    ContextFields,
    DomainFields,
    FileFields,
    Number,
    Section,
    Text,
    in_words,
)

__all__ = ["Described", "read_toml"]


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
        file = FileFields.model_validate(data)
    except ValidationError as problem:
        raise InvalidSurvey("\n".join(dict.fromkeys(in_words(error) for error in problem.errors()))) from None
    return _described(file, folder)


def _decimal(text: str) -> Decimal | str:
    """A number as it was typed; one that no decimal can hold stays text, for its field to refuse."""
    try:
        return Decimal(text)
    except InvalidOperation:
        return text


def _described(file: FileFields, folder: Path) -> Described:
    table = _label_table(file.domain, folder)
    domain = _within("domain", lambda: _domain(file.domain, table))
    context = _within("context", lambda: _context(file.context, domain, table, folder))
    choice = file.mechanism
    mechanism = _within("mechanism", lambda: mechanism_for(context, code=choice.code, max_bits=choice.max_bits))
    repeat = file.repeat if isinstance(file.repeat, str) else file.repeat.model_dump()
    about = {name: getattr(file, name) for name in ("title", "text", "contact", "minimum_reports", "opens", "closes")}
    return Described(file.name, context, mechanism, {**about, "repeat": repeat})


# --- domain ----------------------------------------------------------------------------------------------------------


def _domain(given: DomainFields, table: Mapping[str, Sequence[str]]) -> Domain:
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


def _label_table(given: DomainFields, folder: Path) -> Mapping[str, Sequence[str]]:
    """The columns of the labels file, if there is one: label, and whatever else it holds."""
    if given.file is None:
        return {}
    table = read_columns(folder / given.file, "domain.file")
    if "label" not in table:
        raise InvalidSurvey(f"domain.file: {given.file} must have a column named label; found {sorted(table)}.")
    return table


# --- context ---------------------------------------------------------------------------------------------------------


def _context(given: ContextFields, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path) -> Context:
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
        return HighLow(domain, _sensitive(given.sensitive, table), epsilon)
    if given.kind == "metric":
        _only(given, "context", ("epsilon", "distances"))
        distances = _needed(given.distances, "context.distances", "rows of numbers, or the name of a CSV file")
        return Metric(_matrix(distances, folder, "context.distances"), epsilon, domain=domain)
    _only(given, "context", ("epsilon", "rows", "columns", "parents", "nearest", "column", "block_of"))
    return Blocks(_block_of(given, domain, table, folder), epsilon, domain=domain)


def _sensitive(given: list[Text] | ColumnFields | None, table: Mapping[str, Sequence[str]]) -> list[Any]:
    if given is None:
        raise InvalidSurvey('context.sensitive is missing: write a list of labels, or { column = "sensitive" }.')
    if isinstance(given, list):
        return given
    marks = column_of(table, given.column, "context.sensitive")
    yes, no = {"1", "true", "yes"}, {"0", "false", "no", ""}
    strange = [mark for mark in marks if mark.lower() not in yes | no]
    if strange:
        raise InvalidSurvey(f"context.sensitive: column {given.column!r} must hold yes or no; found {strange[0]!r}.")
    return [label for label, mark in zip(table["label"], marks, strict=True) if mark.lower() in yes]


def _block_of(given: ContextFields, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path) -> Any:  # noqa: ANN401
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
        blocks = list(column_of(table, given.column, "context.column"))
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
    table = read_columns(path, "context.nearest")
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
    with opened(folder / given, name) as lines:
        try:
            return [row for row in csv.reader(lines) if row]
        except csv.Error as problem:
            raise InvalidSurvey(f"{name}: {given} is not CSV: {problem}.") from None


def _needed(value: Any, name: str, wanted: str) -> Any:  # noqa: ANN401
    if value is None:
        raise InvalidSurvey(f"{name} is missing: write {wanted}.")
    return value


def _only(section: Section, name: str, allowed: Sequence[str]) -> None:
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
