"""Frames as temporary views, for queries that name them like tables."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Views belong to the session, and jobs side by side may share it. A query is bound to its frames once it is analysed.
_views = threading.Lock()


@contextmanager
def as_views(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as temporary views; a view of the same name that was there before is there again afterwards."""
    with _views:
        catalog = spark._jsparkSession.sessionState().catalog()
        before = {name: spark.table(name) for name in frames if catalog.getTempView(name).isDefined()}
        try:
            for name, frame in frames.items():
                frame.createOrReplaceTempView(name)
            yield
        finally:
            for name in frames:
                if name in before:
                    before[name].createOrReplaceTempView(name)
                else:
                    spark.catalog.dropTempView(name)
