"""What errors and warnings say about the rows of a table."""

import pytest

from sfumato.contexts import Uniform
from sfumato.domains import Domain, IntegerDomain
from sfumato.errors import InvalidArgument, InvalidTable, UnknownValue
from sfumato.survey import AnswerColumns, OtherWarning, RowCounts, RowRules, Survey

PLACES = Domain(["park", "bar"])
OPEN = Domain(["park", "bar"], other="else")


def rules(domain=OPEN, **columns):
    return RowRules(domain, AnswerColumns("place", **columns))


def message_of(call, *arguments):
    with pytest.raises(UnknownValue) as caught:
        call(*arguments)
    return str(caught.value)


# --- the warning ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (RowCounts(10, unknown=2), ""),
        (RowCounts(10, missing=2), ""),
        (
            RowCounts(10, unknown=3),
            "3 of 10 rows have an answer that is not in the domain and count as 'else'.",
        ),
        (RowCounts(10, missing=3), "3 of 10 rows have no answer and count as 'else'."),
        (
            RowCounts(10, missing=1, unknown=2),
            "2 of 10 rows have an answer that is not in the domain, and 1 of 10 rows has no "
            "answer; they count as 'else'.",
        ),
        (
            RowCounts(3, unknown=1),
            "1 of 3 rows has an answer that is not in the domain and counts as 'else'.",
        ),
    ],
)
def test_warning_above_a_fifth(counts, text):
    assert rules().warning(counts) == text


def test_missing_answers_with_a_rule_cause_no_warning():
    counts = RowCounts(10, missing=4)
    for missing in ("skip", "bar", "else"):
        assert rules(missing=missing).warning(counts) == ""
    assert rules(PLACES, missing="bar").warning(RowCounts(10, missing=9)) == ""


@pytest.mark.parametrize(
    ("styles", "warns"), [({"ambiguous"}, True), ({"ambiguous", "decimal"}, False), (set(), False)]
)
def test_ambiguous_numbers_cause_a_warning(styles, warns):
    counts = RowCounts(1) + RowCounts(2, decimal_styles=frozenset(styles))
    assert ("three digits" in rules(bins=(10.0,)).warning(counts)) == warns


def test_privatize_warns_of_ambiguous_numbers():
    survey = Survey("q", Uniform(Domain(["low", "high"]), 1))
    object.__setattr__(survey.description, "table", AnswerColumns(bins=(10.0,)))
    with pytest.warns(OtherWarning, match="If 1.500 means 1500"):
        survey.privatize(["1.500", "12"])


# --- refusals -------------------------------------------------------------------------------------


def test_check_other_share_refuses_above_half():
    rules().check_other_share(RowCounts(10, missing=2, unknown=3))
    said = message_of(rules().check_other_share, RowCounts(10, 3, 3, 4, 2), "a.csv")
    assert said.startswith(
        "a.csv: 6 of 10 rows, more than half, would count as 'else' (the first in data row 3). "
        "Check the column, or add labels. For the 3 rows without an answer, pass --missing skip or "
        "--missing LABEL. If 'else' is the right answer, set allow_other = true"
    )


def test_rows_that_are_left_out_are_no_part_of_the_share():
    """Otherwise empty cells would hide that all answers count as ``other``."""
    counts = RowCounts(100, missing=84, unknown=4)
    assert rules(missing="bar").warning(counts) == ""
    assert "4 of 100 rows have an answer that is not in" in rules(missing="skip").warning(counts)
    counts = RowCounts(100, missing=85, unknown=15, first_missing=0, first_unknown=85)
    rules(missing="bar").check_other_share(counts)
    said = message_of(rules(missing="skip").check_other_share, counts, "a.csv")
    assert said.startswith(
        "a.csv: 15 of 15 rows with an answer, more than half, would count as 'else' (the first in "
        "data row 86). Check the column, or add labels. If 'else'"
    )


