"""The same answers in every dress: CSV, gzip, Parquet and pipes; and report files."""

import csv
import gzip
import io
import json
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.batches import TallyExport, tally_to_json
from sfumato.foundation.decoder_table import DECODER_TABLE
from sfumato.survey import Survey
from support.command import LUNCH, PLACES, run_process, write_parquet

PEOPLE = PLACES * 3
LABELS = ["--column", "place"]


def _csv(values, *, lineterminator="\n", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=lineterminator, quoting=quoting)
    writer.writerow(["age", "place"])
    writer.writerows([[i, value] for i, value in enumerate(values)])
    return text.getvalue().encode("utf-8")


def _parquet_bytes(column, **options):
    sink = io.BytesIO()
    pq.write_table(pa.table({"age": range(len(column)), "place": column}), sink, **options)
    return sink.getvalue()


PLAIN = _csv(PEOPLE)
DRESSES = {
    "csv": PLAIN,
    "crlf": _csv(PEOPLE, lineterminator="\r\n"),
    "quoted": _csv(PEOPLE, quoting=csv.QUOTE_ALL),
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN,
    "no last newline": PLAIN.rstrip(b"\n"),
    "blank lines": PLAIN.replace(b"\n", b"\n\n"),
    "gzip": gzip.compress(PLAIN),
    "gzip in two members": gzip.compress(PLAIN[:700]) + gzip.compress(PLAIN[700:]),
    "gzip with byte-order mark": gzip.compress(b"\xef\xbb\xbf" + PLAIN),
    "decomposed": _csv([place.replace("é", "e\u0301") for place in PEOPLE]),
    "parquet string": _parquet_bytes(PEOPLE),
    "parquet large_string": _parquet_bytes(pa.array(PEOPLE, pa.large_string())),
    "parquet string_view": _parquet_bytes(pa.array(PEOPLE, pa.string_view())),
    "parquet dictionary": _parquet_bytes(pa.array(PEOPLE).dictionary_encode()),
    "parquet small dictionary": _parquet_bytes(
        pa.array(PEOPLE).cast(pa.dictionary(pa.int8(), pa.large_string()))
    ),
    "parquet row groups": _parquet_bytes(PEOPLE, row_group_size=7),
    "parquet plain": _parquet_bytes(PEOPLE, use_dictionary=False, compression="none"),
    "parquet without arrow's schema": _parquet_bytes(PEOPLE, store_schema=False),
}


@pytest.mark.parametrize("dress", DRESSES)
@pytest.mark.parametrize("name", ["answers.csv", "answers.parquet", "answers.gz", "answers", "-"])
def test_the_same_numbers_from_every_format_by_content_not_by_name(folder, call, dress, name):
    expected = _simulated(call, PLAIN, folder)
    if name != "-":
        (folder / name).write_bytes(DRESSES[dress])
    piped = DRESSES[dress] if name == "-" else b""
    result = call(
        "simulate", "lunch.toml", name, *LABELS, "--runs", 3, "--seed", 1, "--json", stdin=piped
    )
    assert (result.code, result.err) == (0, "")
    assert result.out == expected


def _simulated(call, content, folder):
    (folder / "plain.csv").write_bytes(content)
    return call(
        "simulate", "lunch.toml", "plain.csv", *LABELS, "--runs", 3, "--seed", 1, "--json"
    ).out


