"""No person is lost, none counted twice, no file overwritten that was not meant to be."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli import main


def test_an_empty_line_of_a_file_of_one_column_is_a_person_without_an_answer(
    folder, call, error_from
):
    (folder / "blank.csv").write_text("place\npark\n\nbar\n", encoding="utf-8")
    said = error_from(
        "privatize", "lunch.toml", "blank.csv", "--column", "place", "-o", "reports.parquet"
    )
    assert "1 of 3 rows has no answer" in said
    assert "the first in data row 2" in said
    result = call(
        "privatize", "other.toml", "blank.csv", "--column", "place", "-o", "reports.parquet"
    )
    assert result.out.startswith("3 reports")


def test_an_unclosed_quotation_mark_does_not_swallow_the_rest(folder, error_from):
    (folder / "quote.csv").write_text('id,place\n1,park\n2,"bar\n3,park\n4,bar\n', encoding="utf-8")
    said = error_from(
        "privatize", "other.toml", "quote.csv", "--column", "place", "-o", "reports.parquet"
    )
    assert "never closed" in said


def test_a_report_file_is_counted_once(folder, call, error_from):
    call("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "r.parquet")
    for again in ("r.parquet", "./r.parquet", str(folder / "r.parquet")):
        assert "counted twice" in error_from("estimate", "lunch.toml", "r.parquet", again)


@pytest.mark.parametrize(
    "arguments",
    [
        ("privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "./answers.csv"),
        ("verify", "lunch.toml", "-o", "x.json", "--resolved", "x.json"),
        ("verify", "lunch.toml", "-o", "lunch.toml"),
    ],
    ids=["answers", "two outputs", "the survey"],
)
def test_outputs_do_not_overwrite_inputs_or_each_other(error_from, arguments):
    assert "must not be the same file as an input" in error_from(*arguments)


def test_latitude_and_longitude_are_two_columns(folder, error_from):
    pq.write_table(pa.table({"lat": [1.0]}), folder / "p.parquet")
    said = error_from(
        "simulate", "grid.toml", "p.parquet", "--latitude", "lat", "--longitude", "lat"
    )
    assert "two different columns" in said


def test_parquet_text_that_is_not_utf8_is_refused(folder, error_from):
    broken = pa.Array.from_buffers(
        pa.string(),
        1,
        [
            None,
            pa.py_buffer((0).to_bytes(4, "little") + (2).to_bytes(4, "little")),
            pa.py_buffer(b"\xff\xfe"),
        ],
    )
    pq.write_table(pa.table({"place": broken}), folder / "latin.parquet")
    assert "UTF-8" in error_from(
        "privatize", "lunch.toml", "latin.parquet", "--column", "place", "-o", "r.parquet"
    )


def test_internal_errors_exit_2_without_a_traceback(error_from, monkeypatch):
    from sfumato.survey import Survey

    def fails(path):
        raise ZeroDivisionError("a value that must not be shown")

    monkeypatch.setattr(Survey, "load", fails)
    said = error_from("verify", "lunch.toml", never=["must not be shown"])
    assert "ZeroDivisionError" in said
    assert main.app is not None


def test_links_are_followed_and_devices_are_not_replaced(folder, call, error_from):
    (folder / "real.parquet").write_bytes(b"")
    (folder / "link.parquet").symlink_to("real.parquet")
    assert (
        call(
            "privatize", "lunch.toml", "answers.csv", "--column", "place", "-o", "link.parquet"
        ).code
        == 0
    )
    assert (folder / "link.parquet").is_symlink()
    assert (folder / "real.parquet").stat().st_size > 0
    assert "not a regular file" in error_from("verify", "lunch.toml", "-o", "/dev/null")


@pytest.mark.parametrize("time", ["2026-11-30", "2026-11-30T18:00:00+01:00", ""])
def test_opening_times_are_dates(folder, call, time):
    text = (folder / "lunch.toml").read_text(encoding="utf-8")
    (folder / "timed.toml").write_text(f'closes = "{time}"\n' + text, encoding="utf-8")
    assert call("verify", "timed.toml").code == 0


def test_other_opening_times_are_refused(folder, error_from):
    text = (folder / "lunch.toml").read_text(encoding="utf-8")
    (folder / "timed.toml").write_text('opens = "banana"\n' + text, encoding="utf-8")
    assert "opens must be a date" in error_from("verify", "timed.toml")
