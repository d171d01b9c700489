"""`estimate`: decoded and unbiased readings, covariates, and impossible reports."""

import contextlib
import csv
import io
import json
import os
import re
import subprocess
import sys

import openpyxl
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.cli.share_table import is_ordered
from sfumato.errors import InvalidSetting
from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.survey.survey import _finite_or_null
from support.command import run_process

SURVEY_COLUMN = "report@{}"


@pytest.fixture
def reports(call):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "r.csv")
    return "r.csv"


@pytest.fixture
def forged(folder):
    """Reports that were drawn evenly, with nobody behind them."""
    survey = sf.Survey.load(folder / "lunch.toml")
    lines = [
        SURVEY_COLUMN.format(survey.fingerprint),
        *(str(i % survey.mechanism.outputs) for i in range(20_000)),
    ]
    (folder / "forged.csv").write_text("\n".join(lines) + "\n")
    return "forged.csv"


def covariate(folder, text):
    (folder / "known.csv").write_text(text, encoding="utf-8")
    return ("--covariate", "known.csv")


@pytest.mark.parametrize("command", ["estimate", "simulate", "plan"])
def test_the_help_names_every_decoder_and_the_default(call, command):
    told = " ".join(call(command, "--help").out.split())
    assert "|".join(DECODER_TABLE) in told
    default = "Default: auto," if command == "plan" else "[default: auto]"
    assert default in told


def test_the_text_keeps_the_readings_apart(call, reports):
    result = call("estimate", "lunch.toml", reports)
    assert (result.code, result.err) == (0, "")
    first, second, blank, above, below, *rows = result.out.splitlines()
    assert first.startswith("200 reports. ")
    assert re.fullmatch(r"Decoder: auto \(.*(empirical Bayes|projection)\)\.", second)
    assert blank == ""
    assert above.split("  ")[-1].strip() == "unbiased estimate"
    assert above.split()[0] == "share"
    assert below.split() == ["label", "auto", "and", "its", "95%", "interval"]
    assert [row.split()[0] for row in rows] == ["park", "café", "clinic", "bar", "office"]
    written = list(
        csv.DictReader(io.StringIO(call("estimate", "lunch.toml", reports, "-o", "-").out))
    )
    for row, found in zip(rows, written, strict=True):
        expected = [
            f"{float(found[name]):.4f}" for name in ("frequency", "unbiased", "low", "high")
        ]
        assert row.replace("(", "").replace(")", "").replace(" to ", " ").split()[1:] == expected


def test_the_text_shows_the_most_frequent_of_many(folder, call):
    (folder / "many.toml").write_text(
        'name="m"\n[domain]\nkind="range"\nsize=140\n[context]\nkind="uniform"\nepsilon=6.0\n'
    )
    (folder / "a.csv").write_text("n\n" + "37\n" * 900 + "3\n" * 100)
    call("privatize", "many.toml", "a.csv", "--column", "n", "-o", "m.csv")
    lines = call("estimate", "many.toml", "m.csv").out.splitlines()
    assert lines[1].startswith("Decoder: auto (")
    assert lines[5].split()[0] == "37"
    assert lines[-1] == "… the 20 most frequent of 140 labels; -o FILE.csv writes all."
    assert len(lines) == 5 + 20 + 1


def test_decoders_without_models_go_by_their_name(call, reports):
    result = call("estimate", "lunch.toml", reports, "--decoder", "projection")
    assert result.out.splitlines()[1] == "Decoder: projection."


@pytest.mark.parametrize("decoder", DECODER_TABLE)
def test_every_decoder_can_be_chosen(call, reports, decoder):
    found = json.loads(call("estimate", "lunch.toml", reports, "--decoder", decoder, "--json").out)
    assert found["decoder"] == decoder
    assert set(found["fit"]) == {"p_value", "verdict"}
    assert 0 <= found["fit"]["p_value"] <= 1
    assert isinstance(found["details"], dict)


def test_default_decoder_has_models_for_grids(folder, call):
    (folder / "at.csv").write_text("lat,lon\n" + "1.5,1.5\n2.5,0.5\n" * 200)
    call(
        "privatize", "grid.toml", "at.csv", "--latitude", "lat", "--longitude", "lon", "-o", "g.csv"
    )
    found = json.loads(call("estimate", "grid.toml", "g.csv", "--json").out)
    assert set(found["details"]["models"]) <= {"no order", "neighbours"}


def test_honest_reports_fit(call, reports):
    result = call("estimate", "lunch.toml", reports, "--json")
    assert json.loads(result.out)["fit"]["p_value"] > 1e-6
    assert result.err == ""


