"""What runs inside a task, without a cluster: sums, keyed reports, and no value in any error."""

import hashlib
import math
import sys
import traceback
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from sfumato import Domain, GridDomain, Survey, Uniform
from sfumato.engines.spark import engine as spark
from sfumato.engines.spark import tasks as spark_tasks
from sfumato.engines.spark.inputs import require_driver_session
from sfumato.engines.spark.secret import offer_secret
from sfumato.engines.spark.tasks import derive_reports, person_block
from sfumato.errors import InvalidTable, MissingExtra, SfumatoError, UnknownValue
from sfumato.randomness import words_at
from sfumato.tables import AnswerColumns
from support.mechanism_examples import ALL_REPRESENTATIVES

pytest.importorskip("pyspark")

CANARY = "kanarienvogel-4711"
LABELS = ["park", "café", "clinic"]
IN_CLEAR = Survey("in-clear", Uniform(Domain(LABELS), math.inf))
VALUE = AnswerColumns("value")
SECRET = bytes(range(32))


def batch(**columns):
    return pa.record_batch(list(columns.values()), names=list(columns))


def outcome_of(rows):
    (only,) = rows
    return only.to_pylist()[0]


def counts_in(row):
    return spark_tasks.counts_from_bytes(row["counts"], IN_CLEAR.mechanism.outputs).tolist()


# --- keys -----------------------------------------------------------------------------------------


def test_a_block_is_the_hash_of_survey_and_key():
    survey = hashlib.sha256(b"a survey").hexdigest()
    for key, plain in [("Zoë", b"Zo\xc3\xab"), (-7, b"-7"), (b"\xff", b"\xff"), ("", b"")]:
        assert (
            person_block(survey, key) == hashlib.sha256(bytes.fromhex(survey) + plain).digest()[:16]
        )


def test_spellings_of_a_name_are_different_keys():
    assert person_block("00" * 32, "Zo\u00eb") != person_block("00" * 32, "Zoe\u0308")


def test_another_survey_has_other_blocks():
    assert person_block("00" * 32, "Ada") != person_block("11" * 32, "Ada")


def enciphered_block(block):
    return Cipher(AES(SECRET), ECB()).encryptor().update(block)


@pytest.mark.parametrize("mechanism", ALL_REPRESENTATIVES, ids=repr)
def test_keyed_reports_are_those_of_one_person_at_a_time(mechanism):
    symbols = np.arange(40) % mechanism.inputs
    blocks = [person_block("ab" * 32, i) for i in range(40)]
    together = derive_reports(mechanism, symbols, b"".join(blocks), SECRET)
    for i in range(40):
        symbol = int(symbols[i]).to_bytes(8, "little") + bytes(8)
        chained = bytes(a ^ b for a, b in zip(enciphered_block(blocks[i]), symbol, strict=True))
        enciphered = enciphered_block(chained)
        drawn = [int.from_bytes(enciphered[:8], "little"), int.from_bytes(enciphered[8:], "little")]
        words = [word >> (64 - mechanism.word_bits) for word in drawn[: mechanism.words]]
        assert (
            together[i]
            == mechanism.reports_from([symbols[i]], np.array([words], dtype=np.uint64))[0]
        )


def agreements(words_of):
    """For how many of 4,000 people the first bits of the words of two symbols agree."""
    people = b"".join(person_block("cd" * 32, i) for i in range(4000))
    one, other = (
        words_of(np.full(4000, symbol), people, SECRET)[:, 0] >> np.uint64(63) for symbol in (0, 1)
    )
    return int((one == other).sum())


def test_each_symbol_of_a_person_has_independent_words():
    # Half of 4,000 fair coins agree; 1,700 … 2,300 leaves out less than 1e-20.
    assert 1700 < agreements(spark_tasks._derive_words) < 2300


def test_words_without_the_symbol_are_noticed():
    """The twin: words of the key alone are the same for both symbols."""
    assert agreements(lambda _, blocks, secret: words_at(secret, blocks)) == 4000


