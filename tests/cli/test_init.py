"""`init`: survey files that load and certify, from templates and from answers."""

import json
import os
import pty
import shlex
import subprocess
import sys
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.cli.survey_text import TEMPLATES
from sfumato.survey import Survey
from sfumato.survey.toml.context import ContextFields
from support.command import PLACES, read_folder, write_parquet

FROM = ("init", "--from", "a.csv", "--column", "place")
FROM_ANSWERS = ("init", "--from", "answers.csv", "--column", "place")


def _answers(folder, *labels, more=1):
    """A CSV of these labels, quoted."""
    lines = ['"' + label.replace('"', '""') + '"' for label in labels] * more
    (folder / "a.csv").write_text("place\n" + "\n".join(lines) + "\n", encoding="utf-8", newline="")


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_load_and_certify(folder, call, template):
    result = call("init", "--template", template, "new.toml")
    assert (result.code, result.err) == (0, "")
    assert "sfumato verify new.toml" in result.out
    assert call("verify", "new.toml").code == 0


@pytest.mark.parametrize("template", TEMPLATES)
def test_template_is_of_edition_2(folder, call, template):
    assert call("init", "--template", template, "new.toml").code == 0
    assert_edition_2(folder / "new.toml")


@pytest.mark.parametrize("options", [[], ["--sensitive", "clinic"], ["--blocks", "place"]])
def test_survey_from_answers_is_of_edition_2(folder, call, options):
    command = ("init", "--from", "answers.csv", "--column", "place", *options, "new.toml")
    assert call(*command).code == 0
    assert_edition_2(folder / "new.toml")


def assert_edition_2(path):
    """The edition is the line after the name, where people see it first."""
    name, edition, *_ = path.read_text("utf-8").splitlines()
    assert name.startswith("name = ")
    assert edition == "edition = 2"
    assert Survey.load(path).edition == 2


HEADER = """edition = 2
title = ""  # the question, as people read it
contact = ""  # contact for questions
minimum_reports = 0  # with fewer reports, there is no result

[domain]
kind = "labels"
labels = ["bar", "park"]

[context]
kind = "uniform"
epsilon = 1.0

[table]  # how to read your table; no device sees this
column = "place"
"""


def test_fields_that_are_empty_are_in_the_file_to_be_filled_in(folder, call):
    _answers(folder, "park", "bar")
    assert call(*FROM, "new.toml").code == 0
    name, _, rest = (folder / "new.toml").read_text("utf-8").partition("\n")
    assert name.endswith("  # unique per question")
    assert rest == HEADER


def test_texts_for_people_are_written(folder, call):
    about = ("--title", 'Say "where"', "--contact", "a@b.c\x7f", "--minimum-reports", "9")
    for way in (FROM, ("init", "--template", "labels")):
        _answers(folder, "park", "bar")
        assert call(*way, *about, "new.toml", "--force").code == 0
        survey = Survey.load(folder / "new.toml")
        assert survey.title == 'Say "where"'
        assert survey.contact == "a@b.c\x7f"
        assert survey.minimum_reports == 9


def test_the_template_of_labels_names_every_kind_of_context():
    told = next(
        line.partition("#")[2]
        for line in TEMPLATES["labels"].sections.splitlines()
        if " | " in line
    )
    kinds = get_args(ContextFields.model_fields["kind"].annotation)
    assert {kind.strip() for kind in told.split("|")} == set(kinds)


def test_text_that_is_not_utf8_is_refused_without_the_value(folder, error_from):
    held = b"kanarienvogel\xff"
    ends = pa.py_buffer(np.array([0, len(held)], np.int32))
    column = pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(held)])
    pq.write_table(pa.table({"place": column}), folder / "a.parquet")
    said = error_from("init", "--from", "a.parquet", "--column", "place", "new.toml")
    assert "UTF-8" in said
    assert "kanarienvogel" not in said


@pytest.mark.parametrize("template", TEMPLATES)
def test_template_accepts_epsilon(folder, call, template):
    assert call("init", "--template", template, "--epsilon", "0.25", "new.toml").code == 0
    assert Survey.load(folder / "new.toml").context.smallest_epsilon == 0.25


