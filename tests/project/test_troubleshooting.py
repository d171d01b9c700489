"""The troubleshooting page quotes messages as they are: each one is provoked and compared."""

import re
import socket
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.client import AggregatorClient
from sfumato.errors import SfumatoError
from support.command import LUNCH
from support.paths import ROOT
from support.run_here import run_command

PAGE = ROOT / "docs" / "troubleshooting.md"
ENTRY = re.compile(r"^### (.+)\n\n(?:```text\n(.+)\n```\n)?", re.MULTILINE)

SURVEY = "edition = 2\n" + LUNCH
SURVEY_WITH_OTHER = SURVEY.replace('"office"]', '"office"]\nother = "elsewhere"')
PLACES = ["park", "café", "clinic", "bar", "office"] * 20


def entries():
    """Return the message of each heading on the page, or "" for a surprise without a message."""
    return dict(ENTRY.findall(PAGE.read_text("utf-8")))


MESSAGES = {heading: message for heading, message in entries().items() if message}


def as_pattern(message):
    """Return a pattern for texts that begin with the message; `…` stands for anything."""
    return ".+?".join(map(re.escape, message.split("…")))


@pytest.fixture
def run(tmp_path):
    """Write a survey and a column of answers, run a command, and return what it says."""

    def run_with(*arguments, column=PLACES, survey=SURVEY, header="place"):
        (tmp_path / "survey.toml").write_text(survey, "utf-8")
        cells = "".join(f'"{cell}"\n' for cell in column)
        (tmp_path / "answers.csv").write_text(f"{header}\n{cells}", "utf-8")
        return said_by(*arguments, folder=tmp_path)

    return run_with


def said_by(*arguments, folder):
    """Run a command, and return the last thing that it said about itself."""
    result = run_command(*arguments, folder=folder)
    warning = result.err.find("sfumato: WARNING")
    if warning >= 0:
        return result.err[warning:]
    return result.err.strip().removeprefix("sfumato: ")


PRIVATIZE = ("privatize", "survey.toml", "answers.csv", "-o", "reports.parquet", "--column")


def no_column(run, folder):
    return run(*PRIVATIZE, "Places")


def another_delimiter(run, folder):
    return run(*PRIVATIZE, "place", header="place;age", column=["park;30", "bar;40"])


def no_answer(run, folder):
    return run(*PRIVATIZE, "place", column=[*PLACES, "", ""])


def not_in_the_domain(run, folder):
    return run(*PRIVATIZE, "place", column=[*PLACES, "zoo", "zoo"])


def mostly_other(run, folder):
    column = [*PLACES, *["zoo"] * 200]
    return run(*PRIVATIZE, "place", column=column, survey=SURVEY_WITH_OTHER)


def too_many_numbers(run, folder):
    ages = [str(number / 7) for number in range(400)]
    options = ("--from", "answers.csv", "--column", "age")
    return run("init", *options, "new.toml", header="age", column=ages)


def not_utf8(run, folder):
    run(*PRIVATIZE, "place")
    (folder / "answers.csv").write_bytes("place\npark\ncafé\n".encode("latin-1"))
    return said_by(*PRIVATIZE, "place", folder=folder)


def no_package(run, folder):
    openpyxl = pytest.importorskip("openpyxl")
    openpyxl.Workbook().save(folder / "answers.xlsx")
    run(*PRIVATIZE, "place")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "openpyxl", None)
        arguments = ("init", "--from", "answers.xlsx", "--column", "place", "new.toml")
        return said_by(*arguments, folder=folder)


def survey_exists(run, folder):
    return run("init", "--template", "yes-no", "survey.toml")


def not_a_survey(run, folder):
    return run("verify", "answers.csv")


def unknown_key(run, folder):
    return run("verify", "survey.toml", survey="titel = 'Lunch'\n" + SURVEY)


def message_of(function):
    with pytest.raises(SfumatoError) as error:
        function()
    return str(error.value)


def missing_label(run, folder):
    return message_of(lambda: sf.Uniform(["yes", float("nan")], 1))


def no_epsilon(run, folder):
    return message_of(lambda: sf.mechanism_for(sf.Uniform(["yes", "no"], 0)))


def no_closed_form(run, folder):
    matrix = sf.PrivacyMatrix([[0, 1, 2], [1, 0, 1], [2, 3, 0]])
    return message_of(lambda: sf.mechanism_for(matrix))


def another_survey(run, folder):
    run(*PRIVATIZE, "place")
    stronger = SURVEY.replace("epsilon = 1.0", "epsilon = 0.5")
    return run("estimate", "survey.toml", "reports.parquet", survey=stronger)


def no_reports(run, folder):
    return run("estimate", "survey.toml", "answers.csv")


def too_few(run, folder):
    survey = "minimum_reports = 1000\n" + SURVEY
    run(*PRIVATIZE, "place", survey=survey)
    return run("estimate", "survey.toml", "reports.parquet", survey=survey)


def forged(run, folder):
    run(*PRIVATIZE, "place")
    schema = pq.read_schema(folder / "reports.parquet")
    reports = pa.table([pa.array([0] * 5000, schema[0].type)], schema=schema)
    pq.write_table(reports, folder / "reports.parquet")
    return said_by("estimate", "survey.toml", "reports.parquet", folder=folder)


def port_taken(run, folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        return run("serve", "survey.toml", "--port", str(port))


def unreachable(run, folder):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    aggregator = AggregatorClient(f"http://127.0.0.1:{port}", patience=0)
    return message_of(aggregator.list_surveys)


def budget_spent(run, folder):
    survey = sf.Survey("costly", sf.Uniform(["yes", "no"], 1))
    client = sf.Client(survey, "http://127.0.0.1:1", home=folder / "device", budget=0.5)
    return message_of(lambda: client.answer("yes"))


CAUSES = {
    "The table has no such column": no_column,
    "The file uses a different separator": another_delimiter,
    "Some rows have no answer": no_answer,
    "Some answers are not in the domain": not_in_the_domain,
    'Most answers would become "other"': mostly_other,
    "A column of numbers has too many values": too_many_numbers,
    "The file is not UTF-8": not_utf8,
    "A file format needs another package": no_package,
    "The survey file already exists": survey_exists,
    "A file is not a survey file": not_a_survey,
    "A key is misspelt": unknown_key,
    "A label is a missing value": missing_label,
    "Nothing can be learned": no_epsilon,
    "No mechanism fits the matrix": no_closed_form,
    "The reports belong to another survey": another_survey,
    "A file does not contain reports": no_reports,
    "There are too few reports": too_few,
    "The reports cannot be real": forged,
    "The port is taken": port_taken,
    "The aggregator cannot be reached": unreachable,
    "The device has spent its budget": budget_spent,
}


def test_every_message_has_a_cause():
    assert set(MESSAGES) == set(CAUSES)


@pytest.mark.parametrize("heading", CAUSES)
def test_message_is_quoted_as_it_is(heading, run, tmp_path):
    said = " ".join(CAUSES[heading](run, tmp_path).split())
    assert re.match(as_pattern(MESSAGES[heading]), said), said


def test_only_texts_that_begin_with_the_message_match():
    pattern = as_pattern("a.csv: … of … rows have no answer")
    assert re.match(pattern, "a.csv: 2 of 1,845 rows have no answer (the first in data row 9).")
    assert not re.match(pattern, "a.csv: 2 of 1,845 rows have an answer")
    assert not re.match(pattern, "in a.csv: 2 of 1,845 rows have no answer")