STRANGE = [
    'say "hi"',
    "a, b",
    "two\nlines",
    "NA",
    "null",
    "nan",
    "None",
    "N/A",
    "-",
    "0",
    " spaced ",
    "🙂",
    "\t",
    "'",
]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
def test_strange_labels_are_labels(folder, call, quoting):
    quoted = ", ".join(json.dumps(label, ensure_ascii=False) for label in STRANGE)
    text = (
        f'name = "s"\n[domain]\nkind = "labels"\nlabels = [{quoted}]\n'
        '[context]\nkind = "uniform"\nepsilon = 20\n'
    )
    (folder / "s.toml").write_text(text, encoding="utf-8")
    (folder / "a.csv").write_bytes(_csv(STRANGE * 100, quoting=quoting))
    write_parquet(folder / "a.parquet", place=STRANGE * 100)
    found = []
    for name in ("a.csv", "a.parquet"):
        result = call("privatize", "s.toml", name, *LABELS, "-o", "r.csv")
        assert (result.code, result.err) == (
            0,
            f"{100 * len(STRANGE):,} rows: {100 * len(STRANGE):,} counted.\n",
        )
        found.append(json.loads(call("estimate", "s.toml", "r.csv", "--json").out)["symbols"])
    for rows in found:
        assert [row["label"] for row in rows] == STRANGE
        # At ε = 20 nearly nobody lies: every label has its share.
        assert all(abs(row["frequency"] - 1 / len(STRANGE)) < 0.01 for row in rows)


def test_the_estimate_as_csv_reads_back_strange_labels(folder, call):
    labels = ", ".join(json.dumps(label, ensure_ascii=False) for label in STRANGE)
    text = (
        f'name = "s"\n[domain]\nkind = "labels"\nlabels = [{labels}]\n'
        '[context]\nkind = "uniform"\nepsilon = 1\n'
    )
    (folder / "s.toml").write_text(text, encoding="utf-8")
    (folder / "a.csv").write_bytes(_csv(STRANGE * 9))
    call("privatize", "s.toml", "a.csv", *LABELS, "-o", "r.csv")
    call("estimate", "s.toml", "r.csv", "-o", "e.csv")
    piped = call("estimate", "s.toml", "r.csv", "-o", "-").out
    content = (folder / "e.csv").read_bytes().decode("utf-8")
    assert piped == content
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    assert [row["label"] for row in rows] == STRANGE
    assert list(rows[0]) == ["label", "frequency", "unbiased", "standard_error", "low", "high"]


AGES = list(range(-2, 8)) * 30
AGE_DRESSES = {
    "csv": _csv(AGES),
    "int64": _parquet_bytes(AGES),
    "int8": _parquet_bytes(pa.array(AGES, pa.int8())),
    "text": _parquet_bytes([str(age) for age in AGES]),
    "large text": _parquet_bytes(pa.array([str(age) for age in AGES], pa.large_string())),
    "text view": _parquet_bytes(pa.array([str(age) for age in AGES], pa.string_view())),
    "dictionary of text": _parquet_bytes(pa.array([str(age) for age in AGES]).dictionary_encode()),
    "dictionary of integers": _parquet_bytes(pa.array(AGES).dictionary_encode()),
}


@pytest.mark.parametrize("dress", AGE_DRESSES)
def test_integers_of_every_type_agree(folder, call, dress):
    outs = []
    for name, content in (("csv", AGE_DRESSES["csv"]), ("other", AGE_DRESSES[dress])):
        (folder / name).write_bytes(content)
        result = call("simulate", "ages.toml", name, *LABELS, "--seed", 1, "--json")
        assert (result.code, result.err) == (0, "")
        outs.append(result.out)
    assert outs[0] == outs[1]


@pytest.mark.parametrize(
    "column", [["1", "2", "30", "x"], pa.array([1, 2, 30, 4]), pa.array([1, 2, 30, None])], ids=str
)
def test_labels_that_are_integers_match_text_and_integers(folder, call, column):
    (folder / "a.bin").write_bytes(_parquet_bytes(column))
    (folder / "b.csv").write_bytes(_csv(["1", "2", "30", "x"]))
    results = []
    for name in ("a.bin", "b.csv"):
        result = json.loads(call("simulate", "numbered.toml", name, *LABELS, "--json").out)
        assert result.pop("rows")["counted"] == 4
        results.append(result)
    assert results[0] == results[1]
    assert results[0]["people"] == 4