@pytest.mark.parametrize(
    "epsilon", ["0", "-1", "nan", "abc", "", "50", "1e400", "1 # no", "1\nname='x'", "1,0", "0x1"]
)
@pytest.mark.parametrize(
    "way", [("--template", "yes-no"), ("--from", "answers.csv", "--column", "place")], ids=str
)
def test_a_bad_epsilon_is_refused_before_writing(error_from, epsilon, way):
    assert "epsilon" in error_from("init", *way, f"--epsilon={epsilon}", "new.toml")


@pytest.mark.parametrize("epsilon", ["1", "1.0", "0.1", "1e0", ".5", "1/3", "2.", "10"])
def test_an_epsilon_however_it_is_written_can_be_read_again_or_is_refused(folder, call, epsilon):
    result = call("init", "--template", "yes-no", "--epsilon", epsilon, "new.toml")
    assert "Traceback" not in result.err
    if result.code == 0:
        assert call("verify", "new.toml").code == 0
    else:
        assert result.code == 2
        assert not (folder / "new.toml").exists()


@pytest.mark.parametrize("options", [["--column", "x"], ["--sensitive", "x"], ["--blocks", "x"]])
def test_options_that_a_template_would_ignore_are_refused(error_from, options):
    assert "--from" in error_from("init", "--template", "labels", *options, "new.toml")


LABELS = [
    'say "hi"',
    "back\\slash",
    "\\u0041",
    "two\nlines",
    "tab\there",
    "🙂",
    "日本",
    "NA",
    "null",
    "a,b",
    "'",
    "#",
    "\x7f",
    "\x01",
]


def test_any_label_round_trips_through_toml(folder, call):
    _answers(folder, *LABELS, more=50)
    assert call(*FROM, "new.toml").code == 0
    assert set(Survey.load(folder / "new.toml").context.domain.labels) == set(LABELS)
    assert call("privatize", "new.toml", "a.csv", "--column", "place", "-o", "r.csv").code == 0


def test_answers_that_differ_in_normal_form_only_are_one_label(folder, call):
    _answers(folder, "caf\u00e9", "cafe\u0301", "park")
    assert call(*FROM, "new.toml").code == 0
    assert list(Survey.load(folder / "new.toml").context.domain.labels) == ["café", "park"]


def test_similar_labels_stay_distinct(folder, call):
    _answers(folder, "park", "раrk")
    assert call(*FROM, "new.toml").code == 0
    assert Survey.load(folder / "new.toml").context.size == 2


def test_many_labels(folder, call):
    _answers(folder, *(f"page {i}" for i in range(20_000)))
    assert call(*FROM, "--force-labels", "new.toml").code == 0
    assert Survey.load(folder / "new.toml").context.size == 20_000


def test_missing_answers_get_a_label(folder, call):
    write_parquet(folder / "a.parquet", place=["park", None, "", "bar"])
    result = call("init", "--from", "a.parquet", "--column", "place", "new.toml")
    assert result.code == 0
    assert "4 rows: 4 counted (2 without an answer as 'no answer')." in result.err
    survey = Survey.load(folder / "new.toml")
    assert list(survey.context.domain.labels) == ["bar", "park", "no answer"]
    assert survey.description.table.missing == "no answer"


def test_missing_answers_are_skipped_or_refused_on_request(folder, call, error_from):
    write_parquet(folder / "a.parquet", place=["park", None, "", "bar"])
    command = ("init", "--from", "a.parquet", "--column", "place", "new.toml", "--missing")
    assert "2 of 4 rows have no answer (the first in data row 2)" in error_from(*command, "refuse")
    assert call(*command, "skip").code == 0
    survey = Survey.load(folder / "new.toml")
    assert list(survey.context.domain.labels) == ["bar", "park"]
    assert survey.description.table.missing == "skip"


