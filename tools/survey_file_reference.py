"""Write the reference of the survey file: `python -m tools.survey_file_reference PAGE`.

The page, `docs/survey-file.md`, is built from the pydantic models in `sfumato.survey.toml`: every
field has a description and an example there. A test compares the page with the models.
"""

import argparse
import itertools
import json
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from sfumato.foundation.periods import PERIODS
from sfumato.survey.toml.context import CONTEXT_FIELDS_BY_KIND, EXPECTED_IN_CONTEXT
from sfumato.survey.toml.file import FIELDS_OF_EDITION_2, FileFields
from sfumato.survey.toml.schema import DOMAIN_FIELDS_BY_KIND, EXPECTED_IN_FILE, Section

INTRODUCTION = """# The survey file

<!-- Written by tools/survey_file_reference.py: edit the models in src/sfumato/survey/toml. -->

A survey file describes a survey in TOML: a name, the possible answers, and the promise for them.
`sfumato init` writes one; `sf.Survey.load` and the other commands read it. Sfumato chooses a
mechanism that keeps the promise, and *resolves* the file to JSON with every integer of it. The
fingerprint of the resolved promise names the survey in every report: you can change the title of a
survey later, but not its promise. Unknown keys are errors, and paths are relative to the file.

The shortest file of edition 2:

```toml
{shortest}```

`edition = 2` makes the file resolve to [format 2](format.md), in which a question has a name and
the batches of a repeated survey carry their period. A file without this line is of edition 1 and
resolves as it always did: same mechanism, same fingerprint. Write the line in every new file. Do
not add it to a survey that already collects reports: the format is part of the promise, so the
fingerprint would change.

In the tables below, *editions* lists the editions that know a key. A dash instead of a default
means that the key has no value unless you set it. Decimal numbers are exact: 0.1 is one tenth. An ε
may also be text: `"1/3"` is one third, and `"inf"` promises nothing.

An error in a survey file names the file, the line and the key. If the key is unknown, it also names
the key that you probably meant. `sfumato verify` and `sfumato serve` warn you if `title`, `contact`
or `minimum_reports` is missing.

## From Python

`survey.save` writes a survey file if the name ends in `.toml`, and a resolved survey if it ends in
`.json`. It rejects other names. `sf.Survey.load` reads a file whose name ends in `.json` as a
resolved survey, and any other file as TOML.

```{code-block} python
:caption: save.py
from pathlib import Path

import sfumato as sf

context = sf.HighLow(["park", "café", "clinic"], sensitive=["clinic"], epsilon=0.1)
survey = sf.Survey("lunch-2026", context, title="Where did you have lunch?", edition=2)
survey.save("survey.toml")

assert sf.Survey.load("survey.toml").fingerprint == survey.fingerprint
print(Path("survey.toml").read_text(encoding="utf-8"), end="")
```

```console
$ python save.py
name = "lunch-2026"
edition = 2
title = "Where did you have lunch?"

[domain]
kind = "labels"
labels = ["park", "café", "clinic"]

[context]
kind = "high-low"
epsilon = 0.1
sensitive = ["clinic"]
```

Before it writes the file, `save` reads the text back, and compares the fingerprints and `[table]`.
It raises `InvalidSurvey` if TOML cannot describe the survey: H3 cells need a box or a file that
lists them, and designed mechanisms and most unions have no form in TOML. Save such a survey as
`.json`.
"""

RESERVED_KEYS = """## Reserved for later versions

Format 2 reserves room for public columns, a cap, `learn`, cohorts, rotation, and texts for each
question. This version has no keys for them: it rejects a survey file with a key that is not on this
page, and a resolved survey that asks for any of them. A promise that is only partly understood must
not be relied on.
"""

COMPANION_FILES = {
    "places.csv": """label,district,private
park,north,no
café,north,no
clinic,south,yes
bar,south,no
""",
    "towns.csv": """name,latitude,longitude
Zürich,47.37,8.54
Schaffhausen,47.70,8.63
""",
    "promise.csv": """,no,yes
no,0,inf
yes,1.0,0
""",
}
"""The CSV files that the examples refer to, by name."""