def test_reports_do_not_depend_on_batches():
    people = batch(value=pa.array(LABELS * 5), key=pa.array(range(15)))
    blocks = pa.array([person_block(IN_CLEAR.fingerprint, i) for i in range(15)], pa.binary())
    survey = Survey("private", Uniform(Domain(LABELS), 1))
    whole = people.append_column("block", blocks)
    with offer_secret("127.0.0.1", "127.0.0.1") as ticket:
        one = pa.Table.from_batches(
            spark_tasks.report_in_task(survey.resolved(), VALUE, ticket, [whole])
        )
        cut = [whole.slice(9, 6), whole.slice(0, 0), whole.slice(0, 9)]
        other = pa.Table.from_batches(
            spark_tasks.report_in_task(survey.resolved(), VALUE, ticket, cut)
        )
    assert one.num_rows == 15
    assert sorted(zip(*one.to_pydict().values(), strict=True)) == sorted(
        zip(*other.to_pydict().values(), strict=True)
    )


# --- sums -----------------------------------------------------------------------------------------


def test_a_task_returns_one_row_of_counts():
    batches = [
        batch(value=pa.array(["park", "park", "clinic"])),
        batch(value=pa.array([], pa.string())),
    ]
    row = outcome_of(spark_tasks.tally_in_task(IN_CLEAR.resolved(), VALUE, batches))
    assert counts_in(row) == [2, 0, 1]
    assert row["error"] is None


def test_a_task_without_rows_counts_nothing():
    assert counts_in(outcome_of(spark_tasks.tally_in_task(IN_CLEAR.resolved(), VALUE, []))) == [
        0,
        0,
        0,
    ]


@pytest.mark.parametrize("largest", [0, 1, 255, 256, 2**16, 2**32 - 1, 2**32, 2**62])
def test_counts_travel_unchanged(largest):
    counts = np.array([0, largest, 1, 0])
    held = spark_tasks.counts_to_bytes(counts)
    assert spark_tasks.counts_from_bytes(held, 4).tolist() == counts.tolist()
    assert len(held) == 4 * max(1, next(width for width in (1, 2, 4, 8) if largest < 256**width))


def rows_of(*columns, survey=IN_CLEAR):
    values = (pa.array(column, pa.string()) for column in columns)
    tasks = (
        spark_tasks.tally_in_task(survey.resolved(), VALUE, [batch(value=column)])
        for column in values
    )
    return [outcome_of(task) for task in tasks]


def test_sums_add_up():
    tally = spark._sum_counts(
        IN_CLEAR, VALUE, rows_of(["park"], ["clinic"] * 300, ["park", "café"])
    )
    assert tally.counts.tolist() == [2, 1, 300]
    assert tally.fingerprint == IN_CLEAR.fingerprint


def test_bad_rows_of_all_tasks_are_counted_together():
    rows = rows_of(["park"], ["elsewhere", None], ["park", "nowhere"])
    with pytest.raises(UnknownValue, match=r"1 of 5 rows has no answer.*2 of 5 rows have an"):
        spark._sum_counts(IN_CLEAR, VALUE, rows)
    with pytest.raises(InvalidTable, match="no rows"):
        spark._sum_counts(IN_CLEAR, VALUE, rows_of([]))


def test_other_answers_of_all_tasks_are_counted_together():
    """One task has only other answers, but three quarters of the table are in the domain."""
    survey = Survey("open", Uniform(Domain(["park", "elsewhere"], other="elsewhere"), 1))
    rows = rows_of(["sea"], ["park"] * 3, survey=survey)
    assert spark._sum_counts(survey, VALUE, rows).reports == 4
    with pytest.raises(
        UnknownValue, match="3 of 5 rows, more than half, would count as 'elsewhere'\\."
    ):
        spark._sum_counts(survey, VALUE, rows_of(["sea"] * 3, ["park"] * 2, survey=survey))


