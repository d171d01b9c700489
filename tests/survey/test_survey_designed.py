"""Surveys without a closed form, and matrices in CSV files."""

import gzip
from fractions import Fraction

import pytest

import sfumato as sf
from sfumato.contexts import Metric, PrivacyMatrix
from sfumato.designer.exponential import exponential_response
from sfumato.domains import Domain
from sfumato.errors import InvalidSurvey, NoClosedForm
from sfumato.survey import Description, Question, Survey
from sfumato.survey.toml.companion_files import read_domain_matrix, read_matrix
from sfumato.survey.toml.file import parse_survey_toml

LINE = [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
TOML = """name = "stops"
title = "Which stop?"
repeat = { every = "week", distinct = 3 }
[domain]
kind = "labels"
labels = ["park", "café", "bar", "zoo"]
[context]
kind = "matrix"
matrix = [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]
"""
STOPS = PrivacyMatrix(LINE, domain=["park", "café", "bar", "zoo"])


def _file(folder, content, name="matrix.csv"):
    raw = content if isinstance(content, bytes) else content.encode()
    (folder / name).write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
    return folder / name


# --- no closed form -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields", ['kind = "matrix"\nmatrix', 'kind = "metric"\nepsilon = 0.5\ndistances']
)
def test_a_survey_without_closed_form_says_what_to_do(tmp_path, fields):
    text = TOML.partition("[context]")[0] + f"[context]\n{fields} = {LINE}"
    with pytest.raises(InvalidSurvey) as caught:
        Survey.load(_file(tmp_path, text, "stops.toml"))
    message = str(caught.value)
    assert message.startswith("stops.toml: mechanism: ")
    assert "sf.design" in message
    assert message.endswith(
        "sfumato design stops.toml -o stops.json, and use stops.json from then on."
    )
    assert isinstance(caught.value.__cause__, NoClosedForm)


def test_description_is_read_without_choosing_a_mechanism(tmp_path):
    described = parse_survey_toml(TOML.encode(), tmp_path)
    assert (described.name, described.context, described.about["title"]) == (
        "stops",
        STOPS,
        "Which stop?",
    )
    with pytest.raises(NoClosedForm):
        _ = described.mechanism


def test_uniform_matrix_gets_a_plain_mechanism(tmp_path):
    text = TOML.replace(
        "[[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]",
        "[[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]",
    )
    described = parse_survey_toml(text.encode(), tmp_path)
    assert described.mechanism.kind == "plain"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('name = ""', "name"),
        ('name = "q"\nopens = "soon"', "opens must be a date"),
        ('name = "q"\nminimum_reports = -1', "minimum_reports must be a non-negative integer"),
        ('name = "q"\nrepeat = { every = "hour", distinct = 1 }', "repeat must be"),
    ],
)
def test_mistakes_are_reported_before_designing(tmp_path, head, said):
    text = head + "\n" + TOML[TOML.index("[domain]") :]
    with pytest.raises(InvalidSurvey, match=said):
        parse_survey_toml(text.encode(), tmp_path)


# --- descriptions ---------------------------------------------------------------------------------


def test_a_survey_is_its_description_and_a_mechanism(tmp_path):
    described = parse_survey_toml(TOML.encode(), tmp_path)
    mechanism = exponential_response(described.context)
    survey = Survey.from_description(described, mechanism)
    repeat = {"every": "week", "distinct": 3}
    assert survey == Survey("stops", STOPS, mechanism, title="Which stop?", repeat=repeat)
    question = Question("answer", STOPS)
    about = {"title": "Which stop?", "repeat": repeat}
    assert survey.description == Description("stops", (question,), about, edition=1)
    assert Survey.from_description(survey.description, mechanism) == survey


def test_designed_surveys_round_trip_and_estimate(tmp_path):
    survey = Survey("stops", STOPS, exponential_response(STOPS), title="Which stop?")
    survey.save(tmp_path / "stops.json")
    again = Survey.load(tmp_path / "stops.json")
    assert (again, again.fingerprint) == (survey, survey.fingerprint)
    assert again.certify().method == "enumerated"
    tally = again.tally(again.privatize(["park"] * 600 + ["bar"] * 400))
    assert again.estimate(tally).frequencies.sum() == pytest.approx(1)


def test_a_table_for_a_wider_promise_keeps_its_own_context_in_the_file(tmp_path):
    wider = PrivacyMatrix(
        [[0, 1, 3, 4], [1, 0, 1, 2], [3, 1, 0, 1], [4, 2, 1, 0]],
        domain=["park", "café", "bar", "zoo"],
    )
    survey = Survey("stops", wider, exponential_response(STOPS))
    survey.save(tmp_path / "stops.json")
    assert Survey.load(tmp_path / "stops.json").mechanism.context == STOPS


# --- matrices in files ----------------------------------------------------------------------------