def test_the_survey_file_can_consent_to_a_large_other():
    counts = RowCounts(10, unknown=9, first_unknown=0)
    message_of(rules().check_other_share, counts)
    rules(allow_other=True).check_other_share(counts)
    assert rules(allow_other=True).warning(counts) == ""
    survey = Survey("q", Uniform(OPEN, 1))
    with pytest.raises(UnknownValue, match="allow_other = true"):
        survey.privatize(["zoo"] * 9 + ["bar"])
    object.__setattr__(survey.description, "table", AnswerColumns(allow_other=True))
    assert len(survey.privatize(["zoo"] * 9 + ["bar"])) == 10


@pytest.mark.parametrize(
    ("columns", "kinds", "text"),
    [
        ({"bins": (1.0,)}, {"text"}, "3 of 10 rows have text instead of a number"),
        ({"bins": (1.0,)}, {"text", "dates"}, "3 of 10 rows have no number"),
        ({"date": "weekday"}, {"text"}, "3 of 10 rows have no date"),
        ({"date": "hour"}, {"dates"}, "3 of 10 rows have no time of day"),
        ({"date": "day"}, {"dates"}, "3 of 10 rows have a date outside 2026-01-01 to 2026-01-02"),
        ({"date": "day"}, {"text"}, "3 of 10 rows have no date from 2026-01-01 to 2026-01-02"),
    ],
)
def test_cells_that_the_rules_cannot_read(columns, kinds, text):
    domain = Domain(["2026-01-01", "2026-01-02", *map(str, range(24))])
    counts = RowCounts(10, unknown=3, first_unknown=1, unknown_kinds=frozenset(kinds))
    said = message_of(rules(domain, **columns).check, counts, "a.csv")
    assert said.startswith(f"a.csv: {text} (the first in data row 2). Correct them, ")


@pytest.mark.parametrize("word", ["skip", "refuse"])
def test_a_label_that_is_also_a_rule_is_ambiguous(word):
    rules(missing=word)
    with pytest.raises(InvalidArgument, match=f"'{word}' is ambiguous"):
        rules(Domain(["park", word]), missing=word)


def test_check_other_share_counts_missing_answers_only_without_a_rule():
    counts = RowCounts(10, missing=9)
    for missing in ("skip", "bar", "else"):
        rules(missing=missing).check_other_share(counts)
    rules(PLACES).check_other_share(RowCounts(10, unknown=9))
    with pytest.raises(UnknownValue) as caught:
        rules().check_other_share(RowCounts(4, missing=3, first_missing=1))
    assert (caught.value.first, caught.value.count) == (1, 3)


def test_check_says_where_and_what_to_do():
    counts = RowCounts(2000, 1, 2, 1500, 9, frozenset({"whole numbers"}))
    assert message_of(rules(PLACES).check, counts, "a.csv") == (
        "a.csv: 1 of 2,000 rows has no answer (the first in data row 1,501). Pass --missing "
        "skip to leave out such rows, or --missing LABEL to count them as that answer. 2 of 2,000 "
        "rows have an answer that is not in the domain (the first in data row 10). They look "
        "like whole numbers; the labels are text. If the survey's TOML file has bins or date, "
        "pass it as --table FILE.toml. Correct them, add their labels, or give the domain an "
        "`other` label."
    )
    assert "position 1500). Pass missing='skip'" in message_of(rules(PLACES).check, counts)
    assert "--table" not in message_of(rules(PLACES).check, counts)


def test_a_range_has_no_other_label():
    counts = RowCounts(10, unknown=2, first_unknown=1, unknown_kinds=frozenset({"whole numbers"}))
    said = message_of(rules(IntegerDomain(10, start=20)).check, counts, "a.csv")
    assert said == (
        "a.csv: 2 of 10 rows have an answer that is not in the domain (the first in data row 2). "
        "Correct them, or widen the domain's range (start and size)."
    )
    with pytest.raises(UnknownValue, match=r"Correct them, or widen the domain's range"):
        IntegerDomain(10, start=20).symbols([20, 30])


