"""Reports under keys are only for tables that Spark computes the same way every time."""

import os
from collections import defaultdict

import pyarrow as pa
import pytest

import sfumato.engines.spark.engine as spark_engine
from sfumato import Domain, Survey, Uniform
from sfumato.engines.spark.engine import keyed_reports, privatize_to
from sfumato.engines.spark.inputs import REPEATABLE_EXPRESSIONS, file_states, require_repeatable
from sfumato.errors import InvalidTable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LABELS = ["park", "café", "clinic", "bar", "school"]
SURVEY = Survey("private", Uniform(Domain(LABELS), 1))
PEOPLE = 10_000


def people_with_two_reports(table):
    """How many people have more than one report after two evaluations inside one block."""
    reports_of = defaultdict(set)
    with keyed_reports(SURVEY, table, column="place", key="account") as reports:
        for _ in range(2):
            # A new plan, so that Spark reuses nothing of the first evaluation.
            for account, report in reports.select("*").collect():
                reports_of[account].add(report)
    return sum(len(made) > 1 for made in reports_of.values())


# --- tables with other rows each time -------------------------------------------------------------


def shuffled(spark):
    """Three rows per person with three labels, in an order that changes each time."""
    labels = ", ".join(f"'{label}'" for label in LABELS)
    label = f"array({labels})[int(id div {PEOPLE})] AS place"
    return (
        spark.range(0, 3 * PEOPLE, 1, 8)
        .selectExpr(f"id % {PEOPLE} AS account", label)
        .repartition(16)
    )


def first_of_duplicates(spark):
    return shuffled(spark).dropDuplicates(["account"])


def most_frequent(spark):
    from pyspark.sql import functions as sql

    return shuffled(spark).groupBy("account").agg(sql.mode("place").alias("place"))


def undeclared_random_function(spark):
    from pyspark.sql import functions as sql

    @sql.udf("string")
    def any_label(_):
        import random

        return random.choice(["park", "bar"])

    return spark.range(0, 1000, 1, 4).select(
        sql.col("id").alias("account"), any_label("id").alias("place")
    )


def first_of_ties(spark):
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    ties = Window.partitionBy("account").orderBy(sql.lit(1))
    numbered = shuffled(spark).withColumn("number", sql.row_number().over(ties))
    return numbered.where("number = 1").select("account", "place")


UNREPEATABLE = {
    first_of_duplicates: "Deduplicate",
    most_frequent: "Aggregate",
    undeclared_random_function: "PythonUDF",
    first_of_ties: "Window",
}
unrepeatable = pytest.mark.parametrize("table", UNREPEATABLE, ids=lambda table: table.__name__)


@unrepeatable
def test_tables_with_other_rows_each_time_are_refused(cluster, table):
    with pytest.raises(
        InvalidTable,
        match=f"{UNREPEATABLE[table]} does not guarantee that.*Write the table to files",
    ):
        people_with_two_reports(table(cluster.spark))


@unrepeatable
def test_reports_to_a_folder_follow_the_same_rule(cluster, tmp_path, table):
    with pytest.raises(InvalidTable, match="does not guarantee that"):
        privatize_to(
            SURVEY, table(cluster.spark), str(tmp_path / "out"), column="place", key="account"
        )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@unrepeatable
def test_without_the_refusal_people_would_have_two_reports(cluster, monkeypatch, table):
    """The twin: these tables are as bad as the refusal says."""
    monkeypatch.setattr(spark_engine, "require_repeatable", lambda _: None)
    assert people_with_two_reports(table(cluster.spark)) > 100


@pytest.mark.slow
def test_a_copy_in_files_has_one_report_per_person(cluster, tmp_path):
    """What the errors recommend works."""
    table = first_of_duplicates(cluster.spark)
    table.write.parquet(str(tmp_path / "copy"))
    assert people_with_two_reports(cluster.spark.read.parquet(str(tmp_path / "copy"))) == 0
    assert people_with_two_reports(table.checkpoint()) == 0


@pytest.mark.slow
def test_accepted_steps_give_one_report_per_person(cluster):
    """Joins, unions, filters and sorts on shuffled rows, where order would show if it mattered."""
    spark = cluster.spark
    people = shuffled(spark).where("place = 'park'").repartition(7)
    others = (
        shuffled(spark)
        .where("place = 'bar'")
        .selectExpr(f"account + {PEOPLE} AS account", "place")
        .orderBy("place")
    )
    places = spark.createDataFrame(
        pa.table({"place": ["park", "bar"], "own": ["school", "clinic"]})
    ).repartition(2)
    table = (
        people.union(others)
        .join(places, "place")
        .selectExpr("account", "own AS place")
        .repartition(5)
    )
    assert people_with_two_reports(table) == 0


