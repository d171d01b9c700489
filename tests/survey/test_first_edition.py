"""Survey files of the first edition keep their fingerprints for ever.

The fingerprints in ``first_edition/fingerprints.json`` were computed with the last version that
knew only one format (commit 6d20f96). Never recompute them.
"""

import json
import shutil
import tomllib
from pathlib import Path
from typing import get_args

import pytest

from sfumato.survey import Survey
from sfumato.survey.toml.context import ContextFields
from sfumato.survey.toml.file import FIELDS_OF_EDITION_2, FileFields
from sfumato.survey.toml.schema import DomainFields, MechanismFields
from tools.survey_file_reference import all_tables

FOLDER = Path(__file__).parent / "first_edition"
FINGERPRINTS = json.loads((FOLDER / "fingerprints.json").read_text("utf-8"))

each_file = pytest.mark.parametrize("name", FINGERPRINTS)


def load(path):
    if path.name.startswith("h3"):
        pytest.importorskip("h3")
    return Survey.load(path)


@each_file
def test_file_of_the_first_edition_keeps_its_fingerprint(name):
    survey = load(FOLDER / name)
    assert survey.fingerprint == FINGERPRINTS[name]
    assert survey.promise["format"] == 1


@each_file
def test_second_edition_has_a_different_fingerprint(name, tmp_path):
    """The comparison fails if a file resolves to another promise."""
    shutil.copytree(FOLDER, tmp_path / "files")
    path = tmp_path / "files" / name
    path.write_text("edition = 2\n" + path.read_text("utf-8-sig"), encoding="utf-8")
    survey = load(path)
    assert survey.fingerprint != FINGERPRINTS[name]
    assert survey.promise["format"] == 2


@each_file
def test_edition_1_may_be_written_out(name, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "files")
    path = tmp_path / "files" / name
    path.write_text("edition = 1\n" + path.read_text("utf-8-sig"), encoding="utf-8")
    assert load(path).fingerprint == FINGERPRINTS[name]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("labels.toml", "epsilon = 1.0", "epsilon = 1.1"),
        ("other.toml", "distinct = 3", "distinct = 4"),
        ("range.toml", "hadamard", "cyclic"),
        ("places.csv", "clinic,south,yes", "clinic,south,no"),
    ],
)
def test_changed_promises_are_detected(name, old, new, tmp_path):
    shutil.copytree(FOLDER, tmp_path / "files")
    path = tmp_path / "files" / name
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    survey_name = "labels-file.toml" if name == "places.csv" else name
    survey = Survey.load(tmp_path / "files" / survey_name)
    assert survey.fingerprint != FINGERPRINTS[survey_name]


# --- the files cover everything that the first edition could say ----------------------------------


def parse(path):
    return tomllib.loads(path.read_text("utf-8-sig"))


FILES = {path.name: parse(path) for path in sorted(FOLDER.glob("*.toml"))}


def paths_in(data, prefix=""):
    """Yield the paths of all keys in a TOML table, such as ``domain.size``."""
    for name, value in data.items():
        yield prefix + name
        if isinstance(value, dict):
            yield from paths_in(value, f"{prefix}{name}.")


def missing_paths(files):
    """Return the keys of the first edition that do not occur in any file."""
    used = {path for data in files.values() for path in paths_in(data)}
    expected = {key.path for table in all_tables(FileFields) for key in table.keys}
    later = set()
    for path in expected:
        section = path.partition(".")[0]
        if FIELDS_OF_EDITION_2.intersection((section, path)):
            later.add(path)
    return expected - later - used - {"edition"}


def test_every_file_has_a_fingerprint():
    assert list(FILES) == list(FINGERPRINTS)
    assert len(FILES) == 20


def test_files_use_every_key_of_the_first_edition():
    assert not missing_paths(FILES)


def test_unused_keys_are_detected():
    files = {name: data for name, data in FILES.items() if name != "metric.toml"}
    assert missing_paths(files) == {"context.distances"}


@pytest.mark.parametrize(
    ("model", "section", "field"),
    [
        (DomainFields, "domain", "kind"),
        (ContextFields, "context", "kind"),
        (MechanismFields, "mechanism", "code"),
    ],
)
def test_files_use_every_kind_and_code(model, section, field):
    choices = {data.get(section, {}).get(field, "best") for data in FILES.values()}
    assert choices == set(get_args(model.model_fields[field].annotation))


def test_files_repeat_in_every_way():
    repeats = [data.get("repeat", "once") for data in FILES.values()]
    periods = {repeat if repeat == "once" else repeat["every"] for repeat in repeats}
    assert periods == {"once", "day", "week", "month", "year"}
