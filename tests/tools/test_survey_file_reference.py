"""The reference of the survey file: complete, up to date, and all its examples load."""

import re
import tomllib
from typing import NamedTuple

import pytest
from pydantic import Field

from sfumato.errors import InvalidSurvey
from sfumato.survey import Survey
from sfumato.survey.toml.file import FileFields
from sfumato.survey.toml.schema import DomainFields
from support.paths import ROOT
from tools.survey_file_reference import (
    KeyTable,
    all_tables,
    complete_example,
    main,
    missing_documentation,
    reference_page,
)

PAGE = (ROOT / "docs" / "survey-file.md").read_text("utf-8")
KEYS = [key.path for table in all_tables(FileFields) for key in table.keys]
FENCED_BLOCK = re.compile(
    r"^```(?:toml|\{code-block\} text\n:caption: (?P<name>\S+))\n(?P<content>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


class Example(NamedTuple):
    """A survey file on the page, the keys that it is for, and its companion files."""

    keys: tuple[str, ...]
    toml: str
    companions: dict[str, str]


def examples_on(page):
    """Return the examples under the headings of keys."""
    examples = []
    for section in re.split(r"^### ", page, flags=re.MULTILINE)[1:]:
        section = re.split(r"^## ", section, flags=re.MULTILINE)[0]
        keys = tuple(re.findall(r"`([^`]+)`", section.partition("\n")[0]))
        for block in FENCED_BLOCK.finditer(section):
            if block["name"] is None:
                examples.append(Example(keys, block["content"], {}))
            else:
                examples[-1].companions[block["name"]] = block["content"]
    return examples


def editions_on(page):
    """Return the editions that the page lists for each key."""
    editions = {}
    for section in re.split(r"^## Keys ", page, flags=re.MULTILINE)[1:]:
        table = re.match(r"of `([^`]+)`", section)
        prefix = f"{table[1]}." if table else ""
        for name, listing in re.findall(r"^\| \[`(\w+)`\]\(\S+\) \| ([\d, ]+) \|", section, re.M):
            editions[prefix + name] = {int(edition) for edition in listing.split(", ")}
    return editions


def load(folder, example):
    if 'kind = "h3"' in example.toml:
        pytest.importorskip("h3")
    for name, content in example.companions.items():
        (folder / name).write_text(content, encoding="utf-8")
    path = folder / "survey.toml"
    path.write_text(example.toml, encoding="utf-8")
    return Survey.load(path)


def uses(toml, key):
    """Return whether a survey file sets a key such as ``domain.size``."""
    value = tomllib.loads(toml)
    for name in key.split("."):
        value = value[0] if isinstance(value, list) else value
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True


EXAMPLES = examples_on(PAGE)
each_example = pytest.mark.parametrize(
    "example", EXAMPLES, ids=[f"{number}-{case.keys[0]}" for number, case in enumerate(EXAMPLES)]
)


# --- the page and the models ----------------------------------------------------------------------


def test_page_is_up_to_date(tmp_path, monkeypatch):
    written = tmp_path / "page.md"
    monkeypatch.setattr("sys.argv", ["survey_file_reference", str(written)])
    main()
    assert written.read_text("utf-8") == PAGE, (
        "run: python -m tools.survey_file_reference docs/survey-file.md"
    )


def test_page_depends_on_the_descriptions():
    class Reworded(FileFields):
        title: str = Field(default="", description="A new text.", examples=['title = "x"\n'])

    assert "A new text." in reference_page(Reworded)
    assert "A new text." not in PAGE


def test_every_key_is_on_the_page_with_an_example():
    assert [key for example in EXAMPLES for key in example.keys if key not in KEYS] == []
    assert {key for example in EXAMPLES for key in example.keys} == set(KEYS)
    assert list(editions_on(PAGE)) == KEYS


@pytest.mark.parametrize("key", ["title", "domain.size", "context.sensitive.column"])
def test_keys_missing_from_the_page_are_detected(key):
    page = PAGE.replace(f"### `{key}`\n", "### `name`\n")
    page = re.sub(rf"^\| \[`\w+`\]\(#key-{key.replace('.', '-')}\).*\n", "", page, flags=re.M)
    assert set(KEYS) - {key for example in examples_on(page) for key in example.keys} == {key}
    assert set(KEYS) - set(editions_on(page)) == {key}


def test_every_field_has_a_description_and_an_example():
    assert missing_documentation(all_tables(FileFields)) == []


class WithoutDescription(DomainFields):
    planted: int = Field(default=0, examples=["planted = 1\n"])


class WithoutExample(DomainFields):
    planted: int = Field(default=0, description="Planted.")


class WithEmptyExamples(DomainFields):
    planted: int = Field(default=0, description="Planted.", examples=[])


@pytest.mark.parametrize("model", [WithoutDescription, WithoutExample, WithEmptyExamples])
def test_fields_without_documentation_are_detected(model):
    class File(FileFields):
        domain: model = FileFields.model_fields["domain"]

    assert missing_documentation([KeyTable("domain", model)]) == ["domain.planted"]
    with pytest.raises(SystemExit, match=r"a description and an example: domain\.planted$"):
        reference_page(File)


# --- the examples ---------------------------------------------------------------------------------


@each_example
def test_example_loads_and_uses_its_keys(tmp_path, example):
    survey = load(tmp_path, example)
    assert survey.edition == 2
    assert [key for key in example.keys if not uses(example.toml, key)] == []


@pytest.mark.parametrize("example", [example for example in EXAMPLES if example.companions])
def test_example_needs_its_companion_file(tmp_path, example):
    """A file that the example does not read would only confuse."""
    (name,) = example.companions
    with pytest.raises(InvalidSurvey, match=rf": {re.escape(name)} cannot be read"):
        load(tmp_path, example._replace(companions={}))


@each_example
def test_editions_on_the_page_are_those_that_know_the_key(tmp_path, example):
    editions = editions_on(PAGE)
    first = example._replace(toml=example.toml.replace("edition = 2\n", "edition = 1\n"))
    assert uses(first.toml, "edition")
    for key in example.keys:
        if 1 in editions[key]:
            assert load(tmp_path, first).edition == 1
        else:
            with pytest.raises(InvalidSurvey, match="is a field of edition 2"):
                load(tmp_path, first)


def test_keys_of_edition_2():
    editions = editions_on(PAGE)
    assert all(2 in numbers for numbers in editions.values())
    second = {key for key, numbers in editions.items() if 1 not in numbers}
    table_keys = {key for key in editions if key.partition(".")[0] == "table"}
    question_keys = {"question", "question.name", "question.domain", "question.context"}
    new_keys = {"reports_per_upload", "mechanism.worst_case_margin"}
    assert second == question_keys | table_keys | new_keys


def test_unused_keys_are_detected():
    toml = complete_example('[domain]\nkind = "range"\nsize = 10\n')
    assert uses(toml, "domain.size")
    assert not uses(toml, "domain.start")
    assert not uses(toml, "domain.size.start")
    assert not uses(toml, "mechanism.code")


# --- the rest of the page -------------------------------------------------------------------------


def test_shortest_file_cannot_be_shorter(tmp_path):
    shortest = next(FENCED_BLOCK.finditer(PAGE))["content"]
    assert load(tmp_path, Example((), shortest, {})).edition == 2
    lines = [line for line in shortest.splitlines(keepends=True) if line.strip()]
    assert len(lines) == 8
    for number, line in enumerate(lines):
        shorter = Example((), "".join(lines[:number] + lines[number + 1 :]), {})
        if line == "edition = 2\n":
            assert load(tmp_path, shorter).edition == 1
        else:
            with pytest.raises(InvalidSurvey):
                load(tmp_path, shorter)


@pytest.mark.parametrize("name", ["public", "cap", "learn", "cohorts", "rotation"])
def test_reserved_keys_are_rejected(tmp_path, name):
    with pytest.raises(InvalidSurvey, match=f"line 3: {name} is not a field of a survey file"):
        load(tmp_path, Example((), complete_example(f"{name} = 1\n"), {}))


@pytest.mark.parametrize("name", ["title", "text", "labels"])
def test_texts_of_a_question_are_rejected(tmp_path, name):
    toml = next(example.toml for example in EXAMPLES if example.keys == ("question",))
    planted = toml.replace('name = "place"\n', f'name = "place"\n{name} = "x"\n')
    with pytest.raises(InvalidSurvey, match=f"{name} is not a field of a survey file"):
        load(tmp_path, Example((), planted, {}))