# --- plans ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(cluster, tmp_path_factory):
    """The same ten people in files of every format, as a view and as tables of the catalogue."""
    written = tmp_path_factory.mktemp("formats")
    columns = {
        "account": range(10),
        "place": LABELS * 2,
        "day": ["2024-05-06"] * 10,
        "city": ["a b", "c:[d]%"] * 5,
    }
    people = cluster.spark.createDataFrame(
        pa.table({name: list(values) for name, values in columns.items()})
    )
    for form in ("parquet", "orc", "csv", "json"):
        people.write.option("header", "true").format(form).save(str(written / form))
    people.select("place").write.text(str(written / "text"))
    people.write.saveAsTable("people")
    people.write.partitionBy("city").saveAsTable("people_by_city")
    cluster.spark.table("people").createTempView("seen_people")
    yield written
    cluster.spark.catalog.dropTempView("seen_people")
    for name in ("people", "people_by_city"):
        cluster.spark.sql(f"DROP TABLE {name}")


REPEATABLE = {
    "Parquet": "SELECT * FROM parquet.`{folder}/parquet`",
    "ORC": "SELECT * FROM orc.`{folder}/orc`",
    "JSON": "SELECT * FROM json.`{folder}/json`",
    "lines of text": "SELECT value AS account, value AS place FROM text.`{folder}/text`",
    "table": "SELECT * FROM people",
    "partitioned table": "SELECT * FROM people_by_city",
    "view": "SELECT place, account FROM seen_people",
    "values": "SELECT * FROM VALUES (1, 'park'), (2, 'bar') AS people(account, place)",
    "range": "SELECT id AS account, 'park' AS place FROM range(5)",
    "filter": "SELECT * FROM people WHERE place IN ('park', 'bar') "
    "AND NOT (account <= 3 OR place LIKE 'p%')",
    "dates": "SELECT * FROM people WHERE date_add(DATE'2024-01-01', 3) < '2024-05-06' "
    "AND year(DATE'2024-01-01') > 7",
    "case": "SELECT account, CASE WHEN account > 3 THEN place ELSE coalesce(place, 'bar') "
    "END AS place FROM people",
    "text": "SELECT concat(trim(place), '-', substring(city, 1, 2)) AS place, CAST(account "
    "AS string) FROM people",
    "pattern": "SELECT regexp_replace(split(place, ',')[0], 'a+', 'a') AS place, account + 1 AS "
    "account FROM people",
    "hash": "SELECT sha2(CAST(account AS string), 256) AS account, lower(place) AS place "
    "FROM people",
    "join": "SELECT a.account, b.place "
    "FROM people a LEFT JOIN people_by_city b ON a.account = b.account",
    "broadcast": "SELECT /*+ BROADCAST(b) */ a.account, b.place "
    "FROM people a JOIN people b ON a.account = b.account",
    "anti-join": "SELECT * FROM people a LEFT ANTI JOIN range(3) r ON a.account = r.id",
    "union": "SELECT account, place FROM people UNION ALL SELECT account + 10, place FROM people",
    "order": "SELECT /*+ REPARTITION(3) */ * FROM people ORDER BY place",
}

