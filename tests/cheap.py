"""How tests start processes that bring a Spark of their own: as cheap as such a process can be."""

from __future__ import annotations

import json

from backcast.model.pipeline import TableFormat
from tests.classes import archived_classes

JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m"
"""Short jobs never earn back what the second compiler and a parallel collector cost. With the first compiler alone Java
takes a small code cache for granted, and spends its time on sweeping it; and until it knows how many classes there are,
it collects the whole heap whenever there are more."""

INTERPRETED = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""A dozen rows are read before code for them is compiled and before a plan is worth changing midway. The demo and the
end-to-end tests that start processes do without: they run on the defaults."""


def cheap_java(table_format: TableFormat = TableFormat.ICEBERG, *, topics: bool = False) -> dict[str, str]:
    """For the environment of a process whose Spark keeps the settings that its project gives it.

    A project with topics has other jars, for which no classes are archived: too few processes would have them.
    """
    archive = None if topics else archived_classes(JAVA, table_format)
    classes = "" if archive is None else f" -XX:SharedArchiveFile={archive}"
    return {
        "JDK_JAVA_OPTIONS": JAVA,
        "SPARK_SUBMIT_OPTS": f"{JAVA}{classes}",
        "BACKCAST__SPARK__DRIVER_MEMORY": "1g",
    }


def cheap(table_format: TableFormat = TableFormat.ICEBERG, *, topics: bool = False) -> dict[str, str]:
    """For the environment of a process whose Spark has little to do. `topics`: its project reads some."""
    return {**cheap_java(table_format, topics=topics), "BACKCAST__SPARK__CONF": json.dumps(INTERPRETED)}