@pytest.mark.parametrize(
    "kind", [pa.int64(), pa.string(), pa.large_string(), pa.string_view()], ids=str
)
def test_what_init_read_privatize_can_read(folder, call, kind):
    write_parquet(folder / "a.parquet", place=pa.array([1, 2, 30, 2]).cast(kind))
    assert call("init", "--from", "a.parquet", "--column", "place", "new.toml").code == 0
    result = call("privatize", "new.toml", "a.parquet", "-o", "r.csv")
    assert (result.code, result.err) == (0, "4 rows: 4 counted.\n")


@pytest.mark.parametrize("name", ["🙂.toml", "naïve.toml", 'a"b.toml', "a b.toml"])
def test_the_name_of_the_file_names_the_survey(folder, call, name):
    assert call("init", "--from", "answers.csv", "--column", "place", name).code == 0
    stem, _, ending = Survey.load(folder / name).name.rpartition("-")
    assert stem == name.removesuffix(".toml")
    assert len(ending) == 6


def test_two_surveys_from_one_template_are_two_surveys(folder, call):
    """Otherwise the reports of one question would be accepted by another."""
    for name in ("one.toml", "two.toml"):
        assert call("init", "--template", "yes-no", name).code == 0
    assert (
        Survey.load(folder / "one.toml").fingerprint != Survey.load(folder / "two.toml").fingerprint
    )


def test_sensitive_labels_are_never_dropped_for_blocks(error_from):
    said = error_from(
        "init",
        "--from",
        "answers.csv",
        "--column",
        "place",
        "--sensitive",
        "bar",
        "--blocks",
        "x",
        "new.toml",
    )
    assert "choose either --sensitive or --blocks" in said


def test_rare_labels_cause_a_warning(folder, call):
    (folder / "rare.csv").write_text(
        "place\n" + "park\n" * 50 + "Ms Roe's flat\n", encoding="utf-8"
    )
    result = call("init", "--from", "rare.csv", "--column", "place", "new.toml")
    assert "A survey file is public. 1 of its 2 labels" in result.err
    assert "Roe" not in result.err


@pytest.mark.parametrize(
    "name",
    [
        "a\nb.toml",
        " .toml",
        "survey.json",
        "-",
        "no/new.toml",
        "sub",
        "o5.JSON",
        "o6.csv",
        "o7.TSV",
        "o.parquet",
        "o.feather",
        "o.arrow",
        "o.jsonl",
        "o.xlsx",
        "o.sav",
        "o.DTA",
        "o.csv.bz2",
        "o.csv.zst",
    ],
)
def test_invalid_names_are_rejected(folder, error_from, name):
    (folder / "sub").mkdir()
    error_from("init", "--from", "answers.csv", "--column", "place", name)


def test_high_low_and_blocks(folder, call):
    result = call(
        "init",
        "--from",
        "answers.csv",
        "--column",
        "place",
        "--sensitive",
        "clinic, bar",
        "new.toml",
    )
    assert "uniform" in result.err
    assert "high-low" in result.err
    assert Survey.load(folder / "new.toml").context.epsilon(2, 0) == 1.0
    (folder / "b.csv").write_text("street,city\na,Rome\nb,Rome\nc,Oslo\nd,Oslo\na,Rome\n")
    result = call(
        "init", "--from", "b.csv", "--column", "street", "--blocks", "city", "blocks.toml"
    )
    assert "blocks" in result.err
    context = Survey.load(folder / "blocks.toml").context
    assert context.block_of.tolist() == [0, 0, 1, 1]
    assert call("verify", "blocks.toml").code == 0


def test_a_column_can_be_its_own_block(folder, call):
    assert (
        call(
            "init", "--from", "answers.csv", "--column", "place", "--blocks", "place", "new.toml"
        ).code
        == 0
    )


def test_a_sensitive_label_with_a_comma_is_quoted(folder, call):
    _answers(folder, "a,b", "c", "d")
    assert call(*FROM, "--sensitive", '"a,b",c', "new.toml").code == 0
    assert Survey.load(folder / "new.toml").context.sensitive.tolist() == [0, 1]


def test_sensitive_labels_may_be_passed_one_by_one(folder, call):
    _answers(folder, "a,b", "c", "d")
    assert call(*FROM, "--sensitive", '"a,b"', "--sensitive", "c", "new.toml").code == 0
    assert Survey.load(folder / "new.toml").context.sensitive.tolist() == [0, 1]


