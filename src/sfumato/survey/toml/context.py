"""Read and write the context section of a survey file."""

import itertools
from collections.abc import Callable, Hashable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from sfumato.contexts import (
    Blocks,
    Context,
    ContextUnion,
    HighLow,
    Metric,
    PrivacyMatrix,
    Tiers,
    Uniform,
    union,
)
from sfumato.domains import Domain, GridDomain, H3Domain
from sfumato.domains.partitions import grid_tiles, h3_parents, nearest_places
from sfumato.errors import InvalidSurvey
from sfumato.foundation.arrays import Booleans, Symbols
from sfumato.foundation.canonical import decimal_text
from sfumato.randomness import Epsilon
from sfumato.survey.toml.companion_files import get_column, read_columns, read_domain_matrix
from sfumato.survey.toml.schema import (
    Number,
    Section,
    TextOrInteger,
    no_toml_form,
    require_only,
    require_value,
    toml_number,
)

_Table = Mapping[str, Sequence[str]]
"""The columns of the labels file, by name; empty if there is no labels file."""

_BLOCK_FIELDS = ("rows", "columns", "parents", "nearest", "column", "block_of")
_YES = {"1", "true", "yes"}
_NO = {"0", "false", "no", ""}


_FILE_EXAMPLE = '[domain]\nkind = "labels"\nfile = "places.csv"\n'
_LABELS_EXAMPLE = '[domain]\nkind = "labels"\nlabels = ["park", "café", "clinic"]\n'
_TILES_EXAMPLE = """[domain]
kind = "grid"
south = 47.0
north = 48.0
west = 8.0
east = 10.0
step = 0.5
[context]
kind = "blocks"
epsilon = 1.0
rows = 1
columns = 2
"""


class ColumnFields(Section):
    """A column of the labels file, instead of a list of labels."""

    column: str = Field(
        description="The column of `domain.file` that contains yes for sensitive labels, and no "
        "for the others. It may also contain true or false, or 1 or 0.",
        examples=[
            _FILE_EXAMPLE + '[context]\nkind = "high-low"\nepsilon = 1.0\n'
            'sensitive = { column = "private" }\n'
        ],
    )


