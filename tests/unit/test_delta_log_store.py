"""Where a Delta log does not keep writers of several processes apart, and what the plan says there."""

from __future__ import annotations

import pytest

from backcast.model.finding import Severity
from backcast.spark.delta.log_store import configured_store, keeps_processes_apart
from backcast.targets.delta.findings import log_findings

DYNAMO, SINGLE = "io.delta.storage.S3DynamoDBLogStore", "io.delta.storage.S3SingleDriverLogStore"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n"])
def test_s3_keeps_processes_apart_only_with_a_log_store_made_for_it(scheme: str) -> None:
    """By itself Delta looks whether the version is there and then puts it, under a lock of its own JVM."""
    assert not keeps_processes_apart(scheme, "")
    assert not keeps_processes_apart(scheme, SINGLE)
    assert not keeps_processes_apart(scheme, "org.apache.spark.sql.delta.storage.S3SingleDriverLogStore")
    assert not keeps_processes_apart(scheme, "com.example.OwnLogStore")
    assert keeps_processes_apart(scheme, DYNAMO)
    (warned,) = log_findings(scheme, "")
    assert (warned.code, warned.severity) == ("target.unshared-log", Severity.WARN)
    assert f"spark.delta.logStore.{scheme}.impl" in warned.remedy
    assert not log_findings(scheme, DYNAMO)


def test_elsewhere_only_storage_that_creates_a_file_once_is_trusted() -> None:
    assert all(keeps_processes_apart(scheme, "") for scheme in ("hdfs", "abfss", "wasbs", "gs"))
    assert not keeps_processes_apart("hdfs", SINGLE)
    assert not keeps_processes_apart("file", "")
    assert not keeps_processes_apart("oss", "")
    assert [each.code for each in log_findings("file", "")] == ["target.local-log"]
    assert [each.code for each in log_findings("oss", "")] == ["target.unshared-log"]


def test_the_log_store_is_what_the_session_names_for_the_scheme() -> None:
    """Delta takes its keys with and without `spark.` in front."""

    def stored(**settings: str) -> str:
        return configured_store("s3a", lambda key: settings.get(key, ""))

    assert stored() == ""
    assert stored(**{"spark.delta.logStore.s3a.impl": DYNAMO}) == DYNAMO
    assert stored(**{"delta.logStore.s3a.impl": DYNAMO}) == DYNAMO
    assert stored(**{"spark.delta.logStore.s3.impl": DYNAMO}) == ""
    assert stored(**{"spark.delta.logStore.class": SINGLE}) == SINGLE