_NAME = 'name = "example"\n'
_EDITION = "edition = 2\n"
_DOMAIN = '[domain]\nkind = "labels"\nlabels = ["no", "yes"]\n'
_CONTEXT = '[context]\nkind = "uniform"\nepsilon = 1.0\n'
_SECTION_START = re.compile(r"^(?=\[\[?[a-z.]+\]\]?$)", re.MULTILINE)

_FIELDS_BY_KIND = {"domain": DOMAIN_FIELDS_BY_KIND, "context": CONTEXT_FIELDS_BY_KIND}
_EXPECTED = {
    **EXPECTED_IN_FILE,
    **EXPECTED_IN_CONTEXT,
    "repeat.every": ", ".join(f"`{json.dumps(period)}`" for period in PERIODS),
}
_TYPE_NAMES = {str: "text", int: "an integer"}


class Key(NamedTuple):
    """A key of a survey file: its path, such as ``domain.size``, and the field that defines it."""

    path: str
    field: FieldInfo

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def examples(self) -> list[str]:
        """Complete survey files that use the key."""
        return [complete_example(part) for part in self.field.examples or []]

    @property
    def editions(self) -> str:
        section = self.path.partition(".")[0]
        is_second = FIELDS_OF_EDITION_2.intersection((section, self.path))
        return "2" if is_second else "1, 2"