class ContextFields(Section):
    """The fields of ``[context]``. ``kind`` determines which of the others apply."""

    kind: Literal["uniform", "high-low", "blocks", "tiers", "metric", "matrix"] = Field(
        description="What is promised: the same for every pair of labels, something for sensitive "
        "labels only, something within blocks, something for each tier of sensitivity, more for "
        "labels at a small distance, or any matrix.",
        examples=['[context]\nkind = "uniform"\nepsilon = 1.0\n'],
    )
    epsilon: dict[str, Number] | list[Number] | Number | None = Field(
        default=None,
        description="The ε of the promise, above 0 and at most 40: smaller values protect answers "
        "better. `blocks` may have one for each block. Required for `uniform`, `high-low`, "
        "`blocks` and `metric`.",
        examples=[
            '[context]\nkind = "uniform"\nepsilon = 0.5\n',
            '[domain]\nkind = "labels"\nlabels = ["park", "zoo", "café", "bar"]\n'
            '[context]\nkind = "blocks"\nepsilon = { outside = 2.0, inside = 0.5 }\n'
            'block_of = ["outside", "outside", "inside", "inside"]\n',
        ],
    )
    epsilons: dict[str, Number] | list[Number] | None = Field(
        default=None,
        description='The ε of each tier, above 0 and at most 40; `"inf"` promises nothing. '
        "Required for `tiers`.",
        examples=[
            _LABELS_EXAMPLE + '[context]\nkind = "tiers"\ntier_of = ["low", "low", "high"]\n'
            "epsilons = { low = 4.0, high = 0.5 }\n"
        ],
    )
    across: Number | None = Field(
        default=None,
        description="The ε between labels of different blocks. Without it, a report may reveal "
        "the block.",
        examples=[
            _LABELS_EXAMPLE + '[context]\nkind = "blocks"\nepsilon = 1.0\n'
            'block_of = ["outside", "inside", "inside"]\nacross = 3.0\n'
        ],
    )
    sensitive: list[TextOrInteger] | ColumnFields | None = Field(
        default=None,
        description="The sensitive labels. With `blocks`, only they are protected within their "
        "block. Required for `high-low`.",
        examples=[
            _LABELS_EXAMPLE + '[context]\nkind = "high-low"\nepsilon = 1.0\n'
            'sensitive = ["clinic"]\n'
        ],
    )
    rows: int | None = Field(
        default=None,
        description="The number of rows of tiles. Each tile of a `grid` domain is a block. Set it "
        "together with `columns`.",
        examples=[_TILES_EXAMPLE],
    )
    columns: int | None = Field(
        default=None,
        description="The number of columns of tiles. Each tile of a `grid` domain is a block. Set "
        "it together with `rows`.",
        examples=[_TILES_EXAMPLE],
    )
    parents: int | None = Field(
        default=None,
        description="A resolution coarser than that of an `h3` domain. Cells with the same parent "
        "at this resolution are a block.",
        examples=[
            '[domain]\nkind = "h3"\nsouth = 47.3\nnorth = 47.5\nwest = 8.4\neast = 8.6\n'
            'resolution = 6\n[context]\nkind = "blocks"\nepsilon = 1.0\nparents = 5\n'
        ],
    )
    nearest: str | None = Field(
        default=None,
        description="The name of a CSV file of places, with columns `latitude` and `longitude`. "
        "Cells of a `grid` or `h3` domain that are nearest to the same place are a block.",
        examples=[
            '[domain]\nkind = "grid"\nsouth = 47.0\nnorth = 48.0\nwest = 8.0\neast = 9.0\n'
            'step = 0.5\n[context]\nkind = "blocks"\nepsilon = 1.0\nnearest = "towns.csv"\n'
        ],
    )
    column: str | None = Field(
        default=None,
        description="The column of `domain.file` that contains the block of each label, or its "
        "tier.",
        examples=[
            _FILE_EXAMPLE + '[context]\nkind = "blocks"\nepsilon = 1.0\ncolumn = "district"\n'
        ],
    )
    block_of: list[TextOrInteger] | dict[str, TextOrInteger] | None = Field(
        default=None,
        description="The block of each label. A report may reveal the block, but hides the label "
        "within it.",
        examples=[
            '[domain]\nkind = "labels"\nlabels = ["park", "zoo", "café", "bar"]\n'
            '[context]\nkind = "blocks"\nepsilon = 1.0\n'
            'block_of = ["outside", "outside", "inside", "inside"]\n'
        ],
    )
    tier_of: list[TextOrInteger] | dict[str, TextOrInteger] | None = Field(
        default=None,
        description="The tier of each label. Set either `tier_of` or `column`.",
        examples=[
            _LABELS_EXAMPLE + '[context]\nkind = "tiers"\n'
            'tier_of = { park = "low", "café" = "low", clinic = "high" }\n'
            "epsilons = { low = 4.0, high = 0.5 }\n"
        ],
    )
    distances: list[list[Number]] | str | None = Field(
        default=None,
        description="The distance between each pair of labels, a symmetric matrix. The promise "
        "for a pair is `epsilon` times its distance. Required for `metric`.",
        examples=['[context]\nkind = "metric"\nepsilon = 0.5\ndistances = [[0, 2], [2, 0]]\n'],
    )
    matrix: list[list[Number]] | str | None = Field(
        default=None,
        description="The ε of each pair of labels: how much a report may speak for the label of "
        'the row against that of the column. `"inf"` promises nothing. Required for `matrix`.',
        examples=[
            '[context]\nkind = "matrix"\nmatrix = [[0, "inf"], [1.0, 0]]\n',
            '[context]\nkind = "matrix"\nmatrix = "promise.csv"\n',
        ],
    )