UNKNOWN = {
    "limit": ("SELECT * FROM people LIMIT 3", "Limit"),
    "sample": ("SELECT * FROM people TABLESAMPLE (50 PERCENT)", "Sample"),
    "distinct": ("SELECT DISTINCT account, place FROM people", "Distinct"),
    "first": ("SELECT account, first(place) AS place FROM people GROUP BY account", "Aggregate"),
    "list": (
        "SELECT account, collect_list(place)[0] AS place FROM people GROUP BY account",
        "Aggregate",
    ),
    "set": ("SELECT * FROM people INTERSECT SELECT * FROM people", "Intersect"),
    "window": ("SELECT account, lead(place) OVER (ORDER BY day) AS place FROM people", "Window"),
    "row number": (
        "SELECT monotonically_increasing_id() AS account, place FROM people",
        "MonotonicallyIncreasingID",
    ),
    "random column": ("SELECT uuid() AS account, place FROM people", "Uuid"),
    "random filter": ("SELECT * FROM people WHERE rand(7) < 0.5", "Rand"),
    "file name": ("SELECT account, input_file_name() AS place FROM people", "InputFileName"),
    "file split": (
        "SELECT account, CAST(_metadata.file_block_start AS string) AS place FROM people",
        "the metadata column",
    ),
    "clock": ("SELECT * FROM people WHERE now() > TIMESTAMP'2024-01-01'", "Now"),
    "day": ("SELECT account, CAST(current_date() AS string) AS place FROM people", "CurrentDate"),
    "hidden clock": (
        "SELECT * FROM people WHERE CAST('today' AS date) > DATE'2024-01-01'",
        "cast whose result may depend on the time",
    ),
    "part of a moment": (
        "SELECT account, CAST(CAST(day AS timestamp) AS string) AS place FROM people",
        "a cast whose result may depend",
    ),
    "time of day": (
        "SELECT * FROM people WHERE CAST('12:30' AS timestamp) < TIMESTAMP'2024-01-01'",
        "a cast whose result may depend",
    ),
    "subquery": (
        "SELECT account, (SELECT first(place) FROM people) AS place FROM people",
        "ScalarSubquery",
    ),
    "method": (
        "SELECT account, reflect('java.util.UUID', 'randomUUID') AS place FROM people",
        "CallMethodViaReflection",
    ),
    "rows of rows": (
        "SELECT account, explode(array(place, city)) AS place FROM people",
        "Generate",
    ),
}


@pytest.mark.parametrize("name", REPEATABLE)
def test_repeatable_tables_are_accepted(cluster, folder, name):
    require_repeatable(cluster.spark.sql(REPEATABLE[name].format(folder=folder)))


def test_csv_files_are_accepted(cluster, folder):
    require_repeatable(
        cluster.spark.read.option("header", "true").csv(str(folder / "csv")).dropna().fillna("bar")
    )


@pytest.mark.parametrize(
    ("form", "schema"),
    [
        ("csv", "day date"),
        ("csv", "day timestamp"),
        ("json", "day timestamp_ntz"),
        ("json", "nested struct<days: array<date>>"),
        ("json", "days map<string, timestamp>"),
    ],
)
def test_dates_in_text_files_are_refused(cluster, folder, form, schema):
    """Their meaning depends on the session's time zone, and a bare time of day means today's."""
    reader = cluster.spark.read.schema(f"account bigint, place string, {schema}").format(form)
    with pytest.raises(InvalidTable, match="a column of dates or times in a text file"):
        require_repeatable(reader.load(str(folder / form)))


def test_a_column_named_like_a_type_is_accepted(cluster, folder):
    people = cluster.spark.read.schema("account bigint, place string, date string")
    require_repeatable(people.json(str(folder / "json")))


@pytest.mark.parametrize("name", UNKNOWN)
def test_steps_that_are_not_known_to_repeat_are_refused(cluster, folder, name):
    query, named = UNKNOWN[name]
    with pytest.raises(InvalidTable, match=named):
        require_repeatable(cluster.spark.sql(query))


def passed_on(batches):
    return batches


SOURCES = {
    "Python rows": (
        lambda spark, table: spark.createDataFrame([(1, "park")], ["account", "place"]),
        "RDD",
    ),
    "RDD": (lambda spark, table: table.rdd.toDF(table.schema), "RDD"),
    "Python step": (lambda spark, table: table.mapInArrow(passed_on, table.schema), "MapInArrow"),
    "local checkpoint": (lambda spark, table: table.localCheckpoint(), "RDD"),
    "checkpoint to come": (lambda spark, table: table.checkpoint(eager=False), "RDD"),
    "stream": (lambda spark, table: spark.readStream.format("rate").load(), "a stream"),
}


@pytest.mark.parametrize("name", SOURCES)
def test_sources_that_are_not_known_to_repeat_are_refused(cluster, folder, name):
    make, named = SOURCES[name]
    with pytest.raises(InvalidTable, match=named):
        require_repeatable(make(cluster.spark, cluster.spark.table("people")))


def test_a_cached_table_is_refused_until_it_is_unpersisted(cluster, folder):
    table = cluster.spark.read.parquet(str(folder / "parquet"))
    table.cache()
    with pytest.raises(InvalidTable, match="unpersist"):
        require_repeatable(cluster.spark.read.parquet(str(folder / "parquet")).select("place"))
    table.unpersist()
    require_repeatable(cluster.spark.read.parquet(str(folder / "parquet")).select("place"))


