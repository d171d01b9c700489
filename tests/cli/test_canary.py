"""A person's value never shows: not on the terminal, not in a file left behind."""

import gzip
import json

import pyarrow as pa
import pytest

from support.command import read_folder, write_parquet

CANARY = "kanarienvogel-4711"
LABELS = ["--column", "place"]
POSITIONS = ["--latitude", "lat", "--longitude", "lon"]

FILES = {
    "unknown.csv": ("lunch", LABELS, f"place\npark\n{CANARY}\n"),
    "no-header.csv": ("lunch", LABELS, f"{CANARY}\npark\n"),
    "no-header-two.csv": ("lunch", LABELS, f"{CANARY},{CANARY}\npark,1\n"),
    "ragged.csv": ("lunch", LABELS, f"place,age\n{CANARY},1\n{CANARY}\n"),
    "quote.csv": ("lunch", LABELS, f'place\n"{CANARY}\npark\n'),
    "age.csv": ("ages", LABELS, f"place\n1\n{CANARY}\n"),
    "position.csv": ("grid", POSITIONS, f"lat,lon\n1,1\n{CANARY},1\n"),
    "cell.csv": ("h3", LABELS, f"place\n{CANARY}\n"),
    "latin.csv": ("lunch", LABELS, f"place\n{CANARY}é\n".encode("latin-1")),
    "cut.csv.gz": ("lunch", LABELS, gzip.compress(f"place\n{CANARY}\n".encode() * 9)[:-9]),
    "carriage.csv": ("lunch", LABELS, f"{CANARY}\r{CANARY}\r"),
}
COLUMNS = {
    "unknown": ("lunch", LABELS, {"place": ["park", CANARY]}),
    "dictionary": ("lunch", LABELS, {"place": pa.array(["park", CANARY]).dictionary_encode()}),
    "large": ("lunch", LABELS, {"place": pa.array(["park", CANARY], pa.large_string())}),
    "binary": ("lunch", LABELS, {"place": [b"park", CANARY.encode()]}),
    "list": ("lunch", LABELS, {"place": [["park"], [CANARY]]}),
    "struct": ("lunch", LABELS, {"place": [{"a": CANARY}]}),
    "age": ("ages", LABELS, {"place": ["1", CANARY]}),
    "position": ("grid", POSITIONS, {"lat": ["1", CANARY], "lon": [1.0, 2.0]}),
}


@pytest.mark.parametrize("command", ["privatize", "simulate"])
@pytest.mark.parametrize("name", FILES)
def test_rejected_csv_values_are_never_shown(folder, error_from, name, command):
    survey, columns, content = FILES[name]
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    output = ["-o", "out.csv"] if command == "privatize" else []
    error_from(command, f"{survey}.toml", name, *columns, *output, never=[CANARY, CANARY[:6]])


@pytest.mark.parametrize("command", ["privatize", "simulate"])
@pytest.mark.parametrize("name", COLUMNS)
def test_rejected_parquet_values_are_never_shown(folder, error_from, name, command):
    survey, columns, data = COLUMNS[name]
    write_parquet(folder / "a.parquet", **data)
    output = ["-o", "out.parquet"] if command == "privatize" else []
    error_from(
        command, f"{survey}.toml", "a.parquet", *columns, *output, never=[CANARY, CANARY[:6]]
    )


@pytest.mark.parametrize("name", FILES)
def test_estimate_shows_nothing_of_other_files(folder, error_from, name):
    content = FILES[name][2]
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    error_from("estimate", "lunch.toml", name, never=[CANARY])


def test_init_errors_do_not_echo_values(folder, error_from):
    (folder / "a.csv").write_text(f"place,city\n{CANARY},Rome\n{CANARY},Oslo\npark,Oslo\n")
    message = error_from(
        "init",
        "--from",
        "a.csv",
        "--column",
        "place",
        "--blocks",
        "city",
        "new.toml",
        never=[CANARY],
    )
    assert "two blocks" in message
    (folder / "b.csv").write_text(f"place,city\n{CANARY},\npark,Oslo\n")
    error_from(
        "init",
        "--from",
        "b.csv",
        "--column",
        "place",
        "--blocks",
        "city",
        "new.toml",
        never=[CANARY],
    )
    (folder / "c.csv").write_text(f"{CANARY}\npark\n")
    error_from("init", "--from", "c.csv", "--column", "place", "new.toml", never=[CANARY])


def test_values_mapped_to_other_are_never_shown(folder, call):
    (folder / "a.csv").write_text("place\n" + f"park\n{CANARY}\n" * 100)
    results = [
        call("privatize", "other.toml", "a.csv", *LABELS, "-o", "r.csv"),
        call("privatize", "other.toml", "a.csv", *LABELS, "-o", "r.parquet"),
        call("privatize", "other.toml", "a.csv", *LABELS, "-o", "-"),
        call("simulate", "other.toml", "a.csv", *LABELS, "--json"),
        call("estimate", "other.toml", "r.csv", "-o", "e.csv", "--html", "e.html", "--json"),
    ]
    assert [result.code for result in results] == [0] * 5
    assert all(CANARY not in result.both for result in results)
    left = {
        path.name: content for path, content in read_folder(folder).items() if path.name != "a.csv"
    }
    assert {"r.csv", "r.parquet", "e.csv", "e.html"} <= set(left)
    assert not [name for name, content in left.items() if CANARY.encode() in content]


def test_report_files_contain_no_other_columns(folder, call):
    (folder / "a.csv").write_text("name,place\n" + f"{CANARY},park\n" * 50)
    call("privatize", "lunch.toml", "a.csv", *LABELS, "-o", "r.csv")
    lines = (folder / "r.csv").read_text().splitlines()
    assert len(lines) == 51
    assert all(line.isdigit() for line in lines[1:])


def test_labels_are_shown_on_request(folder, call):
    (folder / "a.csv").write_text(f"place\npark\n{CANARY}\n")
    assert call("init", "--from", "a.csv", "--column", "place", "new.toml").code == 0
    assert CANARY in (folder / "new.toml").read_text()
    call("privatize", "new.toml", "a.csv", *LABELS, "-o", "r.csv")
    labels = [
        row["label"]
        for row in json.loads(call("estimate", "new.toml", "r.csv", "--json").out)["symbols"]
    ]
    assert CANARY in labels
