"""A catalog that cannot be reached is told without the password in its address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.errors import BackcastError
from backcast.spark.gateway import causes
from backcast.spark.iceberg.reader import IcebergReader

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.mark.parametrize("address", ["jdbc:postgresql://127.0.0.1:1/x", "jdbc:nobody://127.0.0.1/x"])
def test_no_error_about_a_catalog_repeats_its_password(spark: SparkSession, tmp_path: Path, address: str) -> None:
    session = spark.newSession()
    name = "lost_" + address.split(":")[1]
    properties = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"{address}?user=ana&password=hunter2",
        ".warehouse": str(tmp_path),
    }
    for key, value in properties.items():
        session.conf.set(f"spark.sql.catalog.{name}{key}", value)
    with pytest.raises(BackcastError) as caught:
        IcebergReader(session, f"{name}.shop.daily").facts()
    error = caught.value
    assert error.__cause__ is not None
    told = [error.message, *(each.message for each in causes(error.__cause__))]
    assert "hunter2" in str(error.__cause__)
    assert "hunter2" not in " ".join(told)