def test_labels_that_are_digits_match_integers(folder, call):
    (folder / "s.toml").write_text(
        LUNCH.replace('"park"', '"1"').replace('"café"', '"22"'), encoding="utf-8"
    )
    (folder / "a.parquet").write_bytes(_parquet_bytes(pa.array([1, 22, 22])))
    (folder / "b.csv").write_bytes(_csv(["1", "22", "22"]))
    outs = {
        call("simulate", "s.toml", name, *LABELS, "--json").out for name in ("a.parquet", "b.csv")
    }
    assert len(outs) == 1
    assert "total_variation" in outs.pop()


@pytest.mark.parametrize(
    ("survey", "south", "west", "step"), [("grid", 0.0, 0.0, 0.37), ("h3", 40.72, -74.0, 0.004)]
)
def test_positions_from_csv_and_parquet(folder, call, survey, south, west, step):
    latitudes = [south + i % 10 * step for i in range(50)]
    longitudes = [west + i % 7 * step for i in range(50)]
    lines = [f"{a!r},{b!r},x" for a, b in zip(latitudes, longitudes, strict=True)]
    (folder / "a.csv").write_text("lat,lon,more\n" + "\n".join(lines) + "\n")
    pq.write_table(
        pa.table({"more": ["x"] * 50, "lon": longitudes, "lat": latitudes}), folder / "a.parquet"
    )
    options = ["--latitude", "lat", "--longitude", "lon"]
    outs = {
        call("simulate", f"{survey}.toml", n, *options, "--json").out
        for n in ("a.csv", "a.parquet")
    }
    assert len(outs) == 1
    assert json.loads(outs.pop())["people"] == 50
    for name in ("a.csv", "a.parquet"):
        assert call("privatize", f"{survey}.toml", name, *options, "-o", "r.parquet").code == 0
        assert (
            json.loads(call("estimate", f"{survey}.toml", "r.parquet", "--json").out)["reports"]
            == 50
        )


def test_whole_degrees_and_small_floats_are_positions(folder, call):
    for kind in (pa.int64(), pa.int8(), pa.float32(), pa.float64()):
        write_parquet(
            folder / "a.parquet", lat=pa.array([0, 1, 3], kind), lon=pa.array([3, 2, 0], kind)
        )
        result = call(
            "privatize",
            "grid.toml",
            "a.parquet",
            "--latitude",
            "lat",
            "--longitude",
            "lon",
            "-o",
            "-",
        )
        assert result.out.count("\n") == 4


def test_h3_cells_as_text(folder, call):
    cells = list(Survey.load(folder / "h3.toml").context.domain.labels)
    (folder / "a.csv").write_bytes(_csv(cells))
    assert call("privatize", "h3.toml", "a.csv", *LABELS, "-o", "r.csv").code == 0


# --- reports --------------------------------------------------------------------------------------


def _reports_in_both(folder, call):
    """The same reports as CSV and as Parquet."""
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.csv")
    header, *lines = (folder / "r.csv").read_text().split()
    marks = {b"sfumato.survey": header.strip('"').partition("@")[2].partition("#")[0].encode()}
    table = pa.table({"report": pa.array(map(int, lines), pa.uint32())}).replace_schema_metadata(
        marks
    )
    pq.write_table(table, folder / "r.parquet", row_group_size=33)


def test_report_files_carry_the_fingerprint(folder, call):
    fingerprint = Survey.load(folder / "lunch.toml").fingerprint
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.csv")
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.parquet")
    piped = call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "-").out
    header = re.compile(f'"report@{fingerprint}#[0-9a-f]{{32}}"')
    assert header.fullmatch((folder / "r.csv").read_text().splitlines()[0])
    assert header.fullmatch(piped.splitlines()[0])
    schema = pq.read_schema(folder / "r.parquet")
    assert re.fullmatch(b"[0-9a-f]{32}", schema.metadata[b"sfumato.batch"])
    assert schema.metadata[b"sfumato.survey"] == fingerprint.encode()
    assert schema.field("report").type == pa.uint32()