@pytest.mark.parametrize(
    "form", [(), ("--json",), ("-o", "-"), ("-o", "e.csv", "--html", "e.html")]
)
def test_impossible_reports_cause_a_warning(folder, call, forged, form):
    result = call("estimate", "lunch.toml", forged, *form)
    assert result.code == 0
    assert result.err.startswith("Warning: The reports cannot have come from this")
    assert result.err.count("\n") == 1
    assert "Do not rely on this estimate" in result.err
    if form == ("--json",):
        fit = json.loads(result.out)["fit"]
        assert fit["p_value"] < 1e-6
        assert fit["verdict"] in result.err
    if "--html" in form:
        page = (folder / "e.html").read_text(encoding="utf-8")
        assert "These reports do not fit the mechanism." in page


def test_details_are_valid_json():
    """The likelihood of reports that nobody sends is an infinity."""
    assert [_finite_or_null(value) for value in (1.5, float("-inf"), float("nan"), True)] == [
        1.5,
        None,
        None,
        True,
    ]


# --- covariates -----------------------------------------------------------------------------------

FIVE = "label,visitors\nbar,1\nclinic,2\ncafé,30\npark,400\noffice,5\n"


@pytest.mark.parametrize("decoder", ["auto", "empirical-bayes"])
def test_covariate_is_passed_in_domain_order(folder, call, reports, decoder, monkeypatch):
    handed = []
    original = sf.Survey.estimate

    def estimate(self, tally, **options):
        handed.append(options["covariate"])
        return original(self, tally, **options)

    monkeypatch.setattr(sf.Survey, "estimate", estimate)
    result = call("estimate", "lunch.toml", reports, "--decoder", decoder, *covariate(folder, FIVE))
    assert (result.code, result.err) == (0, "")
    assert handed[0].tolist() == [400, 30, 2, 1, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FIVE.replace("bar,1\n", ""), "1 are missing, starting with 'bar'"),
        (FIVE.replace("bar,1", "zoo,1"), "not a label"),
        (FIVE + "bar,1\n", "twice"),
        (FIVE.replace(",30", ",many"), "numbers only"),
        (FIVE.replace(",30", ",inf"), "must be finite numbers"),
        (FIVE.replace("label", "place"), "label column and exactly one other column"),
        ("label\npark\n", "label column and exactly one other column"),
        ("label,a,b\npark,1,2\n", "label column and exactly one other column"),
        ("", "at least one row"),
    ],
)
def test_a_wrong_covariate_is_refused_before_reports_are_read(error_from, folder, text, said):
    assert said in error_from(
        "estimate", "lunch.toml", "no-such-reports.csv", *covariate(folder, text)
    )


@pytest.mark.parametrize("decoder", ["projection", "likelihood", "unbiased"])
def test_unused_covariate_is_rejected(error_from, folder, decoder):
    said = error_from(
        "estimate", "lunch.toml", "no.csv", "--decoder", decoder, *covariate(folder, FIVE)
    )
    assert "does not use a covariate" in said


def test_covariate_must_not_be_an_output(error_from, folder, reports):
    error_from("estimate", "lunch.toml", reports, *covariate(folder, FIVE), "-o", "known.csv")
    assert "cannot be read" in error_from(
        "estimate", "lunch.toml", reports, "--covariate", "absent.csv"
    )


# --- tables and labels ----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["xlsx", "parquet"])
def test_estimate_is_written_as_a_table(call, folder, reports, suffix):
    name = f"estimate.{suffix}"
    assert call("estimate", "lunch.toml", reports, "-o", name).code == 0
    if suffix == "parquet":
        labels = pq.read_table(name).column("label").to_pylist()
    else:
        sheet = openpyxl.load_workbook(name).active
        labels = [row[0] for row in sheet.iter_rows(min_row=2, values_only=True)]
    assert labels == ["park", "café", "clinic", "bar", "office"]


@pytest.mark.parametrize(("output", "is_noted"), [("e.csv", True), ("-", True), ("e.xlsx", False)])
def test_csv_with_labels_like_formulas_causes_a_note(folder, call, output, is_noted):
    (folder / "a.csv").write_text("id,a\n" + "1,=1+1\n2,no\n" * 20)
    assert call("init", "--from", "a.csv", "--column", "a", "new.toml").code == 0
    assert call("privatize", "new.toml", "a.csv", "-o", "r.csv").code == 0
    result = call("estimate", "new.toml", "r.csv", "-o", output, "--html", "e.html")
    assert result.code == 0
    note = "Some labels begin with =, +, - or @. A spreadsheet that opens the CSV file may compute"
    assert (note in result.err) is is_noted
    assert note in (folder / "e.html").read_text("utf-8")  # the page has a CSV file to download
    if output == "e.csv":
        rows = list(csv.reader((folder / output).read_text("utf-8").splitlines()))
        assert [row[0] for row in rows] == ["label", "=1+1", "no"]


