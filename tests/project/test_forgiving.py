"""Surveys, labels and reports are accepted where they are natural; other errors show the call."""

import inspect
from operator import attrgetter
from typing import get_args

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.designer.choose import CODES, CodeName
from sfumato.errors import (
    ContextMismatch,
    InvalidArgument,
    InvalidContext,
    InvalidSurvey,
    InvalidSymbols,
    InvalidTally,
    UnknownLabel,
    WrongSurvey,
)
from sfumato.foundation.decoder_table import DECODER_TABLE, DecoderName

LABELS = ["park", "café", "clinic"]
CONTEXT = sf.HighLow(LABELS, ["clinic"], 1)
SURVEY = sf.Survey("lunch", CONTEXT)
MECHANISM = SURVEY.mechanism
ANSWERS = ["park", "clinic", "café", "park"] * 25
BATCH = sf.simulation.reports(SURVEY, ANSWERS, seed=1)
ESTIMATE = SURVEY.estimate(BATCH)
COLUMN = pd.Series(LABELS)
TABLE = pd.DataFrame({"place": LABELS, "age": [20, 30, 40]})
ARROW_TABLE = pa.Table.from_pandas(TABLE)


# --- surveys and reports --------------------------------------------------------------------------


def test_plan_of_a_survey_is_for_its_mechanism():
    mechanism = sf.PlainResponse(sf.Uniform(LABELS, 1))
    survey = sf.Survey("lunch", CONTEXT, mechanism)
    for holder in (survey, sf.design(CONTEXT), mechanism):
        result = sf.plan(holder, error=0.1)
        own = sf.plan(holder.context, error=0.1, mechanism=getattr(holder, "mechanism", holder))
        assert result.people == own.people
    assert sf.plan(survey, error=0.1).people > sf.plan(CONTEXT, error=0.1).people


@pytest.mark.parametrize(
    "reports", [BATCH, BATCH.numbers, BATCH.numbers.tolist(), pd.Series(BATCH.numbers), [BATCH]]
)
def test_estimate_of_a_survey_accepts_reports(reports):
    expected = SURVEY.estimate(SURVEY.tally(BATCH))
    for result in (sf.estimate(SURVEY, reports), SURVEY.estimate(reports)):
        assert result.fingerprint == SURVEY.fingerprint
        assert result.frequencies.tolist() == expected.frequencies.tolist()


@pytest.mark.parametrize(
    "reports", [BATCH.numbers, BATCH.numbers.tolist(), pd.Series(BATCH.numbers)]
)
def test_estimate_of_a_mechanism_accepts_reports(reports):
    expected = sf.estimate(MECHANISM, MECHANISM.tally(BATCH.numbers))
    assert sf.estimate(MECHANISM, reports).frequencies.tolist() == expected.frequencies.tolist()


def test_estimate_keeps_the_minimum_of_a_survey():
    survey = sf.Survey("lunch", CONTEXT, minimum_reports=1000)
    with pytest.raises(sf.errors.NotEnoughReports):
        sf.estimate(survey, BATCH.numbers)


def test_reports_of_a_survey_need_the_survey():
    with pytest.raises(WrongSurvey, match=r"sf\.estimate\(survey, reports\)"):
        sf.estimate(MECHANISM, BATCH)


def test_survey_stands_for_its_mechanism_or_context():
    assert sf.certify(SURVEY) == SURVEY.certify()
    assert sf.check_mechanism(SURVEY) == sf.check_mechanism(MECHANISM)
    assert sf.error_region(SURVEY, 2, 0) == sf.error_region(MECHANISM, 2, 0)
    assert sf.posterior_odds(SURVEY).context == CONTEXT
    loss = sf.privacy_loss(SURVEY, 2, 0)
    assert loss.epsilon(1e-6) == sf.privacy_loss(MECHANISM, 2, 0).epsilon(1e-6)


# --- labels ---------------------------------------------------------------------------------------