CONTEXT_FIELDS_BY_KIND: Mapping[str, Sequence[str]] = {
    "uniform": ("epsilon",),
    "high-low": ("epsilon", "sensitive"),
    "blocks": ("epsilon", "across", "sensitive", *_BLOCK_FIELDS),
    "tiers": ("tier_of", "column", "epsilons"),
    "metric": ("epsilon", "distances"),
    "matrix": ("matrix",),
}
"""For each kind of context, the fields that apply."""

EXPECTED_IN_CONTEXT = {
    "context.epsilon": "a number; for blocks also a table of block = number, or a list of numbers",
    "context.epsilons": "a table of tier = number, or a list of numbers in tier order",
    "context.sensitive": 'a list of labels, or { column = "…" }',
    "context.block_of": "a list of blocks in label order, or a table of label = block",
    "context.tier_of": "a list of tiers in label order, or a table of label = tier",
    "context.distances": "rows of numbers, or the name of a CSV file",
    "context.matrix": "rows of numbers, or the name of a CSV file",
}
"""For each field that accepts several types, what it must be."""


def read_context(fields: ContextFields, domain: Domain, table: _Table, folder: Path) -> Context:
    """Build the context that the fields describe."""
    return _READERS[fields.kind](fields, domain, table, folder)


def _read_uniform(fields: ContextFields, domain: Domain, table: _Table, folder: Path) -> Uniform:
    epsilon = _single_epsilon(fields)
    require_only(fields, "context", CONTEXT_FIELDS_BY_KIND[fields.kind])
    return Uniform(domain, epsilon)


def _read_high_low(fields: ContextFields, domain: Domain, table: _Table, folder: Path) -> HighLow:
    epsilon = _single_epsilon(fields)
    require_only(fields, "context", CONTEXT_FIELDS_BY_KIND[fields.kind])
    return HighLow(domain, _sensitive_labels(fields.sensitive, table), epsilon)


def _read_metric(fields: ContextFields, domain: Domain, table: _Table, folder: Path) -> Metric:
    epsilon = _single_epsilon(fields)
    require_only(fields, "context", CONTEXT_FIELDS_BY_KIND[fields.kind])
    rows = _read_matrix(fields.distances, "context.distances", domain, folder)
    return Metric(rows, epsilon, domain=domain)


def _read_privacy_matrix(
    fields: ContextFields, domain: Domain, table: _Table, folder: Path
) -> PrivacyMatrix:
    require_only(fields, "context", CONTEXT_FIELDS_BY_KIND[fields.kind])
    rows = _read_matrix(fields.matrix, "context.matrix", domain, folder)
    return PrivacyMatrix(rows, domain=domain)


def _read_tiers(fields: ContextFields, domain: Domain, table: _Table, folder: Path) -> Tiers:
    require_only(fields, "context", CONTEXT_FIELDS_BY_KIND[fields.kind])
    epsilons = require_value(
        fields.epsilons,
        "context.epsilons",
        "a number for each tier, such as { high = 0.5, low = 4 }",
    )
    if (fields.tier_of is None) == (fields.column is None):
        raise InvalidSurvey("context needs either tier_of or column, not both.")
    tier_of: Any = fields.tier_of
    if fields.column is not None:
        tier_of = list(get_column(table, fields.column, "context.column"))
        if domain.size != len(tier_of):
            raise InvalidSurvey(
                "context.column: the `other` label is not in domain.file. Add it there, with a "
                "tier."
            )
    return Tiers(tier_of, _key_by_name(epsilons, tier_of), domain=domain)