def test_an_unknown_sensitive_label_is_refused(error_from):
    message = error_from(
        "init", "--from", "answers.csv", "--column", "place", "--sensitive", "klinik", "new.toml"
    )
    assert "'klinik'" in message


def test_a_missing_blocks_column_is_refused(error_from):
    error_from("init", "--from", "answers.csv", "--column", "place", "--blocks", "city", "new.toml")


def test_an_existing_file_is_kept_unless_forced(folder, call, error_from):
    before = read_folder(folder)
    assert "--force" in error_from("init", "--template", "yes-no", "lunch.toml")
    assert read_folder(folder) == before
    assert call("init", "--template", "yes-no", "--force", "lunch.toml").code == 0
    assert Survey.load(folder / "lunch.toml").context.size == 2


def test_init_does_not_prompt_without_a_terminal(folder, call):
    result = call(
        "init", "--from", "answers.csv", "--column", "place", "new.toml", stdin=b"clinic\n"
    )
    assert result.code == 0
    assert "Which labels" not in result.both
    assert json.dumps("uniform") in (folder / "new.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("typed", "code", "kind"),
    [
        (b"clinic,bar\nWhere?\nme@example.org\n100\n", 0, "high-low"),
        (b"\n\n\n\n", 0, "uniform"),
        (b"\x04", 2, ""),
    ],
)
def test_init_prompts_on_a_terminal(folder, typed, code, kind):
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "sfumato",
        "init",
        "--from",
        "answers.csv",
        "--column",
        "place",
        "new.toml",
    ]
    with subprocess.Popen(
        command, cwd=folder, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        os.close(theirs)
        os.write(ours, typed)
        out, err = run.communicate()
    os.close(ours)
    assert run.returncode == code, err
    assert b"Sensitive labels" in out + err
    assert b"Traceback" not in err
    assert (folder / "new.toml").exists() == (code == 0)
    if kind:
        assert f'kind = "{kind}"' in (folder / "new.toml").read_text(encoding="utf-8")


def test_the_expected_error_is_a_share(call):
    """The comparison goes to stderr, so that it is not taken for a result."""
    result = call("init", "--from", "answers.csv", "--column", "place", "new.toml")
    assert "wrong label" in " ".join(result.err.split())
    assert len(PLACES) == 200


def test_the_next_command_can_be_pasted(folder, call):
    (folder / "answers.csv").rename(folder / "my answers.csv")
    result = call("init", "--from", "my answers.csv", "--column", "place", "my survey.toml")
    command = shlex.split(result.out.partition("Next: ")[2])
    assert command[:4] == ["sfumato", "privatize", "my survey.toml", "my answers.csv"]
    assert call(*command[1:]).code == 0
    result = call("init", "--template", "yes-no", "my template.toml")
    assert shlex.split(result.out)[-1] == "my template.toml"


def test_init_says_what_it_wrote_and_what_comes_next(folder, call):
    result = call(*FROM_ANSWERS, "--sensitive", "clinic,bar", "new.toml")
    assert "new.toml uses high-low, the last row above. To change it, edit the file." in result.err
    next_command = "sfumato privatize new.toml answers.csv -o reports.parquet"
    assert result.out == f"Wrote new.toml. Next: {next_command}\n"
    assert call(*next_command.split()[1:]).code == 0
    assert "the last row above" not in call(*FROM_ANSWERS, "new.toml", "--force").err


# --- what a new user met --------------------------------------------------------------------------


def write_cells(path, *cells):
    path.write_text("id,a\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells)))


INIT = ("init", "--from", "a.csv", "--column", "a", "new.toml")


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["125000.0", "15000.0", "2500.0", ""], [2500, 15000, 125000, "no answer"]),
        (["10 to 15", "5 to 10", "under 5"], ["under 5", "5 to 10", "10 to 15"]),
    ],
)
def test_labels_with_numbers_are_in_the_order_of_the_numbers(folder, call, cells, labels):
    write_cells(folder / "a.csv", *cells * 20)
    assert call(*INIT).code == 0
    assert list(Survey.load(folder / "new.toml").context.domain.labels) == labels