BARE = "0,1,2,3\n1,0,1,2\n2,1,0,1\n3,2,1,0\n"
BESIDE = "park,0,1,2,3\ncafé,1,0,1,2\nbar,2,1,0,1\nzoo,3,2,1,0\n"
LABELLED = {
    "labels above": "park,café,bar,zoo\n" + BARE,
    "labels on two sides": ",park,café,bar,zoo\n" + BESIDE,
    "a word in the corner": "against,park,café,bar,zoo\n" + BESIDE,
    "an empty diagonal": ",park,café,bar,zoo\n" + BESIDE.replace(",0", ","),
    "white space": " park , café, bar,zoo\n\n" + BARE.replace(",", " ,  ").replace("\n", "\n\n"),
    "byte-order mark and Windows": "\ufeff" + ("park,café,bar,zoo\n" + BARE).replace("\n", "\r\n"),
    "quotes": '"park","café", "bar",zoo\n' + BARE.replace("2", '"2"'),
    "another form of é": ",park,café,bar,zoo\n" + BESIDE.replace("é", "e\u0301"),
}


@pytest.mark.parametrize("content", LABELLED.values(), ids=LABELLED)
@pytest.mark.parametrize("name", ["matrix.csv", "matrix.csv.gz"])
def test_a_labelled_matrix(tmp_path, content, name):
    labels, rows = read_matrix(_file(tmp_path, content, name), "matrix")
    assert PrivacyMatrix(rows, domain=Domain(labels)) == STOPS


def test_matrix_numbers_stay_as_typed(tmp_path):
    rows = read_matrix(
        _file(tmp_path, "a,b,c\n0,0.1,inf\n1e-1,0,4/3\nInfinity,0.30000000000000001,0"), "matrix"
    )[1]
    context = PrivacyMatrix(rows)
    assert (context.exact_epsilon(0, 1), context.exact_epsilon(1, 0)) == (
        Fraction(1, 10),
        Fraction(1, 10),
    )
    assert context.exact_epsilon(1, 2) == Fraction(4, 3)
    assert context.exact_epsilon(2, 1) == Fraction(30000000000000001, 10**17)
    assert context.exact_epsilon(0, 2) == context.exact_epsilon(2, 0) == float("inf")


@pytest.mark.parametrize(
    ("content", "labels"),
    [("7\n0\n", ["7"]), ("1,2\n0,1\n1,0\n", ["1", "2"]), (",0,1\n0,0,1\n1,1,0\n", ["0", "1"])],
    ids=["one symbol", "numbers above", "numbers on two sides"],
)
def test_first_row_has_labels_even_if_they_are_numbers(tmp_path, content, labels):
    found, rows = read_matrix(_file(tmp_path, content), "matrix")
    assert (found, len(rows)) == (labels, len(labels))


LONG = "x" * 500
BAD = {
    "empty": ("", "is empty"),
    "blank lines": ("\n\n\n", "is empty"),
    "labels alone": ("a,b,c\n", "3 labels and 0 rows"),
    "too few lines": (
        "a,b,c\n0,1,2\n1,0,1\n",
        "line 2: expected the label 'b', got '0'",
    ),
    "too many lines": ("a,b\n0,1\n1,0\n1,1\n", "2 labels and 3 rows"),
    "a short line": ("a,b,c\n0,1,2\n1,0\n2,1,0\n", "line 3 should have 3 columns; got 2"),
    "a long line": (",a,b\na,0,1\nb,1,0,7\n", "line 3 should have 3 columns; got 4"),
    "no labels": ("0,1\n1,0\n", "line 1: expected labels, got only numbers"),
    "no labels, but symmetric": (
        "0,1,2\n1,0,1\n2,1,0\n",
        "line 1: expected labels, got only numbers",
    ),
    "other labels": (
        ",a,b\na,0,1\nc,1,0\n",
        "line 3: expected the label 'b', got 'c'",
    ),
    "labels in another order": (
        ",a,b\nb,0,1\na,1,0\n",
        "line 2: expected the label 'a', got 'b'",
    ),
    "the same label twice": (
        "a,b,a\n0,1,1\n1,0,1\n1,1,0\n",
        "line 1: labels must be distinct; 'a' occurs twice",
    ),
    "the same in another form": ("é,e\u0301\n0,1\n1,0\n", "'é' occurs twice"),
    "an empty label": ("a,,c\n0,1,1\n1,0,1\n1,1,0\n", "line 1: label 2 is empty"),
    "negative": (
        "a,b\n0,-1\n1,0\n",
        "line 2, column 2: expected a non-negative number or inf, got '-1'",
    ),
    "minus infinity": ("a,b\n0,-inf\n1,0\n", "line 2, column 2: expected"),
    "NaN": (
        ",a,b\na,0,1\nb,NaN,0\n",
        "line 3, column 2: expected a non-negative number or inf, got 'NaN'",
    ),
    "text": (
        "a,b\n0,much\n1,0\n",
        "line 2, column 2: expected a non-negative number or inf, got 'much'",
    ),
    "nothing": (
        "a,b\n0,\n1,0\n",
        "line 2, column 2: expected a non-negative number or inf, got an empty cell",
    ),
    "a long cell": (f"a,b\n0,{LONG}\n1,0\n", "got 'xxxxxxxx"),
    "the diagonal": (
        "a,b\n0,1\n1,0.5\n",
        "line 3, column 2: expected 0 on the diagonal, got '0.5'",
    ),
    "text on the diagonal": (
        "a,b\n-,1\n1,0\n",
        "line 2, column 1: expected 0 on the diagonal",
    ),
    "after a blank line": ("a,b\n\n0,1\n\n1,x\n", "line 5, column 2|on the diagonal"),
    "semicolons": ("a;b\n0;1\n1;0\n", "Separate cells with commas"),
    "semicolons and a byte-order mark": ("\ufeffa;b\n0;1\n1;0\n", "Separate cells with commas"),
    "tabs": ("a\tb\n0\t1\n1\t0\n", "Separate cells with commas"),
    "decimal commas": (
        'a,b\n0,"1,5"\n1,0\n',
        "got '1,5'. Separate cells with commas, and use a decimal point in numbers",
    ),
    "UTF-16": ("a,b\n0,1\n1,0\n".encode("utf-16"), "UTF-8"),
    "Latin-1": ("é,b\n0,1\n1,0\n".encode("latin-1"), "UTF-8"),
    "an open quote": ('a,"b\n0,1\n1,0\n', "is not valid CSV"),
    "a field beyond all measure": ("a,b\n0," + "1" * 200_000 + "\n1,0\n", "is not valid CSV"),
    "too many lines for a matrix": ("a\n" + "0\n" * 4200, "4,201 lines"),
}