def test_csv_with_other_labels_causes_no_note(folder, call, reports):
    result = call("estimate", "lunch.toml", reports, "-o", "e.csv", "--html", "e.html")
    assert "spreadsheet" not in result.err + (folder / "e.html").read_text("utf-8")


def test_ordered_labels_are_all_shown_in_order(folder, call):
    (folder / "ages.toml").write_text(
        'name="m"\n[domain]\nkind="range"\nstart=18\nsize=60\n'
        '[context]\nkind="uniform"\nepsilon=4.0\n'
    )
    (folder / "a.csv").write_text("n\n" + "37\n" * 90 + "30\n" * 10)
    call("privatize", "ages.toml", "a.csv", "--column", "n", "-o", "m.csv")
    rows = call("estimate", "ages.toml", "m.csv").out.splitlines()[5:]
    assert [row.split()[0] for row in rows] == [str(age) for age in range(18, 78)]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["under 18", "18 to 29", "30 to 59", "60 or more"], True),
        (["0-4.5", "4.5-9", "9-13"], True),
        ([1, 2, 30], True),
        (["30 to 59", "18 to 29"], False),
        (["park", "café"], False),
        (["1 child", "none"], False),
    ],
)
def test_intervals_and_integers_are_ordered(labels, expected):
    assert is_ordered(sf.Domain(labels)) is expected
    assert is_ordered(sf.Domain(labels, other="no answer")) is expected
    both = sf.Domain(["no answer", *labels, "another"], other="another")
    assert is_ordered(both, "no answer") is expected


@pytest.mark.parametrize(
    "broken", ["pages.report_page", "charts.Chart.to_png", "tables.table_bytes"]
)
def test_no_output_is_written_unless_all_are(folder, call, reports, monkeypatch, broken):
    def fail(*arguments, **options):
        raise InvalidSetting("CANNOT")

    monkeypatch.setattr(f"sfumato.{broken}", fail)
    before = sorted(folder.iterdir())
    outputs = ["-o", "e.xlsx", "--png", "e.png"]
    if broken == "pages.report_page":
        outputs += ["--html", "e.html"]
    result = call("estimate", "lunch.toml", reports, *outputs)
    assert result.code == 2
    assert "CANNOT" in result.err
    assert sorted(folder.iterdir()) == before


def test_long_labels_do_not_push_numbers_off_the_line(folder, call, monkeypatch):
    long_label = "a" * 100 + "z" * 100
    (folder / "long.toml").write_text(
        f'name="m"\n[domain]\nkind="labels"\nlabels=["{long_label}", "b"]\n'
        '[context]\nkind="uniform"\nepsilon=4.0\n'
    )
    (folder / "a.csv").write_text("n\n" + "b\n" * 90)
    call("privatize", "long.toml", "a.csv", "--column", "n", "-o", "m.csv")
    assert long_label in call("estimate", "long.toml", "m.csv").out
    text = terminal_output("estimate", "long.toml", "m.csv", columns=80)
    row = next(line for line in text.splitlines() if "aaa" in line)
    assert re.search(r"aaa…zzz", row)
    assert len(row) <= 80


def terminal_output(*arguments, columns):
    """Run the command on a pseudo-terminal, and return what it prints."""
    pty = pytest.importorskip("pty")
    main_end, terminal = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns)}
    command = [sys.executable, "-m", "sfumato", *arguments]
    subprocess.run(command, stdout=terminal, stderr=terminal, env=environment, check=True)
    os.close(terminal)
    output = b""
    with contextlib.suppress(OSError):  # at the end, Linux raises an error
        while block := os.read(main_end, 65536):
            output += block
    os.close(main_end)
    return output.decode()


def test_charts_with_characters_of_any_script_print_no_warning(folder, call):
    (folder / "scripts.toml").write_text(
        'name="m"\n[domain]\nkind="labels"\nlabels=["寿司", "🍕", "\U00016a00"]\n'
        '[context]\nkind="uniform"\nepsilon=4.0\n',
        encoding="utf-8",
    )
    (folder / "a.csv").write_text("n\n" + "寿司\n" * 90, encoding="utf-8")
    call("privatize", "scripts.toml", "a.csv", "--column", "n", "-o", "m.csv")
    result = run_process("estimate", "scripts.toml", "m.csv", "--png", "plot.png")
    messages = result.stderr.decode()
    assert result.returncode == 0
    assert (folder / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert messages == ""
