"""A session that would send a run's rows elsewhere, or leave some out, is refused, and says what to unset."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.errors import SessionRefused
from backcast.spark.session import check_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.wap.id", "audit"),
        ("spark.wap.branch", "audit"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        ("spark.sql.files.ignoreCorruptFiles", "TRUE"),
    ],
)
def test_a_session_with_a_dangerous_setting_is_refused(
    spark: SparkSession, spark_settings: SessionSettings, key: str, value: str
) -> None:
    elsewhere = spark.newSession()
    elsewhere.conf.set(key, value)
    with pytest.raises(SessionRefused, match=key) as caught:
        check_session(elsewhere, spark_settings)
    assert "unset" in caught.value.hint