def test_labels_stand_for_symbols():
    assert sf.error_region(CONTEXT, "clinic", "park") == sf.error_region(CONTEXT, 2, 0)
    odds = sf.posterior_odds(CONTEXT)
    assert odds.bound("clinic", "park") == odds.bound(2, 0)
    assert odds.in_words("clinic", "park") == odds.in_words(2, 0)
    assert CONTEXT.epsilon("clinic", ["park", "café"]).tolist() == [1.0, 1.0]
    assert CONTEXT.epsilon(["clinic", 0], 1).tolist() == [1.0, np.inf]
    assert MECHANISM.exact_row("clinic") == MECHANISM.exact_row(2)
    assert sf.audit(MECHANISM, samples=1000, symbols=["clinic", "park"]).symbols == (0, 2)


def test_integers_are_symbols_and_text_is_a_label():
    """0 is both the first symbol and the second label."""
    domain = sf.Domain([1, 0, "2"])
    assert domain.as_symbols([0, 1]).tolist() == [0, 1]
    assert domain.as_symbols(["0", "1", "2"]).tolist() == [1, 0, 2]
    assert domain.as_symbols([0, "0"]).tolist() == [0, 1]
    ages = sf.IntegerDomain(10, start=18)
    assert ages.as_symbols(["18", 0, "27"]).tolist() == [0, 0, 9]
    for wrong in (["17"], ["018"], [10], [1.0], [True]):
        with pytest.raises(InvalidSymbols):
            ages.as_symbols(wrong)


def test_unknown_labels_name_the_closest():
    with pytest.raises(KeyError, match="Did you mean 'clinic'"):
        sf.error_region(CONTEXT, "Clinic", "park")
    with pytest.raises(ValueError, match="The labels are 'park', 'café', 'clinic'"):
        CONTEXT.domain.symbol_of("zzz")
    with pytest.raises(InvalidContext, match="Did you mean 'clinic'"):
        sf.HighLow(LABELS, ["clinik"], 1)
    error = UnknownLabel("'a' is unknown.")
    assert str(error) == "'a' is unknown."


# --- errors that show the right call --------------------------------------------------------------


CALLS = [
    (lambda: sf.plan(LABELS, error=0.1), InvalidArgument, r"sf\.plan\(context, error"),
    (lambda: sf.estimate(CONTEXT, BATCH), InvalidArgument, r"sf\.mechanism_for\(context\)"),
    (lambda: sf.estimate(MECHANISM, pd.DataFrame({"a": [1]})), InvalidArgument, "got DataFrame"),
    (lambda: sf.estimate(MECHANISM, ANSWERS), sf.errors.ReportRejected, "survey.privatize"),
    (lambda: sf.certify(CONTEXT), InvalidArgument, r"sf\.certify\(mechanism\)"),
    (lambda: sf.mechanism_for(LABELS), InvalidArgument, r"got list.*sf\.Uniform"),
    (lambda: sf.mechanism_for(SURVEY), InvalidArgument, r"survey\.mechanism"),
    (lambda: sf.Survey("lunch", COLUMN), InvalidSurvey, "got Series.*Uniform"),
    (lambda: sf.Survey(COLUMN), InvalidSurvey, r"got Series.*dropna\(\)\.unique\(\)"),
    (lambda: sf.Survey(LABELS), InvalidSurvey, r"got list.*survey\.privatize"),
    (lambda: sf.Survey("lunch"), InvalidSurvey, r"got NoneType.*sf\.Uniform"),
    (lambda: sf.Survey.from_description(COLUMN), InvalidSurvey, r"got Series.*dropna\(\)\.unique"),
    (lambda: sf.Survey.from_resolved(COLUMN), InvalidSurvey, r"got Series.*sf\.Survey\.load\("),
    (lambda: sf.Survey.from_resolved("{}"), InvalidSurvey, r"bytes of a resolved survey; got str"),
    (lambda: sf.Survey.load(COLUMN), InvalidSurvey, r"path of a survey file; got Series.*survey"),
    (lambda: sf.Uniform(TABLE, 1), InvalidContext, r"got a table.*dropna\(\)\.unique\(\)"),
    (lambda: sf.Domain(pl.DataFrame(TABLE)), InvalidContext, "got a table. Select a column"),
    (lambda: sf.Domain(ARROW_TABLE), InvalidContext, "got a table. Select a column"),
    (lambda: sf.design([[0, 1], [1, 0]]), InvalidContext, r"got list.*sf\.PrivacyMatrix\(E\)"),
    (lambda: sf.design(SURVEY), InvalidContext, r"got Survey.*context = survey\.context"),
    (lambda: ESTIMATE.difference(BATCH), InvalidArgument, r"got ReportBatch.*difference\(after\)"),
    (lambda: sf.posterior_odds(CONTEXT, "park"), InvalidArgument, "3 non-negative numbers"),
    (lambda: sf.posterior_odds(CONTEXT, LABELS), InvalidArgument, "3 non-negative numbers"),
    (lambda: sf.Tally(BATCH.numbers), InvalidTally, r"mechanism\.tally\(reports\)"),
    (lambda: sf.Tally(MECHANISM, "a"), InvalidTally, r"mechanism\.tally\(reports\)"),
    (lambda: sf.Tally([[0], [1, 2]], "a"), InvalidTally, r"mechanism\.tally\(reports\)"),
    (lambda: MECHANISM.privatize(ANSWERS), InvalidSymbols, r"survey\.privatize\(answers\)"),
    (lambda: sf.Uniform(["a", np.nan], 1), InvalidContext, "missing value.*other="),
    (lambda: sf.Uniform(["a", None], 1), InvalidContext, "missing value.*other="),
    (lambda: sf.Uniform(["a", pd.NA], 1), InvalidContext, "missing value.*other="),
    (lambda: sf.Uniform([True, False], 1), InvalidContext, r"got bool.*astype\(str\)"),
    (lambda: sf.Uniform([1.5], 1), InvalidContext, r"got float.*astype\(str\)"),
    (lambda: sf.Uniform([pd.Interval(0, 1)], 1), InvalidContext, r"got Interval.*astype\(str\)"),
]