def test_a_file_without_answers_may_be_skipped_but_not_all_files(tmp_path):
    columns = replace(VALUE, missing="skip")
    empty = tmp_path / "empty.csv"
    empty.write_text("id,value\n1,\n2,\n")
    answers = tmp_path / "answers.csv"
    answers.write_text("id,value\n1,park\n2,\n")

    def tally(*paths):
        indices = [batch(id=pa.array(range(len(paths))))]
        task = spark_tasks.tally_files_in_task(
            IN_CLEAR.resolved(), columns, tuple(map(str, paths)), indices
        )
        return spark._sum_counts(IN_CLEAR, columns, [outcome_of(task)])

    assert tally(empty, answers).counts.tolist() == [1, 0, 0]
    with pytest.raises(InvalidTable, match="none of the 2 rows has an answer"):
        tally(empty)
    rows = rows_of([None, None], [None])
    with pytest.raises(InvalidTable, match="none of the 3 rows has an answer"):
        spark._sum_counts(IN_CLEAR, columns, rows)


def test_errors_name_the_argument_and_not_the_option(tmp_path):
    (tmp_path / "answers.csv").write_text("id,value\n1,park\n2,\n3,7\n")
    paths = (str(tmp_path / "answers.csv"),)
    file_task = spark_tasks.tally_files_in_task(
        IN_CLEAR.resolved(), VALUE, paths, [batch(id=pa.array([0]))]
    )
    for rows in ([outcome_of(file_task)], rows_of(["park", None, "7"])):
        with pytest.raises(UnknownValue) as caught:
            spark._sum_counts(IN_CLEAR, VALUE, rows)
        message = str(caught.value)
        assert "Pass missing='skip' to leave out such rows, or missing=LABEL" in message
        assert "--" not in message


def test_missing_overrides_the_rule_of_the_survey():
    description = replace(IN_CLEAR.description, table=AnswerColumns(missing="skip"))
    survey = Survey.from_description(description, IN_CLEAR.mechanism)
    assert spark._answer_columns(survey, "value", None, None, None).missing == "skip"
    assert spark._answer_columns(survey, "value", None, None, "refuse").missing == "refuse"
    with (
        pytest.raises(InvalidTable, match="a key without a report shows whose answer is missing"),
        spark.keyed_reports(IN_CLEAR, None, column="value", key="key", missing="skip"),
    ):
        pass


class _Frame:
    """What a table of Spark says about its columns."""

    def __init__(self, type_name):
        data_type = SimpleNamespace(simpleString=lambda: type_name)
        self.columns = ["value"]
        self.schema = {"value": SimpleNamespace(dataType=data_type)}

    def __getitem__(self, name):
        return name


RULES = {
    "labels": (VALUE, {"string", "bigint"}),
    "bins": (replace(VALUE, bins=(1.0,)), {"string", "bigint", "double", "float"}),
    "date": (replace(VALUE, date="day"), {"string", "date", "timestamp", "timestamp_ntz"}),
}


@pytest.mark.parametrize("name", RULES)
def test_the_rules_of_the_survey_decide_about_types(name):
    columns, type_names = RULES[name]
    for type_name in ("string", "bigint", "double", "float", "date", "timestamp", "timestamp_ntz"):
        if type_name in type_names:
            assert spark._select_values(_Frame(type_name), columns) == "`value`"
        else:
            with pytest.raises(InvalidTable, match=f"but its type is {type_name}"):
                spark._select_values(_Frame(type_name), columns)


def test_one_failed_task_fails_the_tally():
    good_rows = rows_of(["park"])
    failed_rows = [
        {**good_rows[0], "part": part, "error": "InvalidTable", "message": f"failure {part}"}
        for part in (2, 1)
    ]
    with pytest.raises(InvalidTable, match=r"failure 1.*Other failed tasks: 1"):
        spark._sum_counts(IN_CLEAR, VALUE, [*good_rows, *failed_rows])


