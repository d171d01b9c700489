"""Wrong columns and delimiters: errors help, and never show the answers in a missing header."""

import pytest

from sfumato.errors import InvalidArgument, InvalidTable
from sfumato.tables import header
from sfumato.tables.csv_header import parse_delimiter, suggest_delimiter
from support.tables import read_values

BODY = "".join(f"{age},{place}\n" for age in range(20) for place in ("park", "bar"))


def _error(tmp_path, text, column, **options):
    path = tmp_path / "lunch.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidTable) as caught:
        read_values(path, column, **options)
    assert caught.value.__context__ is None
    return str(caught.value)


# --- columns --------------------------------------------------------------------------------------


def test_a_missing_column_is_answered_with_the_nearest_and_all_names(tmp_path):
    assert _error(tmp_path, "age,Place\n" + BODY, "palce") == (
        "lunch.csv has no column 'palce'; did you mean 'Place'? Its columns are age, Place."
    )
    assert _error(tmp_path, "age,Place\n" + BODY, "zzz") == (
        "lunch.csv has no column 'zzz'; its columns are age, Place."
    )


def test_up_to_twenty_columns_are_listed(tmp_path):
    header = ",".join(f"question {chr(97 + i)}" for i in range(25))
    row = ",".join(["1"] * 25)
    message = _error(tmp_path, f"{header}\n{row}\n", "zzz")
    assert "question t and 5 more." in message
    assert "question u" not in message


HEADERLESS = {
    "texts that recur": "Anna,clinic\nBob,park\nCarl,clinic\nDora,bar\n",
    "few texts": "Anna,clinic\nBob,park\n",
    "one line": "Anna,clinic\n",
    "one column": "clinic\nbar\npark\n" * 20,
    "many texts": "Anna,clinic\n" + "Bob,park\nCarl,bar\n" * 20 + "Dora,clinic\n",
    "a number": "Anna,31,clinic\nBob,32,bar\n",
    "a date": "Anna,2026-01-31,clinic\nBob,2026-02-01,bar\n",
    "an amount": "Anna,€ 1.200,clinic\nBob,€ 900,bar\n",
    "an empty cell": "Anna,,clinic\nBob,3,bar\n",
    "long text": f"Anna,clinic {'x' * 60}\n" + "Bob,1\n" * 20,
    "quoted": '"Anna","clinic"\n"Bob","park"\n"Carl","clinic"\n',
    "spaces": "Anna, clinic\n" + "Bob,clinic\nCarl,bar\n" * 20,
}


@pytest.mark.parametrize("text", HEADERLESS.values(), ids=HEADERLESS)
def test_answers_in_place_of_a_header_are_never_shown(tmp_path, text):
    message = _error(tmp_path, text, "clinics")
    assert "Anna" not in message
    assert "clinic" not in message.replace("'clinics'", "")
    assert "The first line must be a header" in message
    assert f"among its {len(text.splitlines()[0].split(','))} column" in message


def test_a_column_that_differs_by_case_is_shown_in_any_file(tmp_path):
    assert _error(tmp_path, "Place\npark\n", "place") == (
        "lunch.csv has no column 'place'; did you mean 'Place'?"
    )


def test_control_characters_in_names_are_not_printed(tmp_path):
    message = _error(tmp_path, "age,Pl\x1b[31mace\n" + BODY, "zzz")
    assert "\x1b" not in message


def test_names_may_contain_line_breaks_and_lone_quotation_marks(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"where\ndo you eat?",5" pipe\npark,1\nbar,2\n', encoding="utf-8")
    assert read_values(path, "where\ndo you eat?") == ["park", "bar"]
    assert read_values(path, '5" pipe') == ["1", "2"]


# --- delimiters -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delimiter", "option"), [(";", "';'"), ("\t", "tab"), ("|", "'|'"), (",", "','")]
)
def test_another_delimiter_is_suggested_and_read(tmp_path, delimiter, option):
    text = ("age,place\n" + BODY).replace(",", delimiter)
    wrong = ";" if delimiter == "," else None
    message = _error(tmp_path, text, "place", delimiter=wrong)
    assert message.endswith(f"Pass --delimiter {option}.")
    assert "lunch.csv seems to be separated by" in message
    values = read_values(tmp_path / "lunch.csv", "place", delimiter=delimiter)
    assert values == ["park", "bar"] * 20


def test_a_delimiter_is_suggested_for_a_misspelt_column_too(tmp_path):
    message = _error(tmp_path, "age;place\n1;bar\n", "palce")
    assert "Pass --delimiter ';'." in message
    assert "age" not in message


def test_the_delimiter_that_yields_the_column_wins():
    assert suggest_delimiter("a;b|c|d|place", ",", "place") == "|"
    assert suggest_delimiter("a;place|c|d|e", ",", "place|c|d|e") == ";"
    assert suggest_delimiter("age,place", ",", "plaec") is None


@pytest.mark.parametrize("name", ["tab", "\\t", "\t"])
def test_names_of_a_tab(name):
    assert parse_delimiter(name) == "\t"


@pytest.mark.parametrize("name", ["", ";;", '"', "\n", "\r", "§", "\0", "comma"])
def test_other_delimiters_are_refused(name, tmp_path):
    with pytest.raises(InvalidArgument, match="--delimiter must be a single ASCII character"):
        read_values(tmp_path / "none.csv", "a", delimiter=name)


def test_a_rare_answer_in_place_of_a_header_is_never_shown(tmp_path):
    text = "Alice,oncology ward\n" + "".join(f"Bob{'x' * i},park\n" for i in range(30))
    for column in ("place", "Alicia", "ward"):
        assert _error(tmp_path, text, column) == (
            f"lunch.csv has no column {column!r} among its 2 columns. "
            "The first line must be a header with their names."
        )


def test_the_rule_for_headers_is_what_hides_the_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(header, "_shows_header", lambda name, values: True)
    text = "Alice,oncology ward\n" + "Bob,park\n" * 30
    assert "oncology ward" in _error(tmp_path, text, "place")


@pytest.mark.parametrize("columns", ["id,place,,", "id,place,id2,id2"])
def test_unused_columns_may_have_equal_names(tmp_path, columns):
    path = tmp_path / "lunch.csv"
    path.write_text(f"{columns}\n1,park,,\n2,bar,,\n")
    assert read_values(path, "place") == ["park", "bar"]
    message = _error(tmp_path, path.read_text(), "palce")
    expected = "; did you mean 'place'? Its columns are id, place"
    if "id2" in columns:  # equal names may be equal answers in a file without a header
        expected = " among its 4 columns."
    assert message.startswith(f"lunch.csv has no column 'palce'{expected}")
    twice = columns.split(",")[-1]
    message = _error(tmp_path, path.read_text(), twice)
    assert message.startswith(f"lunch.csv has more than one column named {twice!r}.")