@pytest.mark.parametrize(("call", "error", "text"), CALLS)
def test_errors_show_the_right_call(call, error, text):
    with pytest.raises(error, match=text):
        call()


FUNCTIONS = [name for name in dir(sf) if inspect.isfunction(getattr(sf, name))]
CONTEXTS = ["Blocks", "HighLow", "Metric", "PrivacyMatrix", "Tiers", "Uniform"]
DOMAINS = ["Domain", "GridDomain", "IntegerDomain"]
YES_NO = sf.Uniform(["yes", "no"], 1)
NAMES = {  # what the variables in the messages mean
    "sf": sf,
    "labels": ["yes", "no"],
    "context": YES_NO,
    "other_context": sf.Uniform(["bus", "tram"], 1),
    "block_of": ["spoken", "silent"],
    "tier_of": ["public", "secret"],
    "epsilon_of_tier": {"public": "inf", "secret": 0.5},
    "distances": [[0, 1], [1, 0]],
    "E": [[0, 1], [1, 0]],
    "mechanism": sf.mechanism_for(YES_NO),
    "first_mechanism": sf.mechanism_for(YES_NO),
    "second_mechanism": sf.mechanism_for(YES_NO),
    "survey": SURVEY,
    "reports": BATCH,
    "answers": ANSWERS,
}


OTHERS = ["Survey", "Client", "simulation.reports"]