def _read_blocks(fields: ContextFields, domain: Domain, table: _Table, folder: Path) -> Context:
    _require_epsilon(fields)
    require_only(fields, "context", CONTEXT_FIELDS_BY_KIND[fields.kind])
    block_of = _read_block_of(fields, domain, table, folder)
    epsilon = _block_epsilons(fields, block_of, domain)
    across = "inf" if fields.across is None else fields.across
    blocks = Blocks(block_of, epsilon, across=across, domain=domain)
    if fields.sensitive is None:
        return blocks
    if fields.across is not None:
        raise InvalidSurvey("context cannot have both across and sensitive. Remove one of them.")
    high_low = HighLow(domain, _sensitive_labels(fields.sensitive, table), 1)
    return _high_low_in_blocks(blocks, high_low.is_sensitive)


_READERS: Mapping[str, Callable[[ContextFields, Domain, _Table, Path], Context]] = {
    "uniform": _read_uniform,
    "high-low": _read_high_low,
    "blocks": _read_blocks,
    "tiers": _read_tiers,
    "metric": _read_metric,
    "matrix": _read_privacy_matrix,
}


# --- write ----------------------------------------------------------------------------------------


def write_context(context: Context) -> dict[str, Any]:
    """Return the fields of ``[context]`` that describe the context.

    Raise ``InvalidSurvey`` if the context has no form in TOML.
    """
    if context.kind not in _WRITERS:
        raise no_toml_form(f"a context of kind {context.kind}")
    return _WRITERS[context.kind](context)


def _write_uniform(context: Uniform) -> dict[str, Any]:
    return {"kind": "uniform", "epsilon": _toml_epsilon(context.uniform_epsilon)}


def _write_high_low(context: HighLow) -> dict[str, Any]:
    return {
        "kind": "high-low",
        "epsilon": _toml_epsilon(context.exact_inside),
        "sensitive": _labels_at(context, context.sensitive),
    }


def _write_metric(context: Metric) -> dict[str, Any]:
    record: Any = context.to_record()
    return {
        "kind": "metric",
        "epsilon": toml_number(record["epsilon"]),
        "distances": _toml_rows(record["distances"]),
    }


def _write_privacy_matrix(context: PrivacyMatrix) -> dict[str, Any]:
    record: Any = context.to_record()
    return {"kind": "matrix", "matrix": _toml_rows(record["matrix"])}


def _write_tiers(context: Tiers) -> dict[str, Any]:
    names = _distinct_names(context.tier_names)
    return {
        "kind": "tiers",
        "tier_of": [names[tier] for tier in context.tier_of.tolist()],
        "epsilons": _epsilon_by_name(names, context.exact_epsilons),
    }


def _write_blocks(context: Blocks) -> dict[str, Any]:
    fields = _block_fields(context.block_names, context.block_of, context.exact_epsilons)
    if isinstance(context.exact_across, float):
        return fields
    return {**fields, "across": _toml_epsilon(context.exact_across)}


def _write_union(context: ContextUnion) -> dict[str, Any]:
    """Return the fields of blocks in which only sensitive labels are protected.

    Other unions have no form in TOML.
    """
    epsilons: list[Epsilon | None] = []
    sensitive: list[int] = []
    for part, symbols in zip(context.parts, context.members(), strict=True):
        epsilon, is_sensitive = _block_promise(part)
        epsilons.append(epsilon)
        sensitive.extend(symbols[is_sensitive].tolist())
    # A block without sensitive labels may have any ε. Choose one that makes the file short.
    filler = next(epsilon for epsilon in (*epsilons, np.inf) if epsilon is not None)
    known_epsilons = [filler if epsilon is None else epsilon for epsilon in epsilons]
    fields = _block_fields(context.block_names, context.block_of, known_epsilons)
    return {**fields, "sensitive": _labels_at(context, np.array(sorted(sensitive), dtype=int))}


_WRITERS: Mapping[str, Callable[[Any], dict[str, Any]]] = {
    "uniform": _write_uniform,
    "high-low": _write_high_low,
    "blocks": _write_blocks,
    "tiers": _write_tiers,
    "metric": _write_metric,
    "matrix": _write_privacy_matrix,
    "union": _write_union,
}


