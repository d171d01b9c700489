"""Which tables may have reports under keys: only those that Spark computes the same way every time."""

from collections import defaultdict

import pytest

from sfumato import Domain, Survey, Uniform
from sfumato.engines.spark import keyed_reports
from sfumato.errors import InvalidTable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]

LABELS = ["park", "café", "clinic", "bar", "school"]
SURVEY = Survey("private", Uniform(Domain(LABELS), 1))
ROWS = 300_000
PEOPLE = 100_000


def label_sql(number):
    """A label for a number, as Spark computes it."""
    listed = ", ".join(f"'{label}'" for label in LABELS)
    return f"array({listed})[int({number} % {len(LABELS)})]"


def shuffled(spark):
    """Three rows per person with different labels, in an order that changes from one evaluation to the next."""
    rows = spark.range(0, ROWS, 1, 8).selectExpr(f"id % {PEOPLE} AS account", f"{label_sql(f'(id div {PEOPLE})')} AS place")
    return rows.repartition(16)


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

    return spark.range(0, 1000, 1, 4).select(sql.col("id").alias("account"), any_label("id").alias("place"))


def first_of_ties(spark):
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    ties = Window.partitionBy("account").orderBy(sql.lit(1))
    numbered = shuffled(spark).withColumn("number", sql.row_number().over(ties))
    return numbered.where("number = 1").select("account", "place")


UNREPEATABLE = [first_of_duplicates, most_frequent, undeclared_random_function, first_of_ties]


def people_with_two_reports(table):
    """How many people have more than one report in two evaluations inside one block."""
    reports_of = defaultdict(set)
    with keyed_reports(SURVEY, table, column="place", key="account") as reports:
        for _ in range(2):
            for account, report in reports.select("*").collect():
                reports_of[account].add(report)
    return sum(len(reports) > 1 for reports in reports_of.values())


@pytest.mark.parametrize("table", UNREPEATABLE, ids=lambda table: table.__name__)
def test_nobody_has_two_reports(cluster, table):
    try:
        found = people_with_two_reports(table(cluster.spark))
    except InvalidTable as error:
        found = 0
        print(error)
    assert found == 0
