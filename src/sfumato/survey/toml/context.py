"""The context section of a survey file: which promise its fields describe."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.contexts import (
    Blocks,
    Context,
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
from sfumato.foundation.arrays import Booleans
from sfumato.survey.toml.companion_files import column_of, read_columns
from sfumato.survey.toml.matrix import matrix_over
from sfumato.survey.toml.schema import (
    ColumnFields,
    ContextFields,
    Number,
    Text,
    require_only,
    require_value,
)

__all__ = ["context_of_section"]


def context_of_section(
    given: ContextFields, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path
) -> Context:
    """The context of these fields; ``table`` holds the columns of the labels file, if there is one."""
    if given.kind == "matrix":
        require_only(given, "context", ("matrix",))
        matrix = require_value(
            given.matrix, "context.matrix", "rows of numbers, or the name of a CSV file"
        )
        return PrivacyMatrix(_matrix(matrix, domain, folder, "context.matrix"), domain=domain)
    if given.kind == "tiers":
        return _tiers(given, domain, table)
    epsilon = require_value(
        given.epsilon, "context.epsilon", "a number above 0 and at most 40, e.g. 1.0"
    )
    if given.kind == "blocks":
        return _blocks(given, domain, table, folder)
    if isinstance(epsilon, list | dict):
        raise InvalidSurvey(
            f"context.epsilon must be a number for kind = {given.kind!r}; blocks may have one each."
        )
    if given.kind == "uniform":
        require_only(given, "context", ("epsilon",))
        return Uniform(domain, epsilon)
    if given.kind == "high-low":
        require_only(given, "context", ("epsilon", "sensitive"))
        return HighLow(domain, _sensitive(given.sensitive, table), epsilon)
    require_only(given, "context", ("epsilon", "distances"))
    distances = require_value(
        given.distances, "context.distances", "rows of numbers, or the name of a CSV file"
    )
    return Metric(_matrix(distances, domain, folder, "context.distances"), epsilon, domain=domain)


def _tiers(given: ContextFields, domain: Domain, table: Mapping[str, Sequence[str]]) -> Tiers:
    require_only(given, "context", ("tier_of", "column", "epsilons"))
    epsilons = require_value(
        given.epsilons, "context.epsilons", "a number for each tier, e.g. { high = 0.5, low = 4 }"
    )
    if (given.tier_of is None) == (given.column is None):
        raise InvalidSurvey("context needs either tier_of or column, not both.")
    tier_of: Any = given.tier_of
    if given.column is not None:
        tier_of = list(column_of(table, given.column, "context.column"))
        if domain.size != len(tier_of):
            raise InvalidSurvey(
                "context.column: the label for other is not in domain.file. Add it there with a tier."
            )
    names = tier_of.values() if isinstance(tier_of, dict) else tier_of
    return Tiers(tier_of, _by_name(epsilons, names), domain=domain)


def _blocks(
    given: ContextFields, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path
) -> Context:
    ways = ("rows", "columns", "parents", "nearest", "column", "block_of")
    require_only(given, "context", ("epsilon", "across", "sensitive", *ways))
    block_of = _block_of(given, domain, table, folder)
    across = "inf" if given.across is None else given.across
    blocks = Blocks(
        block_of, _epsilon_of_blocks(given, block_of, domain), across=across, domain=domain
    )
    if given.sensitive is None:
        return blocks
    if given.across is not None:
        raise InvalidSurvey(
            "context.across and context.sensitive do not go together: leave out one of them."
        )
    return _sensitive_inside(
        blocks, HighLow(domain, _sensitive(given.sensitive, table), 1).is_sensitive
    )


def _sensitive_inside(blocks: Blocks, is_sensitive: Booleans) -> Context:
    """High-low inside each block; a block without sensitive symbols is in clear."""
    parts: list[Context] = []
    for j, epsilon in enumerate(blocks.exact_epsilons):
        marked = is_sensitive[blocks.block_of == j]
        if marked.all() or not marked.any():
            parts.append(Uniform(marked.size, epsilon if marked.all() else "inf"))
        else:
            parts.append(HighLow(marked.size, np.flatnonzero(marked).tolist(), epsilon))
    return union(parts, block_of=blocks.block_of, domain=blocks.domain)


def _epsilon_of_blocks(given: ContextFields, block_of: Any, domain: Domain) -> Any:  # noqa: ANN401
    """One number, or one for each block."""
    if not isinstance(given.epsilon, dict):
        return given.epsilon
    epsilons = _by_name(
        given.epsilon, block_of.values() if isinstance(block_of, dict) else block_of
    )
    if given.block_of is None and domain.other is not None:
        # Nobody named the block of `other`. It holds no pair, so that any ε will do.
        own = block_of[-1]
        if sum(name == own for name in block_of) == 1:
            epsilons.setdefault(own, "inf")
    return epsilons


def _by_name(given: Any, names: Iterable[Any]) -> Any:  # noqa: ANN401
    """A table by the names that the file gives to blocks or tiers: its keys are text, the names may be integers."""
    if not isinstance(given, dict):
        return given
    named: dict[str, Any] = {str(name): name for name in names}
    return {named.get(key, key): value for key, value in given.items()}


def _sensitive(
    given: list[Text] | ColumnFields | None, table: Mapping[str, Sequence[str]]
) -> list[Any]:
    if given is None:
        raise InvalidSurvey(
            'context.sensitive is missing: write a list of labels, or { column = "sensitive" }.'
        )
    if isinstance(given, list):
        return given
    marks = column_of(table, given.column, "context.sensitive")
    yes = {"1", "true", "yes"}
    no = {"0", "false", "no", ""}
    strange = [mark for mark in marks if mark.lower() not in yes | no]
    if strange:
        raise InvalidSurvey(
            f"context.sensitive: column {given.column!r} must hold yes or no; found {strange[0]!r}."
        )
    return [label for label, mark in zip(table["label"], marks, strict=True) if mark.lower() in yes]


def _block_of(
    given: ContextFields, domain: Domain, table: Mapping[str, Sequence[str]], folder: Path
) -> Any:  # noqa: ANN401
    ways = {
        "rows and columns": given.rows is not None or given.columns is not None,
        "parents": given.parents is not None,
        "nearest": given.nearest is not None,
        "column": given.column is not None,
        "block_of": given.block_of is not None,
    }
    chosen = [way for way, is_given in ways.items() if is_given]
    if len(chosen) != 1:
        raise InvalidSurvey(
            f"context needs one way to make blocks ({', '.join(ways)}); found {chosen or 'none'}."
        )
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
        raise InvalidSurvey(
            "context.rows and context.columns go together, with a domain of kind grid."
        )
    return grid_tiles(domain, given.rows, given.columns)


def _places(path: Path) -> tuple[list[float], list[float]]:
    table = read_columns(path, "context.nearest")
    try:
        return [float(value) for value in table["latitude"]], [
            float(value) for value in table["longitude"]
        ]
    except (KeyError, ValueError):
        raise InvalidSurvey(
            f"context.nearest: {path.name} must have columns latitude and longitude, in degrees."
        ) from None


def _matrix(
    given: list[list[Number]] | str, domain: Domain, folder: Path, name: str
) -> list[list[Any]]:
    """Rows of numbers, inline or from a CSV file."""
    return given if isinstance(given, list) else matrix_over(domain, folder / given, name)
