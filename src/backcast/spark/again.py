"""Rows computed a second time, on purpose in another way: what depends on order or parallelism then differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.spark.digest import digest_columns, digest_of_row
from backcast.spark.temporarily import temporarily

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.digest import Digest

_PIECES = 7
_SHUFFLE = "spark.sql.shuffle.partitions"
_ADAPTIVE = "spark.sql.adaptive.enabled"


def shaken(rows: DataFrame) -> DataFrame:
    """The same rows, dealt out to other tasks and in another order."""
    return rows.repartition(_PIECES)


def digest_again(rows: DataFrame) -> Digest:
    """The digest of rows that are computed with another number of tasks on both sides of every shuffle."""
    spark = rows.sparkSession
    tasks = int(spark.conf.get(_SHUFFLE, "200") or 200)
    with temporarily(spark, {_SHUFFLE: str(2 * tasks + 1), _ADAPTIVE: "false"}):
        return digest_of_row(rows.agg(*digest_columns(rows.schema)).collect()[0])