def test_a_large_other_needs_consent(folder, call, error_from):
    write_cells(folder / "a.csv", *["x", "y"] * 10, *["z"] * 30)
    options = (*INIT, "--labels", "x,y", "--other", "else")
    message = error_from(*options)
    assert "30 of 50 rows, more than half, would count as 'else' (the first in data row 21)" in (
        message
    )
    assert call(*options, "--allow-other").code == 0
    assert Survey.load(folder / "new.toml").description.table.allow_other is True
    for command in (("privatize", "-o", "r.csv"), ("simulate",)):
        result = call(command[0], "new.toml", "a.csv", *command[1:])
        assert result.code == 0, result.both
        assert result.err == "50 rows: 50 counted (30 not among the labels as 'else').\n"
    assert call("compare", "a.csv", "--survey", "new.toml", "--runs", "1").code == 0
    (folder / "new.toml").write_text(
        (folder / "new.toml").read_text().replace("allow_other = true", "allow_other = false")
    )
    assert "allow_other" in error_from("simulate", "new.toml", "a.csv")


def test_refusals_name_the_first_row(folder, error_from):
    write_cells(folder / "a.csv", "1.5", "2.5", "tall", "3.5")
    assert "1 of 4 rows has text instead of a number (the first in data row 3)" in error_from(
        *INIT, "--bins", "2"
    )
    write_cells(folder / "a.csv", "2026-11-18", "18.11.2026", "2026-02-30")
    for part in ("weekday", "day"):
        message = error_from(*INIT, "--date", part)
        assert "2 of 3 rows have no date" in message
        assert "(the first in data row 2)" in message


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (
            ("--labels", "x,y"),
            "They look like whole numbers; the labels are text. Correct them, add their labels to "
            "--labels, or pass --other LABEL.",
        ),
        (("--bins", "2"), "(--missing-codes), or pass --other LABEL."),
        (("--date", "hour"), "(sfumato init --date-format), or pass --other LABEL."),
        (
            ("--labels", "x,y", "--other", "else"),
            "If 'else' is the right answer, pass --allow-other.",
        ),
        (("--missing", "refuse", "--missing-codes", "x"), "Pass --missing skip to leave out"),
    ],
)
def test_refusals_name_options_of_init(folder, error_from, options, advice):
    """There is no survey file yet to correct, and init has no option --table."""
    write_cells(folder / "a.csv", *["x", "y"] * 5, *[1, 2, 3] * 5)
    message = error_from(*INIT, *options)
    assert advice in message
    assert "--table" not in message
    assert "`other`" not in message
    assert "survey file" not in message


def test_other_works_with_bins_and_dates(folder, call):
    write_cells(folder / "a.csv", *["1.5", "2.5", "tall", "3.5"] * 20)
    assert call(*INIT, "--bins", "2", "--other", "odd").code == 0
    write_cells(folder / "a.csv", *["2026-11-18", "2026-11-19", "soon"] * 20)
    assert call(*INIT, "--date", "weekday", "--other", "odd", "--force").code == 0
    assert call("privatize", "new.toml", "a.csv", "-o", "r.csv").code == 0


def test_an_added_label_is_not_protected_silently(folder, call):
    write_cells(folder / "a.csv", *["N", "Y", ""] * 20)
    hint = "To protect it, pass --sensitive 'N,no answer'"
    assert hint in call(*INIT, "--sensitive", "N").err
    assert "protect" not in call(*INIT, "--force", "--sensitive", "N,no answer").err


def test_rare_labels_are_in_no_message(folder, call, error_from):
    write_cells(folder / "a.csv", *["Canary", "canary"], *["x", "y"] * 10)
    message = error_from(*INIT, "--sensitive", "Smith")
    assert "The labels are 'x', 'y', and 2 more." in message
    result = call(*INIT)
    assert "Labels in 1 group differ only by case" in result.err
    assert "anary" not in message + result.err
    write_cells(folder / "a.csv", *["Canary", "canary"] * 10)
    assert "'Canary', 'canary'" in call(*INIT, "--force").err


