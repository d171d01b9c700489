"""Files that are not survey files are recognised, and their content is never quoted."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.contexts import Uniform
from sfumato.errors import InvalidSurvey
from sfumato.survey import Survey

CANARY = "kanarienvogel"
SURVEY = Survey("q", Uniform(["no", "yes"], 1))
CSV = f"place\n{CANARY}\n{CANARY} = 1\n".encode()


def _parquet():
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"place": [CANARY]}), sink)
    return sink.getvalue().to_pybytes()


def _error(folder, name, raw):
    (folder / name).write_bytes(raw)
    with pytest.raises(InvalidSurvey) as caught:
        Survey.load(folder / name)
    message = str(caught.value)
    assert message.startswith(name)
    assert CANARY not in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("answers.csv", CSV, "a .csv file"),
        ("answers.csv", b"", "a .csv file"),
        ("answers.csv", f"{CANARY} = 1\n".encode(), "a .csv file"),
        ("answers.tsv", CSV, "a .tsv file"),
        ("answers.jsonl", json.dumps({"place": CANARY}).encode(), "a .jsonl file"),
        ("answers.SAV", f"$FL2@(#) {CANARY}".encode(), "a .sav file"),
        ("answers.dta", CANARY.encode() + b"\x00\xff", "a .dta file"),
        ("answers.csv.gz", gzip.compress(CSV, mtime=0), "compressed with gzip"),
        ("answers.toml", gzip.compress(CSV, mtime=0), "compressed with gzip"),
        ("answers.json", gzip.compress(CSV, mtime=0), "compressed with gzip"),
        ("answers.parquet", _parquet(), "a Parquet table"),
        ("answers.toml", _parquet(), "a Parquet table"),
        ("answers.xlsx", b"PK\x03\x04" + CANARY.encode(), "a ZIP archive or a spreadsheet"),
        ("answers", CANARY.encode() + b"\x00\xff", "binary"),
        ("answers.json", json.dumps([CANARY]).encode(), "JSON, but not a resolved survey"),
        ("answers.json", json.dumps({CANARY: 1}).encode(), "JSON, but not a resolved survey"),
        (
            "answers.toml",
            json.dumps([{"place": CANARY}]).encode(),
            "JSON, but not a resolved survey",
        ),
        ("answers.txt", CSV, "neither TOML nor JSON"),
        ("answers", f"a = 1\n[{CANARY}]\n[{CANARY}]".encode(), "neither TOML nor JSON"),
    ],
)
def test_tables_of_answers_are_recognised(tmp_path, name, raw, said):
    message = _error(tmp_path, name, raw)
    assert f"is not a survey file: it is {said}" in message
    assert message.endswith("In a command, the survey comes first, then the answers.")


def test_text_in_another_encoding_is_not_quoted(tmp_path):
    assert "UTF-8" in _error(tmp_path, "answers.toml", f"name = '{CANARY}é'".encode("latin-1"))


def test_wrong_endings_are_corrected(tmp_path):
    assert _error(tmp_path, "s.toml", SURVEY.resolved()) == (
        "s.toml is a resolved survey (JSON), but its name does not end in .json. Rename it to "
        "s.json."
    )
    SURVEY.save(tmp_path / "right.toml")
    assert _error(tmp_path, "s.json", (tmp_path / "right.toml").read_bytes()) == (
        "s.json is a survey in TOML, but its name says JSON. Rename it to s.toml."
    )


def test_a_damaged_resolved_survey_is_named(tmp_path):
    message = _error(tmp_path, "s.json", SURVEY.resolved()[:-9])
    assert message == "s.json: a resolved survey must be UTF-8 JSON."
    message = _error(tmp_path, "s.json", b" " + SURVEY.resolved())
    assert message == "s.json: the resolved survey is not in canonical form. Resolve it again."


@pytest.mark.parametrize("name", ["folder", "folder.json", "folder.toml"])
def test_a_folder_is_not_a_survey(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InvalidSurvey, match=r"is a folder\. Choose a survey file in it"):
        Survey.load(tmp_path / name)