def test_a_single_answer_is_never_skipped():
    """One answer is what a device has: whether a report exists must not depend on the answer."""
    survey = Survey("q", Uniform(PLACES, 1))
    for answer in ("park", None):
        with pytest.raises(InvalidTable, match="a single person's missing report shows the answer"):
            survey.privatize([answer], missing="skip")
    assert len(survey.privatize(["park", None], missing="skip")) == 1


@pytest.mark.parametrize("answer", ["park", "zoo", None])
def test_a_single_answer_is_sent_without_a_warning(answer):
    """A table of such answers is refused. On a device, a refusal would show the answer."""
    assert len(Survey("q", Uniform(OPEN, 1)).privatize([answer])) == 1


def test_errors_name_arguments_in_python():
    in_python = RowRules(PLACES, AnswerColumns("place"), "python")
    counts = RowCounts(2000, 1, 2, 1500, 9, frozenset({"whole numbers"}))
    message = message_of(in_python.check, counts, "a.csv")
    assert "(the first in data row 1,501). Pass missing='skip' to leave out" in message
    assert "--" not in message
    most = RowRules(OPEN, AnswerColumns("place"), "python")
    message = message_of(most.check_other_share, RowCounts(10, 3, 3, 4, 2), "a.csv")
    assert "pass missing='skip' or missing=LABEL" in message


@pytest.mark.parametrize(
    ("kinds", "hint"),
    [
        ({"whole numbers", "decimal numbers"}, "They look like numbers; the labels are text. If "),
        ({"times"}, "They look like times; the labels are text. If the survey's TOML file"),
        ({"durations"}, "They look like durations; the labels are text. Correct"),
        ({"text"}, "data row 1). Correct them"),
        ({"text", "dates"}, "data row 1). Correct them"),
    ],
)
def test_kinds_of_unknown_answers(kinds, hint):
    counts = RowCounts(9, unknown=2, first_unknown=0, unknown_kinds=frozenset(kinds))
    assert hint in message_of(rules(PLACES).check, counts, "a.csv")


def test_check_of_a_single_answer():
    counts = RowCounts(1, unknown=1, first_unknown=0, unknown_kinds=frozenset({"dates"}))
    assert message_of(rules(PLACES, date="day").check, counts, "a.csv") == (
        "a.csv: 1 of 1 row has no date among the labels (the first in data row 1). Correct it, add "
        "its label, or give the domain an `other` label (sfumato init --other)."
    )


def test_nothing_left():
    total = RowCounts(2, missing=2) + RowCounts(1, missing=1)
    with pytest.raises(InvalidTable, match="none of the 3 rows has an answer"):
        rules(missing="skip").require_answers(total)
    rules(missing="skip").require_answers(total + RowCounts(1))
    rules(missing="skip").require_answers(RowCounts())
    rules(missing="bar").require_answers(total)


def test_privatize_says_that_nothing_is_left():
    survey = Survey("q", Uniform(PLACES, 1))
    with pytest.raises(InvalidTable, match="none of the 2 rows has an answer"):
        survey.privatize([None, None], missing="skip")


# --- the summary ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        (RowCounts(1), "1 row: 1 counted."),
        (RowCounts(2, missing=1), "2 rows: 1 counted, 1 skipped because it has no answer."),
        (RowCounts(3, missing=2), "3 rows: 1 counted, 2 skipped because they have no answer."),
        (RowCounts(2, unknown=1), "2 rows: 2 counted (1 not among the labels as 'else')."),
    ],
)
def test_describe(counts, text):
    assert rules(missing="skip").describe(counts) == text


def test_a_warning_that_ignores_missing_answers_is_detected(monkeypatch):
    counts = RowCounts(10, missing=3)
    text = "3 of 10 rows have no answer and count as 'else'."
    test_warning_above_a_fifth(counts, text)
    monkeypatch.setattr(RowRules, "_count_other", lambda self, counts: counts.unknown)
    with pytest.raises(AssertionError):
        test_warning_above_a_fifth(counts, text)