def _block_promise(part: Context) -> tuple[Epsilon | None, Booleans]:
    """Return the ε of a block, or ``None`` if it has no promise, and which symbols it protects."""
    if part.as_high_low is not None:
        return part.as_high_low.exact_inside, part.as_high_low.is_sensitive
    if part.uniform_epsilon is None:
        raise no_toml_form("a union of contexts that are neither uniform nor high-low")
    if isinstance(part.uniform_epsilon, float):
        return None, np.zeros(part.size, dtype=np.bool_)
    return part.uniform_epsilon, np.ones(part.size, dtype=np.bool_)


def _block_fields(
    block_names: Sequence[Hashable], block_of: Symbols, epsilons: Sequence[Epsilon]
) -> dict[str, Any]:
    names = _distinct_names(block_names)
    epsilon: Any = _toml_epsilon(epsilons[0])
    if len(set(epsilons)) > 1:
        epsilon = _epsilon_by_name(names, epsilons)
    return {
        "kind": "blocks",
        "block_of": [names[block] for block in block_of.tolist()],
        "epsilon": epsilon,
    }


def _distinct_names(names: Sequence[Hashable]) -> Sequence[Hashable]:
    """Return the names of blocks or tiers, or numbers if two names are the same text.

    The keys of a TOML table are text, so the names 1 and "1" could not be told apart.
    """
    if len(set(map(str, names))) < len(names):
        return range(len(names))
    return names


def _epsilon_by_name(names: Sequence[Hashable], epsilons: Sequence[Epsilon]) -> dict[str, Any]:
    pairs = zip(names, epsilons, strict=True)
    return {str(name): _toml_epsilon(epsilon) for name, epsilon in pairs}


def _toml_epsilon(epsilon: Epsilon) -> Decimal | str:
    return toml_number(decimal_text(epsilon))


def _toml_rows(rows: Sequence[Sequence[str]]) -> list[list[Decimal | str]]:
    return [[toml_number(text) for text in row] for row in rows]


def _labels_at(context: Context, symbols: Symbols) -> list[TextOrInteger]:
    return [context.domain.labels[symbol] for symbol in symbols.tolist()]


# --- parts of the readers -------------------------------------------------------------------------


def _require_epsilon(fields: ContextFields) -> Any:  # noqa: ANN401
    return require_value(
        fields.epsilon, "context.epsilon", "a number above 0 and at most 40, such as 1.0"
    )


def _single_epsilon(fields: ContextFields) -> Any:  # noqa: ANN401
    epsilon = _require_epsilon(fields)
    if isinstance(epsilon, list | dict):
        raise InvalidSurvey(
            f"context.epsilon must be a number for kind = {fields.kind!r}; only blocks may have "
            "several."
        )
    return epsilon


def _high_low_in_blocks(blocks: Blocks, is_sensitive: Booleans) -> Context:
    """Return a union of high-low contexts, one per block.

    A block without sensitive symbols is unprotected.
    """
    parts: list[Context] = []
    for block, epsilon in enumerate(blocks.exact_epsilons):
        sensitive_mask = is_sensitive[blocks.block_of == block]
        if sensitive_mask.all():
            parts.append(Uniform(sensitive_mask.size, epsilon))
        elif sensitive_mask.any():
            parts.append(
                HighLow(sensitive_mask.size, np.flatnonzero(sensitive_mask).tolist(), epsilon)
            )
        else:
            parts.append(Uniform(sensitive_mask.size, "inf"))
    return union(parts, block_of=blocks.block_of, domain=blocks.domain)


def _block_epsilons(fields: ContextFields, block_of: Any, domain: Domain) -> Any:  # noqa: ANN401
    """Return a single ε for all blocks, or one ε for each block."""
    epsilons = _key_by_name(fields.epsilon, block_of)
    if isinstance(epsilons, dict) and fields.block_of is None and domain.other is not None:
        # The `other` label is alone in a block that the survey file does not name. That block
        # contains no pairs, so any ε will do.
        other_block = block_of[-1]
        if sum(name == other_block for name in block_of) == 1:
            epsilons.setdefault(other_block, "inf")
    return epsilons


