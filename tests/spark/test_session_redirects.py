"""A session that would send a run's rows elsewhere is refused, and says what to unset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.errors import SessionRefused
from backcast.spark.session import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings


@pytest.mark.parametrize("key", ["spark.wap.id", "spark.wap.branch"])
def test_a_session_in_the_middle_of_write_audit_publish_is_refused(
    spark: SparkSession, spark_settings: SessionSettings, key: str
) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set(key, "audit")
    with pytest.raises(SessionRefused, match=key) as caught:
        check_session(elsewhere, spark_settings)
    assert "unset" in caught.value.hint