def test_skipping_is_refused_for_keyed_reports():
    """A person without an answer would be the one whose key is missing."""
    description = replace(IN_CLEAR.description, table=AnswerColumns(missing="skip"))
    survey = Survey.from_description(description, IN_CLEAR.mechanism)
    with (
        pytest.raises(InvalidTable, match="a key without a report shows whose answer is missing"),
        spark.keyed_reports(survey, None, column="value", key="key"),
    ):
        pass


@pytest.mark.parametrize(
    "name", ["UnknownValue", "InvalidTable", "EntropyUnavailable", "no such", "annotations"]
)
def test_task_errors_keep_their_class(name):
    error = spark._error_class(name)("a message")
    assert isinstance(error, SfumatoError)
    assert name.startswith(("no", "ann")) or type(error).__name__ == name


BAD = {
    "unknown": ["park", CANARY],
    "missing": ["park", None],
    "not UTF-8": pa.Array.from_buffers(
        pa.string(),
        1,
        [None, pa.py_buffer(np.array([0, 19], np.int32)), pa.py_buffer(CANARY.encode() + b"\xff")],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_tasks_reveal_no_value(name):
    values = BAD[name] if isinstance(BAD[name], pa.Array) else pa.array(BAD[name], pa.string())
    row = outcome_of(spark_tasks.tally_in_task(IN_CLEAR.resolved(), VALUE, [batch(value=values)]))
    assert CANARY not in repr(row)
    with pytest.raises((UnknownValue, InvalidTable)) as caught:
        spark._sum_counts(IN_CLEAR, VALUE, [row])
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    blocks = pa.array([bytes(16)] * len(values), pa.binary())
    people = batch(value=values, key=pa.array([CANARY] * len(values)), block=blocks)
    with (
        offer_secret("127.0.0.1", "127.0.0.1") as ticket,
        pytest.raises((UnknownValue, InvalidTable)) as caught,
    ):
        list(spark_tasks.report_in_task(IN_CLEAR.resolved(), VALUE, ticket, [people]))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_unknown_values_are_counted_with_their_blocks():
    blocks = pa.array([b"a" * 16, b"b" * 16, None], pa.binary())
    people = batch(value=pa.array(["park", CANARY, None]), block=blocks)
    (flags,) = spark_tasks.flag_unknown(IN_CLEAR.resolved(), VALUE, [people])
    assert flags.column("block").to_pylist() == [b"a" * 16, b"b" * 16, None]
    assert sum(flags.column("unknown").to_pylist()) == 1
    assert sum(flags.column("missing").to_pylist()) == 1


def test_positions_are_read_as_degrees():
    survey = Survey("cells", Uniform(GridDomain(0, 2, 0, 2, 1), math.inf))
    spots = batch(latitude=pa.array([0.5, 1.5, 1.5]), longitude=pa.array([0.5, 0.5, 0.5]))
    columns = AnswerColumns(None, "latitude", "longitude")
    expected = np.bincount(
        survey.context.domain.symbols_at([0.5, 1.5, 1.5], [0.5, 0.5, 0.5]), minlength=4
    )
    held = outcome_of(spark_tasks.tally_in_task(survey.resolved(), columns, [spots]))["counts"]
    assert spark_tasks.counts_from_bytes(held, 4).tolist() == expected.tolist()


# --- without Spark --------------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["pyspark", "pandas"])
def test_a_missing_extra_is_named(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install .*\[spark\]'"):
        spark.tally_column(IN_CLEAR, None, column="place")
    with pytest.raises(MissingExtra, match="Sfumato"):
        spark.tally_files(None, IN_CLEAR, ["/a.csv"], VALUE)
    with (
        pytest.raises(MissingExtra, match="Sfumato"),
        spark.keyed_reports(IN_CLEAR, None, column="p", key="k"),
    ):
        pass


def test_remote_sessions_are_refused():
    with pytest.raises(InvalidTable, match="Spark Connect"):
        require_driver_session(object())