def _key_by_name(epsilons: Any, names: Any) -> Any:  # noqa: ANN401
    """If ``epsilons`` is a table, return it keyed by the names of blocks or tiers.

    The keys of a TOML table are text, but the names may be integers.
    """
    if not isinstance(epsilons, dict):
        return epsilons
    if isinstance(names, dict):
        names = names.values()
    name_by_text: dict[str, Any] = {str(name): name for name in names}
    return {name_by_text.get(key, key): epsilon for key, epsilon in epsilons.items()}


def _sensitive_labels(
    sensitive: list[TextOrInteger] | ColumnFields | None, table: _Table
) -> list[Any]:
    sensitive = require_value(
        sensitive, "context.sensitive", 'a list of labels, or { column = "sensitive" }'
    )
    if isinstance(sensitive, list):
        return sensitive
    flags = get_column(table, sensitive.column, "context.sensitive")
    labels: list[Any] = []
    for label, flag in zip(table["label"], flags, strict=True):
        if flag.lower() in _YES:
            labels.append(label)
        elif flag.lower() not in _NO:
            raise InvalidSurvey(
                f"context.sensitive: column {sensitive.column!r} must contain yes or no; "
                f"got {flag!r}."
            )
    return labels


def _read_block_of(
    fields: ContextFields,
    domain: Domain,
    table: _Table,
    folder: Path,
) -> Any:  # noqa: ANN401 - a list, an array or a table
    """Return the block of each symbol, or a table with the block of each label."""
    methods = [name for name in _BLOCK_FIELDS if getattr(fields, name) is not None]
    if methods == ["rows", "columns"]:
        methods = ["rows and columns"]
    if len(methods) != 1:
        raise InvalidSurvey(
            "context needs exactly one way to define blocks: rows and columns, parents, nearest, "
            f"column or block_of; got {', '.join(methods) or 'none'}."
        )
    if fields.block_of is not None:
        return fields.block_of
    if fields.column is not None:
        blocks = list(get_column(table, fields.column, "context.column"))
        # The file does not list the `other` label. Put it alone in a block with an unused name.
        other_block = next(name for name in map(str, itertools.count()) if name not in blocks)
        return blocks + [other_block] * (domain.size - len(blocks))
    if fields.parents is not None:
        if not isinstance(domain, H3Domain):
            raise InvalidSurvey("context.parents needs a domain of kind h3.")
        return h3_parents(domain, fields.parents)
    if fields.nearest is not None:
        if not isinstance(domain, GridDomain | H3Domain):
            raise InvalidSurvey("context.nearest needs a domain of kind grid or h3.")
        return nearest_places(domain, *_read_places(folder / fields.nearest))
    if not isinstance(domain, GridDomain) or fields.rows is None or fields.columns is None:
        raise InvalidSurvey(
            "context.rows and context.columns must be set together, for a domain of kind grid."
        )
    return grid_tiles(domain, fields.rows, fields.columns)


def _read_places(path: Path) -> tuple[list[float], list[float]]:
    """Return the latitudes and the longitudes of the places in a file."""
    table = read_columns(path, "context.nearest")
    try:
        latitudes = [float(text) for text in table["latitude"]]
        longitudes = [float(text) for text in table["longitude"]]
    except (KeyError, ValueError):
        raise InvalidSurvey(
            f"context.nearest: {path.name} must have columns latitude and longitude, in degrees."
        ) from None
    return latitudes, longitudes


def _read_matrix(
    matrix: list[list[Number]] | str | None, field: str, domain: Domain, folder: Path
) -> list[list[Any]]:
    """Return rows of numbers, from the survey file itself or from a CSV file."""
    matrix = require_value(matrix, field, EXPECTED_IN_CONTEXT[field])
    return (
        matrix if isinstance(matrix, list) else read_domain_matrix(domain, folder / matrix, field)
    )