@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_bad_matrix_errors_name_the_place(tmp_path, content, said):
    with pytest.raises(InvalidSurvey) as caught:
        read_matrix(_file(tmp_path, content), "matrix")
    message = str(caught.value)
    assert message.startswith("matrix: matrix.csv")
    assert any(words in message for words in said.split("|")), message
    assert len(message) < 400


@pytest.mark.parametrize("name", ["matrix.csv", "matrix.csv.gz"])
def test_files_over_256_mib_are_rejected(tmp_path, name):
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(bytes(2**20)) * 257)  # a file may have several members
    else:
        with path.open("wb") as file:
            file.truncate(2**28 + 1)
    with pytest.raises(InvalidSurvey, match="larger than 256 MiB"):
        read_matrix(path, "matrix")


@pytest.mark.parametrize("content", [*LABELLED.values(), BARE], ids=[*LABELLED, "bare"])
@pytest.mark.parametrize("kind", ["matrix", "metric"])
def test_matrix_files_may_omit_labels(tmp_path, content, kind):
    _file(tmp_path, content)
    fields = (
        'kind = "matrix"\nmatrix = '
        if kind == "matrix"
        else 'kind = "metric"\nepsilon = 1\ndistances = '
    )
    text = TOML.partition("[context]")[0] + f'[context]\n{fields}"matrix.csv"\n'
    wanted = STOPS if kind == "matrix" else Metric(LINE, 1, domain=["park", "café", "bar", "zoo"])
    assert parse_survey_toml(text.encode(), tmp_path).context == wanted


def test_domain_size_decides_whether_numbers_are_labels(tmp_path):
    """Without labels this is a matrix of four symbols, with labels one of three."""
    content = ",0,1,2\n0,0,1,2\n1,1,0,1\n2,2,1,0\n"
    assert read_domain_matrix(sf.IntegerDomain(3), _file(tmp_path, content), "matrix") == [
        list("012"),
        list("101"),
        list("210"),
    ]
    assert read_domain_matrix(sf.IntegerDomain(4), _file(tmp_path, content), "matrix")[1] == list(
        "0012"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("park,bar,café,zoo\n" + BARE, "in order: expected 'café', got 'bar'"),
        (",park,café,bar,pub\n" + BESIDE.replace("zoo", "pub"), "expected 'zoo', got 'pub'"),
        ("park,café,bar\n0,1,2\n1,0,1\n2,1,0\n", "line 1 should have 4 columns; got 3"),
        ("a,b,c,d,e\n" + "0,1,1,1,1\n" * 5, "line 3, column 2: expected 0"),
        ("a,b\n0,1\n1,0\n", "must list the 4 labels of the domain; it lists 2"),
        ("0,1\n1,0\n", "2 rows; the domain has 4 labels"),
        (
            BARE.replace("3", "x"),
            "line 1, column 4: expected a non-negative number or inf, got 'x'",
        ),
    ],
    ids=[
        "order",
        "another label",
        "one label less",
        "one more",
        "two less",
        "two rows less",
        "text",
    ],
)
def test_matrix_for_another_domain_is_rejected(tmp_path, content, said):
    _file(tmp_path, content)
    text = TOML.partition("[context]")[0] + '[context]\nkind = "matrix"\nmatrix = "matrix.csv"\n'
    with pytest.raises(InvalidSurvey) as caught:
        parse_survey_toml(text.encode(), tmp_path)
    assert said in str(caught.value)
    assert str(caught.value).startswith("the survey file, line ")
    assert ": context" in str(caught.value)