def test_the_label_for_missing_answers_is_not_counted_as_rare(folder, call):
    write_cells(folder / "a.csv", *["x", "y"] * 10, "")
    assert "A survey file is public" not in call(*INIT).err


def test_columns_are_listed(folder, error_from):
    write_cells(folder / "a.csv", *["x", "y"] * 10)
    for command in (("init", "--from", "a.csv"), ("simulate", "lunch.toml", "a.csv")):
        assert "the columns of a.csv are id, a." in error_from(*command)


def test_hints_for_codes_numbers_and_dates(folder, call):
    write_cells(folder / "a.csv", *["x", "y", "#N/A"] * 10)
    assert "pass --missing-codes='#N/A'\n" in call(*INIT).err
    assert "missing-codes" not in call(*INIT, "--force", "--missing", "skip").err
    write_cells(folder / "a.csv", *list(range(21)) * 10)
    assert "pass --bins" in call(*INIT, "--force").err
    write_cells(folder / "a.csv", *list(range(20)) * 10)
    assert "pass --bins" not in call(*INIT, "--force").err
    write_cells(folder / "a.csv", *["2026-11-18", "2026-11-19"] * 10)
    assert "pass --date" in call(*INIT, "--force").err


# --- the share of sensitive answers ---------------------------------------------------------------

SENSITIVE = ("--sensitive", "a,b,c,d,e", "--epsilon", "2")


def write_labels(folder, sensitive_count):
    """Write a table with ten labels, in which each sensitive one occurs this often."""
    sensitive = list("abcde") * sensitive_count
    _answers(folder, *sensitive, *"fghij" * 40)


def mechanism_of(folder):
    return Survey.load(folder / "new.toml").mechanism.to_record()


@pytest.mark.parametrize("options", [(), ("--sensitive-share", "0.1")])
def test_mechanism_does_not_depend_on_the_share_in_the_table(folder, call, options):
    mechanisms = []
    for sensitive_count in (1, 400):
        write_labels(folder, sensitive_count)
        result = call(*FROM, *SENSITIVE, *options, "--force", "--force-labels", "new.toml")
        assert result.code == 0
        assert "your data was not used for it" in " ".join(result.err.split())
        mechanisms.append(mechanism_of(folder))
    assert mechanisms[0] == mechanisms[1]


def test_mechanism_depends_on_the_share_that_is_passed(folder, call):
    """A comparison that could not fail would prove nothing."""
    write_labels(folder, 30)
    mechanisms = []
    for share in ("0.1", "0.9"):
        command = (*FROM, *SENSITIVE, "--sensitive-share", share, "--force", "new.toml")
        result = call(*command)
        assert result.code == 0
        text = (folder / "new.toml").read_text("utf-8")
        assert f"[mechanism]\nsensitive_share = {share}\n\n[table]  # how to read" in text
        mechanisms.append(mechanism_of(folder))
    assert "90% of people have a sensitive label" in " ".join(result.err.split())
    assert mechanisms[0] != mechanisms[1]


def test_few_sensitive_labels_need_no_share(folder, call):
    write_labels(folder, 30)
    result = call(*FROM, "--sensitive", "a,b,c", "new.toml")
    assert result.code == 0
    assert "share" not in result.err.replace("share of people counted", "")


@pytest.mark.parametrize("share", ["10%", "1.5", "-0.1", "nan", "1e-1", "", "١"])
def test_invalid_share_is_refused(folder, error_from, share):
    write_labels(folder, 30)
    message = error_from(*FROM, *SENSITIVE, f"--sensitive-share={share}", "new.toml")
    assert "--sensitive-share must be a decimal number from 0 to 1" in message
    assert not (folder / "new.toml").exists()


def test_share_requires_sensitive_labels(folder, error_from):
    write_labels(folder, 30)
    message = error_from(*FROM, "--sensitive-share", "0.1", "new.toml")
    assert "--sensitive-share requires --sensitive" in message