def test_estimates_from_csv_and_parquet_of_the_same_reports_are_equal(folder, call):
    _reports_in_both(folder, call)
    (folder / "r.csv.gz").write_bytes(gzip.compress((folder / "r.csv").read_bytes()))
    outs = {
        call("estimate", "lunch.toml", name, "--json").out
        for name in ("r.csv", "r.parquet", "r.csv.gz")
    }
    for name in ("r.csv", "r.parquet"):
        outs.add(
            call("estimate", "lunch.toml", "-", "--json", stdin=(folder / name).read_bytes()).out
        )
    assert len(outs) == 1
    assert json.loads(outs.pop())["reports"] == len(PLACES)


def test_files_of_reports_add_up(folder, call):
    _reports_in_both(folder, call)
    found = json.loads(call("estimate", "lunch.toml", "r.csv", "r.parquet", "--json").out)
    once = json.loads(call("estimate", "lunch.toml", "r.csv", "--json").out)
    assert found["reports"] == 2 * once["reports"]
    np.testing.assert_allclose(
        [r["unbiased"] for r in found["symbols"]], [r["unbiased"] for r in once["symbols"]]
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_copy_of_a_report_file_under_another_name_is_not_counted_twice(folder, call, kind):
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", f"r.{kind}")
    (folder / f"copy.{kind}").write_bytes((folder / f"r.{kind}").read_bytes())
    refused = call("estimate", "lunch.toml", f"r.{kind}", f"copy.{kind}")
    assert (refused.code, refused.out) == (2, "")
    assert f"copy.{kind} and r.{kind} contain the same reports" in refused.err


def _exported(folder, number, ids, reports):
    survey = Survey.load(folder / "lunch.toml")
    sent = TallyExport.from_tally(
        ids[0], survey.tally(np.asarray(reports, dtype=np.uint32)), tuple(ids[1:])
    )
    (folder / f"t{number}.json").write_bytes(tally_to_json(sent))


def test_exported_tallies_add_up_with_report_files(folder, call):
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.csv")
    _exported(folder, 1, [bytes(16)], [0, 1, 1])
    _exported(folder, 2, [b"2" * 16, b"3" * 16], [2])
    found = json.loads(call("estimate", "lunch.toml", "t1.json", "r.csv", "t2.json", "--json").out)
    assert found["reports"] == len(PLACES) + 4


@pytest.mark.parametrize(
    "ids", [[bytes(16)], [b"9" * 16, bytes(16)]], ids=["the same", "one inside another"]
)
def test_an_exported_tally_is_not_counted_twice(folder, call, ids):
    _exported(folder, 1, [bytes(16)], [0, 1, 1])
    _exported(folder, 2, ids, [2])
    refused = call("estimate", "lunch.toml", "t1.json", "t2.json")
    assert refused.code == 2
    assert "counted twice" in refused.err


def test_invalid_tally_files_are_named(folder, call):
    (folder / "t.json").write_text("{}")
    refused = call("estimate", "lunch.toml", "t.json")
    assert (refused.code, "t.json: a tally must be an object whose format" in refused.err) == (
        2,
        True,
    )


def test_the_json_of_an_estimate(folder, call):
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.parquet")
    found = json.loads(call("estimate", "lunch.toml", "r.parquet", "--json").out)
    assert set(found) == {
        "survey",
        "reports",
        "decoder",
        "details",
        "fit",
        "manipulation",
        "repeated",
        "symbols",
    }
    assert found["repeated"] is False
    assert found["survey"] == Survey.load(folder / "lunch.toml").fingerprint
    assert found["decoder"] == "auto"
    assert [row["label"] for row in found["symbols"]] == ["park", "café", "clinic", "bar", "office"]
    for row in found["symbols"]:
        assert set(row) == {"label", "frequency", "unbiased", "standard_error", "low", "high"}
        assert 0 <= row["low"] <= row["high"] <= 1
    assert abs(sum(row["frequency"] for row in found["symbols"]) - 1) < 1e-9


def test_a_single_report_makes_valid_json(folder, call):
    (folder / "a.csv").write_text("place\npark\n")
    call("privatize", "lunch.toml", "a.csv", *LABELS, "-o", "r.csv")
    for decoder in DECODER_TABLE:
        out = call("estimate", "lunch.toml", "r.csv", "--json", "--decoder", decoder).out
        json.loads(out, parse_constant=lambda name: pytest.fail(name))


def test_the_page_and_the_table_are_written(folder, call):
    call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.parquet")
    result = call("estimate", "lunch.toml", "r.parquet", "-o", "e.csv", "--html", "e.html")
    assert (result.code, result.err) == (0, "")
    assert "café" in result.out
    assert (
        (folder / "e.html")
        .read_text(encoding="utf-8")
        .lstrip()
        .lower()
        .startswith("<!doctype html")
    )


def test_reports_are_fresh_each_time(call):
    call_once = [
        call("privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "-").out for _ in range(2)
    ]
    assert call_once[0] != call_once[1]


def test_pipes_from_end_to_end(folder):
    """Parquet through a pipe in, CSV through a pipe on, an estimate out."""
    write_parquet(folder / "a.parquet", place=PLACES)
    sfumato = f"{sys.executable} -m sfumato"
    line = (
        f"cat a.parquet | {sfumato} privatize lunch.toml - --column place -o - "
        f"| {sfumato} estimate lunch.toml - --json"
    )
    run = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, check=False)  # noqa: S607
    assert run.stderr == b"200 rows: 200 counted.\n"
    assert json.loads(run.stdout)["reports"] == len(PLACES)


def test_two_million_rows_in_little_memory(folder):
    places = pa.DictionaryArray.from_arrays(np.arange(2_000_000, dtype=np.int32) % 5, PLACES[:5])
    pq.write_table(pa.table({"place": places.cast(pa.string())}), folder / "big.parquet")
    script = (
        "import resource, subprocess, sys\n"
        "command = [sys.executable, '-m', 'sfumato', *sys.argv[1:]]\n"
        "subprocess.run(command, check=True, stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    command = [
        sys.executable,
        "-c",
        script,
        "privatize",
        "lunch.toml",
        "big.parquet",
        *LABELS,
        "-o",
        "r.parquet",
    ]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(run.stdout) * unit < 500e6
    assert pq.read_metadata(folder / "r.parquet").num_rows == 2_000_000


def test_privatize_never_loads_the_simulation(folder):
    script = (
        "import sys\nfrom sfumato.cli.main import run\n"
        "try: run()\nexcept SystemExit as end:\n"
        "    print(end.code, sorted(m for m in sys.modules if 'simulation' in m))"
    )
    arguments = ["privatize", "lunch.toml", "answers.csv", *LABELS, "-o", "r.csv"]
    run = subprocess.run(
        [sys.executable, "-c", script, *arguments], cwd=folder, capture_output=True, check=False
    )
    assert run.stdout.decode().splitlines()[-1] == "0 []"


def test_help_loads_no_numpy(folder):
    script = (
        "import sys\nfrom sfumato.cli.main import run\n"
        "try: run()\nexcept SystemExit:\n"
        "    print(sorted({'numpy', 'pyarrow', 'scipy', 'rich'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, "--help"], cwd=folder, capture_output=True, check=False
    )
    assert run.stdout.decode().splitlines()[-1] == "[]"


def test_a_named_pipe_is_a_file(folder):
    line = (
        f"mkfifo p; cat answers.csv > p & {sys.executable} -m sfumato privatize lunch.toml p "
        "--column place -o r.csv"
    )
    run = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, check=False)  # noqa: S607
    assert (run.returncode, run.stderr) == (0, b"200 rows: 200 counted.\n")
    assert run_process("estimate", "lunch.toml", "r.csv", cwd=folder).returncode == 0