class KeyTable(NamedTuple):
    """A TOML table of a survey file: its path, such as ``domain``, and the model of its fields."""

    path: str
    model: type[Section]

    @property
    def keys(self) -> list[Key]:
        prefix = f"{self.path}." if self.path else ""
        return [Key(prefix + name, field) for name, field in self.model.model_fields.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the reference of the survey file.")
    parser.add_argument("page", type=Path)
    parser.parse_args().page.write_text(reference_page(FileFields), encoding="utf-8")


def reference_page(model: type[Section]) -> str:
    """Return the page. ``model`` describes the top level of a survey file."""
    tables = all_tables(model)
    gaps = missing_documentation(tables)
    if gaps:
        raise SystemExit("These fields need a description and an example: " + ", ".join(gaps))
    sections = [INTRODUCTION.replace("{shortest}", complete_example(""))]
    for table in tables:
        sections.append(table_section(table))
    return "\n".join([*sections, RESERVED_KEYS])


# --- the models -----------------------------------------------------------------------------------


def all_tables(model: type[Section]) -> list[KeyTable]:
    """Return the top-level table and all tables inside it, each model once."""
    tables: dict[type[Section], KeyTable] = {}
    add_tables(KeyTable("", model), tables)
    return list(tables.values())


def add_tables(table: KeyTable, tables: dict[type[Section], KeyTable]) -> None:
    if table.model in tables:
        return
    tables[table.model] = table
    for key in table.keys:
        for model in models_in(key.field.annotation):
            add_tables(KeyTable(key.path, model), tables)


def models_in(annotation: Any) -> Iterator[type[Section]]:
    """Yield the models that occur in the type of a field."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in typing.get_args(annotation):
        yield from models_in(argument)


def missing_documentation(tables: Sequence[KeyTable]) -> list[str]:
    """Return the paths of the keys without a description or without an example."""
    keys = itertools.chain.from_iterable(table.keys for table in tables)
    return [key.path for key in keys if not (key.field.description and key.field.examples)]


# --- sections of the page -------------------------------------------------------------------------


def table_section(table: KeyTable) -> str:
    """Return the section for a table: its keys, which keys go with which kind, and examples."""
    title = f"Keys of `{table.path}`" if table.path else "Keys at the top level"
    groups = groups_by_example(table.keys)
    targets = {key.path: target_of(group) for group in groups for key in group}
    lines = [f"## {title}", "", docstring_of(table.model), ""]
    lines += ["| key | editions | value | default | meaning |", "|---|---|---|---|---|"]
    for key in table.keys:
        lines.append(key_row(key, targets[key.path]))
    if table.path in _FIELDS_BY_KIND:
        lines += ["", *kind_rows(_FIELDS_BY_KIND[table.path])]
    for group in groups:
        lines += ["", *example_lines(group)]
    return "\n".join(lines) + "\n"


def groups_by_example(keys: Sequence[Key]) -> list[list[Key]]:
    """Group neighbouring keys that share their examples, such as the edges of a grid."""
    return [list(group) for _, group in itertools.groupby(keys, key=lambda key: key.examples)]


def target_of(group: Sequence[Key]) -> str:
    return "key-" + group[0].path.replace(".", "-").replace("_", "-")


def docstring_of(model: type[Section]) -> str:
    return " ".join((model.__doc__ or "").split()).replace("``", "`")


def key_row(key: Key, target: str) -> str:
    cells = [
        f"[`{key.name}`](#{target})",
        key.editions,
        value_text(key),
        default_text(key.field),
        str(key.field.description),
    ]
    return f"| {' | '.join(cells)} |"


def kind_rows(fields_by_kind: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "| `kind` | other keys that apply |"
    yield "|---|---|"
    for kind, fields in fields_by_kind.items():
        yield f"| `{json.dumps(kind)}` | {', '.join(f'`{field}`' for field in fields)} |"


def example_lines(group: Sequence[Key]) -> Iterator[str]:
    """Yield the heading of some keys, and survey files that use them."""
    yield f"({target_of(group)})="
    yield "### " + ", ".join(f"`{key.path}`" for key in group)
    for example in group[0].examples:
        yield f"\n```toml\n{example}```"
        yield from companion_blocks(example)


def companion_blocks(example: str) -> Iterator[str]:
    """Yield the CSV files to which a survey file refers."""
    for name, content in COMPANION_FILES.items():
        if f'"{name}"' in example:
            yield f"\n```{{code-block}} text\n:caption: {name}\n{content}```"


# --- cells of a table -----------------------------------------------------------------------------


def value_text(key: Key) -> str:
    """Say what the value of a key may be."""
    return _EXPECTED.get(key.path) or type_text(key.field.annotation)


def type_text(annotation: Any) -> str:
    """Name the type of a field, such as "text or an integer"."""
    if annotation is Any:
        return "a number"  # a Number is anything that its validator accepts
    if annotation in _TYPE_NAMES:
        return _TYPE_NAMES[annotation]
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return "a table"
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Annotated:
        return type_text(arguments[0])
    if origin is list and list(models_in(annotation)):
        return "a list of tables"
    if origin is typing.Literal:
        return ", ".join(f"`{json.dumps(choice)}`" for choice in arguments)
    if origin not in {typing.Union, types.UnionType}:
        raise TypeError(f"say in words what a value of type {annotation} may be")
    return " or ".join(type_text(part) for part in arguments if part is not types.NoneType)


def default_text(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or isinstance(field.default, Section):
        return "—"
    return f"`{json.dumps(field.default)}`"


# --- examples -------------------------------------------------------------------------------------


def complete_example(part: str) -> str:
    """Complete a part of a survey file to a file that loads, with a name and an edition first."""
    head, *sections = _SECTION_START.split(part)
    if not has_key(head, "edition"):
        head = _EDITION + head
    if not has_key(head, "name"):
        head = _NAME + head
    if not any(section.startswith("[[question]]") for section in sections):
        sections = with_domain_and_context(sections)
    return "\n".join([in_order(head), *sections])


def has_key(text: str, name: str) -> bool:
    return re.search(rf"^{name} =", text, re.MULTILINE) is not None


def in_order(head: str) -> str:
    """Put the name first and the edition second."""
    order = {"name": 0, "edition": 1}
    lines = head.splitlines(keepends=True)
    return "".join(sorted(lines, key=lambda line: order.get(line.split()[0], 2)))


def with_domain_and_context(sections: Sequence[str]) -> list[str]:
    defaults = {"[domain]": _DOMAIN, "[context]": _CONTEXT}
    by_title = {section.splitlines()[0]: section for section in sections}
    return list({**defaults, **by_title}.values())


if __name__ == "__main__":
    main()