def test_files_that_spark_may_skip_are_refused(cluster, folder):
    skipping = cluster.spark.read.option("IGNOREcorruptFiles", "true").parquet(
        str(folder / "parquet")
    )
    with pytest.raises(InvalidTable, match="the option ignoreCorruptFiles lets Spark skip"):
        require_repeatable(skipping)
    cluster.spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(
            InvalidTable, match=r"the setting spark\.sql\.files\.ignoreMissingFiles"
        ):
            require_repeatable(cluster.spark.table("people"))
    finally:
        cluster.spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def kinds(spark, name):
    """Whether a class is an expression, and whether Spark itself calls it non-deterministic."""
    find = spark.sparkContext._jvm.java.lang.Class.forName
    package = "org.apache.spark.sql.catalyst.expressions"
    return [
        find(f"{package}.{kind}").isAssignableFrom(find(name))
        for kind in ("Expression", "Nondeterministic")
    ]


def test_the_listed_expressions_exist_and_none_is_random(cluster):
    assert len(REPEATABLE_EXPRESSIONS) > 50
    assert {
        name for name in REPEATABLE_EXPRESSIONS if kinds(cluster.spark, name) != [True, False]
    } == set()


def test_a_random_expression_on_the_list_would_be_noticed(cluster):
    """The twin."""
    assert kinds(cluster.spark, "org.apache.spark.sql.catalyst.expressions.Rand") == [True, True]


# --- files ----------------------------------------------------------------------------------------


def people_in_files(spark, path):
    """A table of people in two Parquet files, and the path of one of them."""
    rows = pa.table({"account": list(range(20)), "place": LABELS * 4})
    spark.createDataFrame(rows).repartition(2).write.parquet(str(path))
    return spark.read.parquet(str(path)), min(path.glob("*.parquet"))


def touch(path):
    """Make a file look as if it had been written again."""
    os.utime(path, (1, 1))


@pytest.mark.parametrize(
    "change", [touch, lambda path: path.unlink()], ids=["written again", "gone"]
)
def test_files_that_change_inside_the_block_are_noticed(cluster, tmp_path, change):
    table, file = people_in_files(cluster.spark, tmp_path / "100% odd names")
    with (
        pytest.raises(InvalidTable, match=r"1 of 2 changed\. Delete the reports"),
        keyed_reports(SURVEY, table, column="place", key="account"),
    ):
        change(file)


def test_files_that_change_during_the_check_are_refused_before_there_is_a_report(
    cluster, tmp_path, monkeypatch
):
    table, file = people_in_files(cluster.spark, tmp_path / "people")
    check = spark_engine._require_valid_rows

    def check_and_touch(*arguments):
        check(*arguments)
        touch(file)

    monkeypatch.setattr(spark_engine, "_require_valid_rows", check_and_touch)
    with (
        pytest.raises(InvalidTable, match=r"1 of 2 changed\. No report was made"),
        keyed_reports(SURVEY, table, column="place", key="account"),
    ):
        pytest.fail("there must be no block")


def test_a_cache_inside_the_block_is_no_change_of_files(cluster, tmp_path):
    table, _ = people_in_files(cluster.spark, tmp_path / "people")
    with keyed_reports(SURVEY, table, column="place", key="account") as reports:
        table.cache()
        assert reports.select("*").count() == 20
    table.unpersist()


def test_files_of_other_partitions_may_change(cluster, folder):
    table = cluster.spark.table("people_by_city").where("city = 'a b'")
    before = file_states(table)
    assert 0 < len(before) < len(file_states(cluster.spark.table("people_by_city")))
    cluster.spark.sql(
        "INSERT INTO people_by_city PARTITION (city = 'other') SELECT 98, 'park', '2024-05-06'"
    )
    assert file_states(table) == before


def test_an_error_inside_the_block_is_not_replaced(cluster, tmp_path):
    table, file = people_in_files(cluster.spark, tmp_path / "people")
    with (
        pytest.raises(RuntimeError, match="the caller's own"),
        keyed_reports(SURVEY, table, column="place", key="account"),
    ):
        touch(file)
        raise RuntimeError("the caller's own")


def test_the_states_of_files_cover_partitions_and_checkpoints(cluster, folder):
    table = cluster.spark.table("people_by_city")
    before = file_states(table)
    assert len(before) == len(table.inputFiles()) > 0
    cluster.spark.sql(
        "INSERT INTO people_by_city PARTITION (city = 'new') SELECT 99, 'park', '2024-05-06'"
    )
    assert before < file_states(table)
    saved = cluster.spark.table("people").checkpoint()
    held = file_states(saved)
    assert held
    touch(min(held)[0].removeprefix("file:"))
    assert file_states(saved) != held