@pytest.mark.parametrize("name", [*FUNCTIONS, *CONTEXTS, *DOMAINS, *OTHERS])
def test_wrong_arguments_show_a_call_that_works(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a client writes to its folder
    with pytest.raises(TypeError, match=r"no_such_argument|missing") as caught:
        attrgetter(name)(sf)(no_such_argument=1)
    call = str(caught.value).partition(" Call ")[2].removesuffix(".")
    assert call.startswith(f"sf.{name}(")
    assert eval(call, NAMES) is not None  # noqa: S307 - the text is ours


BLOCK_NAMES = {"labels": ["bus", "tram", "foot"], "block_of": ["ride", "ride", "walk"]}
RESPONSES = ["Binary", "Block", "Group", "HighLow", "Plain", "Product"]


@pytest.mark.parametrize("name", [f"{kind}Response" for kind in RESPONSES])
@pytest.mark.parametrize("argument", [LABELS, SURVEY], ids=["labels", "survey"])
def test_mechanisms_need_a_context_and_show_a_call_that_works(name, argument):
    with pytest.raises(InvalidArgument, match=r"must be a context; got (list|Survey)\.") as caught:
        getattr(sf, name)(argument)
    call, _, example = str(caught.value).partition(" Call ")[2].partition(" with e.g. context = ")
    context = eval(example.removesuffix("."), NAMES | BLOCK_NAMES)  # noqa: S307 - the text is ours
    assert type(eval(call, {"sf": sf, "context": context})).__name__ == name  # noqa: S307


def test_labels_and_their_blocks_show_the_call_for_both():
    blocks = ["outside", "inside", "inside"]
    call = r"multiple values for argument 'epsilon'\. Call sf\.Blocks\(block_of, .*domain=labels\)"
    with pytest.raises(TypeError, match=call):
        sf.Blocks(LABELS, blocks, epsilon=1)
    with pytest.raises(TypeError, match=r"sf\.HighLow\(labels, sensitive="):
        sf.HighLow(LABELS, 1, sensitive=["clinic"])
    assert sf.Blocks(blocks, epsilon=1, domain=LABELS).domain == sf.Domain(LABELS)


@pytest.mark.parametrize(
    "call",
    [
        lambda: MECHANISM.privatize([0], seed=1),
        lambda: MECHANISM.privatize([0], np.random.default_rng(1)),
        lambda: MECHANISM.privatize(np.random.default_rng(1)),
        lambda: MECHANISM.privatize_and_tally([0], 1),
        lambda: SURVEY.privatize(["park"], seed=1),
        lambda: SURVEY.privatize(["park"], np.random.default_rng(1)),
    ],
)
def test_seeds_are_refused_with_the_call_that_has_one(call):
    with pytest.raises(InvalidArgument, match=r"NOT PRIVATE, call sf\.simulation\.reports\("):
        call()


# --- seeded reports -------------------------------------------------------------------------------


def test_seeded_reports_repeat():
    assert sf.simulation.reports(SURVEY, ANSWERS, seed=1) == BATCH
    assert sf.simulation.reports(SURVEY, ANSWERS, seed=2) != BATCH
    symbols = CONTEXT.domain.symbols(ANSWERS)
    for answers in (ANSWERS, symbols, symbols.tolist(), pd.Series(ANSWERS)):
        reports = sf.simulation.reports(MECHANISM, answers, seed=1)
        assert reports.tolist() == BATCH.numbers.tolist()


def test_seeded_reports_need_a_randomizer_and_hide_answers():
    with pytest.raises(InvalidArgument, match=r"sf\.simulation\.reports\(survey, answers, seed=1"):
        sf.simulation.reports(CONTEXT, ANSWERS, seed=1)
    with pytest.raises(sf.errors.UnknownValue) as caught:
        sf.simulation.reports(MECHANISM, ["secret"], seed=1)
    assert "secret" not in str(caught.value)


# --- names in signatures --------------------------------------------------------------------------


def test_literals_equal_their_tables():
    assert get_args(DecoderName) == tuple(DECODER_TABLE)
    assert get_args(CodeName) == ("best", *CODES)


# --- tables ---------------------------------------------------------------------------------------


def test_table_that_breaks_its_context_names_the_pair():
    context = sf.PrivacyMatrix([[0, 1], [2, 0]], domain=["no", "yes"])
    broken = [["0.9", "0.1"], ["0.1", "0.9"]]
    for build in (sf.TableResponse.from_fractions, sf.TableResponse.from_floats):
        with pytest.raises(ContextMismatch, match=r"report 0 is 9 times as likely for 'no' as for"):
            build(context, broken)
    with pytest.raises(ContextMismatch, match="sent for 'no' but never for 'yes'"):
        sf.TableResponse.from_fractions(context, [[1, 0], [0, 1]])


SQUARE = sf.Uniform(["a", "b", "c", "d"], 1)
EVEN = np.full((4, 4), 0.25)
WITH_NAN = np.where(np.eye(4), np.nan, 0.25)
WITH_INF = np.where(np.eye(4), np.inf, 0.25)
NEGATIVE = np.array([[1.25, -0.25]] * 4)
TABLES = [
    (lambda: sf.TableResponse.from_floats(SQUARE, WITH_NAN), r"entry \[0, 0\] is nan"),
    (
        lambda: sf.TableResponse.from_floats(SQUARE, WITH_INF),
        r"finite number; entry \[0, 0\] is inf",
    ),
    (lambda: sf.TableResponse.from_floats(SQUARE, NEGATIVE), r"negative; entry \[0, 1\] is -0.25"),
    (lambda: sf.TableResponse.from_floats(SQUARE, [["a"] * 4] * 4), "rows of numbers"),
    (lambda: sf.TableResponse.from_floats(SQUARE, [0.25] * 4), r"got shape \(4,\)"),
    (lambda: sf.TableResponse.from_floats(SQUARE, EVEN[:2]), "each of the 4 symbols; got 2 rows"),
    (lambda: sf.TableResponse.from_floats(EVEN, SQUARE), r"got ndarray.*from_floats\(context, Q\)"),
    (lambda: sf.TableResponse.from_floats(SURVEY, EVEN), "first argument must be a context; got S"),
    (
        lambda: sf.TableResponse.from_fractions(EVEN, SQUARE),
        r"got ndarray.*from_fractions\(context",
    ),
    (lambda: sf.TableResponse(EVEN, SQUARE), r"got ndarray.*TableResponse\(context, integers\)"),
    (lambda: sf.TableResponse(SQUARE, EVEN), r"must contain integers.*got float.*from_floats"),
    (lambda: sf.TableResponse(SQUARE, [["1"] * 4] * 4), "must contain integers.*got str"),
    (lambda: sf.TableResponse(SQUARE, [1, 2, 3, 4]), "a list of rows, each a list of integers"),
    (lambda: sf.TableResponse(SQUARE, 5), "a list of rows, each a list of integers"),
]


@pytest.mark.parametrize(("build", "text"), TABLES)
def test_table_errors_give_the_reason(build, text):
    with pytest.raises((InvalidArgument, InvalidContext), match=text):
        build()


def test_fractions_from_floats_show_the_call_for_floats():
    sevenths = np.array([[1, 2, 4], [2, 4, 1], [4, 1, 2]]) / 7
    context = sf.Uniform(3, "inf")
    with pytest.raises(InvalidContext, match=r"row 0 is off by -5e-17\. Pass .*from_floats"):
        sf.TableResponse.from_fractions(context, sevenths)
    assert sf.TableResponse.from_floats(context, sevenths).outputs == 3
    with pytest.raises(InvalidContext, match="row 0 has 2 entries, and row 1 has 3"):
        sf.TableResponse.from_fractions(sf.Uniform(2, 1), [[1, 0], [1, 0, 0]])


def test_tables_accept_arrays_of_integers():
    rows = [[3 << 62, 1 << 62], [1 << 62, 3 << 62]]
    context = sf.Uniform(2, 2)
    table = sf.TableResponse(context, rows)
    array = np.array(rows, dtype=np.uint64)
    for integers in (array, list(array)):
        assert sf.TableResponse(context, integers).to_record() == table.to_record()


def test_table_of_the_wrong_shape_is_refused():
    context = sf.PrivacyMatrix([[0, 1], [2, 0]])
    for rows in ([["1"]], [["1"]] * 3):
        with pytest.raises(ContextMismatch, match="Q must have a row for each of the 2 symbols"):
            sf.TableResponse.from_fractions(context, rows)
    for rows in ("ab", 3, ["0.5", "0.5"], [1, 2]):
        with pytest.raises(InvalidContext, match="Q must be a matrix"):
            sf.TableResponse.from_fractions(context, rows)
    with pytest.raises(InvalidContext, match="Q must be a matrix"):
        sf.TableResponse.from_floats(context, [[0.5, 0.5], [1.0]])
    with pytest.raises(InvalidContext, match="W must be stochastic"):
        sf.BinaryResponse(context).then([["1", "1"], ["1", "0"]])
