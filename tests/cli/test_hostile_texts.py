"""No command prints control characters from the texts of a survey."""

import unicodedata

import pytest

import sfumato as sf
from sfumato.cli import console
from sfumato.foundation.formatting import printable

ESCAPES = "\u001b[8m\u001b]0;owned\u0007\u009b31m\u202e\u200b\u2028\u2029\u0085\u007f"
FORGED = "Certified: ok."  # short, because some commands cut labels off
TITLE = f"Lunch\n{FORGED}\r{ESCAPES}"
LABELS = [f"park{ESCAPES}", f"clinic\n{FORGED}", "bar"]


def toml_text(text):
    """A TOML string with every character escaped that TOML does not allow as it is."""
    return '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'


@pytest.fixture
def survey(tmp_path):
    labels = ", ".join(map(toml_text, LABELS))
    path = tmp_path / "survey.toml"
    path.write_text(
        f'name = "lunch"\ntitle = {toml_text(TITLE)}\n'
        f"text = {toml_text(TITLE)}\ncontact = {toml_text(TITLE)}\n"
        f'[domain]\nkind = "labels"\nlabels = [{labels}]\n'
        f'[context]\nkind = "high-low"\nsensitive = [{toml_text(LABELS[1])}]\nepsilon = 3\n',
        encoding="utf-8",
    )
    return path


@pytest.fixture
def answers(tmp_path):
    path = tmp_path / "people.csv"
    lines = "".join('"' + label.replace('"', '""') + '"\n' for label in LABELS * 40)
    path.write_text("place\n" + lines, encoding="utf-8", newline="")
    return path


@pytest.fixture
def run(call):
    """Run a command and return what it prints on both streams."""

    def printed(*arguments, expected=0):
        result = call(*arguments)
        assert result.code == expected, result.both
        return result.both

    return printed


def unsafe(printed):
    """The control and invisible characters in what was printed, line ends apart."""
    return {
        character
        for character in printed
        if character != "\n" and printable(character) != character
    }


def assert_safe(printed):
    assert unsafe(printed) == set()
    assert not any(line.lstrip().startswith(FORGED) for line in printed.splitlines())


def test_the_categories_are_covered():
    hidden = [character for character in ESCAPES + "\n\r" if not character.isprintable()]
    assert {unicodedata.category(character) for character in hidden} == {"Cc", "Cf", "Zl", "Zp"}
    assert all(printable(character).isascii() for character in hidden)
    assert printable("ε ≤ 1: caf\u00e9\u00a0日本") == "ε ≤ 1: caf\u00e9\u00a0日本"


def test_the_check_notices_a_raw_title():
    assert unsafe(TITLE)
    with pytest.raises(AssertionError):
        assert_safe(f"title\n{FORGED}\n")


def test_verify_prints_the_title_on_one_line(survey, run):
    printed = run("verify", survey)
    assert_safe(printed)
    assert "Lunch\\nCertified" in printed.splitlines()[0]


def test_no_command_prints_a_control_character(survey, answers, tmp_path, run):
    reports = tmp_path / "reports.parquet"
    commands = [
        ("verify", survey, "--json"),
        (
            "verify",
            survey,
            "-o",
            tmp_path / "certificate.json",
            "--resolved",
            tmp_path / "survey.json",
        ),
        ("label", survey, "-o", tmp_path / "label.html"),
        ("plan", survey, "--people", "1000"),
        ("plan", survey, "--json"),
        ("privatize", survey, answers, "--column", "place", "-o", reports),
        ("estimate", survey, reports),
        ("estimate", survey, reports, "--json"),
        ("simulate", survey, answers, "--column", "place", "--runs", "2"),
        ("compare", answers, "--column", "place", "--survey", survey, "--runs", "2"),
        ("audit", survey, "--samples", "2000"),
        ("audit", survey, "--samples", "2000", "--json"),
        ("design", tmp_path / "survey.json", "-o", tmp_path / "designed.json"),
    ]
    for command in commands:
        assert_safe(run(*command))


def test_errors_are_safe_too(survey, answers, tmp_path, run):
    text = survey.read_text(encoding="utf-8")
    key = toml_text(TITLE)
    for number, broken in enumerate(
        [
            text.replace("epsilon = 3", f"epsilon = 3\n{key} = 1"),
            text.replace('kind = "high-low"', f"kind = {key}"),
            text.replace("sensitive = [", f"sensitive = [{key}, "),
            text.replace('name = "lunch"', f"name = {key}"),
            text.replace("epsilon = 3", f"epsilon = {key}"),
        ]
    ):
        path = tmp_path / f"broken{number}.toml"
        path.write_text(broken, encoding="utf-8")
        assert_safe(run("verify", path, expected=2))
    assert_safe(run("plan", survey, "--labels", "nowhere", expected=2))
    other = tmp_path / "other.csv"
    other.write_text("place\nnowhere\n", encoding="utf-8")
    assert_safe(
        run("privatize", survey, other, "--column", "place", "-o", tmp_path / "r.csv", expected=2)
    )


def test_a_table_is_raw_in_a_pipe_and_escaped_on_a_terminal(monkeypatch, capsysbinary):
    console.print_csv(f"label\n{TITLE}\n")
    assert capsysbinary.readouterr().out.decode() == f"label\n{TITLE}\n"
    monkeypatch.setattr(console.sys.stdout, "isatty", lambda: True, raising=False)
    console.print_csv(f"label\n{TITLE}\n")
    assert unsafe(capsysbinary.readouterr().out.decode()) == set()


def test_warnings_are_safe(capsys):
    console.notify(f"stopped: {ESCAPES}")
    assert unsafe(capsys.readouterr().err) == set()


def test_errors_of_the_library_are_safe(survey, tmp_path):
    path = tmp_path / "broken.toml"
    text = survey.read_text(encoding="utf-8")
    path.write_text(
        text.replace("epsilon = 3", f"epsilon = 3\n{toml_text(TITLE)} = 1"), encoding="utf-8"
    )
    with pytest.raises(sf.errors.InvalidSurvey) as refused:
        sf.Survey.load(path)
    assert unsafe(str(refused.value)) == set()


def test_further_lines_of_an_error_are_indented(tmp_path, run):
    path = tmp_path / "broken.toml"
    path.write_text(
        '[domain]\nkind = "labels"\nlabels = ["a", "b"]\nsouthh = 1\n', encoding="utf-8"
    )
    first, *others = run("verify", path, expected=2).splitlines()
    assert first.startswith("sfumato: ")
    assert others
    assert all(line.startswith("  ") for line in others)


def test_estimates_are_printed_safely(survey):
    asked = sf.Survey.load(survey)
    found = asked.estimate(asked.tally(asked.privatize(LABELS * 10)))
    assert_safe(repr(found))
