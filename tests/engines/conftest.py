"""Fixtures for the tests of engines."""

import pytest

from support.spark_cluster import Cluster, java_is_new_enough, stop_java


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """One cluster for all tests of a pytest worker."""
    pytest.importorskip("pyspark")
    if not java_is_new_enough():
        pytest.skip("needs Java 17")
    with pytest.MonkeyPatch.context() as monkeypatch:
        cluster = Cluster(tmp_path_factory.mktemp("cluster"), monkeypatch)
        yield cluster
        cluster.spark.stop()
        stop_java()
