"""What tests of engines share."""

import pytest

from support.spark_cluster import Cluster, java_is_new_enough, stop_java


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """One cluster for all tests of a worker of the test runner."""
    pytest.importorskip("pyspark")
    if not java_is_new_enough():
        pytest.skip("needs Java 17")
    with pytest.MonkeyPatch.context() as monkeypatch:
        started = Cluster(tmp_path_factory.mktemp("cluster"), monkeypatch)
        yield started
        started.spark.stop()
        stop_java()
