"""Errors in a survey file name the file, the line, the key and the nearest key."""

import pytest

from sfumato.errors import InvalidSurvey
from sfumato.survey import Survey

SECTIONS = """
[domain]
kind = "labels"
labels = ["a", "b", "c"]
[context]
kind = "uniform"
epsilon = 1.0
"""


def _errors(folder, text):
    path = folder / "survey.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidSurvey) as caught:
        Survey.load(path)
    return str(caught.value).split("\n")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('name = "q"\n\n\ntitel = "x"' + SECTIONS,
         "survey.toml, line 4: titel is not a field of a survey file. Did you mean title?"),
        ('name = "q"\nepsilon = 1' + SECTIONS,
         "survey.toml, line 2: epsilon is not a field of a survey file. Move epsilon to the section"
         " [context]."),
        ('name = "q"' + SECTIONS + 'title = "x"',
         "survey.toml, line 8: context.title is not a field of a survey file. Move title to the top"
         " of the file, before the first section."),
        ('name = "q"' + SECTIONS + "zzz = 1",
         "survey.toml, line 8: context.zzz is not a field of a survey file. Allowed fields: kind,"
         " epsilon."),
        ('name = "q"\nzzz = 1' + SECTIONS,
         "survey.toml, line 2: zzz is not a field of a survey file. Allowed fields: name, title, "),
        ('name = "q"' + SECTIONS + "[mechanism]\nmax_bit = 3",
         "survey.toml, line 9: mechanism.max_bit is not a field of a survey file. Did you mean"
         " max_bits?"),
        ('name = "q"\nrepeat = { every = "week", distinct = "x" }' + SECTIONS,
         "survey.toml, line 2: repeat.distinct must be an integer; got text."),
        ('name = "q"\nminimum_reports = "x"' + SECTIONS,
         "survey.toml, line 2: minimum_reports must be an integer; got text."),
        (SECTIONS, "survey.toml: name is missing."),
        ('name = "q"' + SECTIONS.replace('kind = "uniform"\n', ""),
         "survey.toml, line 5: context.kind is missing."),
        ('name = "q"' + SECTIONS.replace("epsilon = 1.0\n", ""),
         "survey.toml, line 5: context.epsilon is missing: it must be a number above 0"),
        ('name = "q"' + SECTIONS.replace("uniform", "high-lo"),
         "survey.toml, line 6: context.kind must be one of 'uniform', 'high-low', 'blocks',"
         " 'tiers', 'metric' or 'matrix'; got 'high-lo'. Did you mean 'high-low'?"),
        ('name = "q"' + SECTIONS.replace('"b", "c"', '\n"b",\n1.5'),
         "survey.toml, line 6: domain.labels must be a list of text or integers; got a decimal"),
        ('name = "q"' + SECTIONS.replace('"c"', '"a"'),
         "survey.toml, line 4: domain: labels must be distinct; 'a' occurs twice."),
        ('name = "q"' + SECTIONS.replace("1.0", "41"),
         "survey.toml, line 7: context: epsilon must be at most 40"),
        ('name = "q"' + SECTIONS + "rows = 2",
         "survey.toml, line 8: context.rows does not apply to kind = 'uniform'"),
        ('name = "q"' + SECTIONS + "[mechanism]\nsensitive_share = 2",
         "survey.toml, line 9: mechanism.sensitive_share must be a number from 0 to 1; got 2."),
        ('name = "q"' + SECTIONS + "[mechanism]\nsensitive_share = 0.5",
         "survey.toml, line 9: mechanism: sensitive_share applies only to high-low contexts"),
        ('name = "q"\n[domain\n',
         "survey.toml, line 2: not valid TOML in column 8: "),
        ('name = """q', "survey.toml is not valid TOML: "),
    ],
)  # fmt: skip
def test_errors_name_the_line_and_the_fix(tmp_path, text, error):
    (line,) = _errors(tmp_path, text)
    assert line.startswith(error)


def test_errors_of_a_named_question_have_lines(tmp_path):
    sections = SECTIONS.replace("[", "[question.").replace('= [question."', '= ["')
    text = 'name = "q"\nedition = 2\n[[question]]\nname = "x"' + sections
    (tmp_path / "right.toml").write_text(text)
    assert Survey.load(tmp_path / "right.toml").context.size == 3
    assert _errors(tmp_path, text.replace("1.0", "0")) == [
        "survey.toml, line 10: context: epsilon must be above 0; at 0, nothing can be learned."
    ]
    assert _errors(tmp_path, text.replace('"x"', '" x"'))[0].startswith(
        "survey.toml, line 4: question.name must be a single line"
    )
    assert _errors(tmp_path, text.replace("epsilon", "epsilom"))[0] == (
        "survey.toml, line 10: question.context.epsilom is not a field of a survey file. "
        "Did you mean epsilon?"
    )


def test_all_errors_are_listed_in_the_order_of_the_file(tmp_path):
    text = (
        'edition = "x"\ntitle = 1' + SECTIONS.replace("labels =", "lables =") + "epsilom = 3\n"
        "[mechanism]\ncode = 3"
    )
    starts = [line.partition(": ")[0] for line in _errors(tmp_path, text)]
    lines = [1, 2, 5, 9, 11]
    assert starts == ["survey.toml", *(f"survey.toml, line {line}" for line in lines)]


def test_independent_errors_in_valid_fields_are_listed(tmp_path):
    text = (
        'name = " q"\nopens = "x"\ncloses = "y"\nminimum_reports = -1'
        + SECTIONS.replace('"b"', '"a"')
        + "rows = 2\ncolumns = 2\n"
    )
    errors = _errors(tmp_path, text)
    fields = ["name", "opens", "closes", "minimum_reports", "domain", "context.columns"]
    for error, field in zip(errors, [*fields, "context.rows"], strict=True):
        assert f": {field}" in error
