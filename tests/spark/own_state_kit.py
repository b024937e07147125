"""A query with `transformWithState`: Java's, compiled by what Spark compiles its plans with. Python's own door to it
needs `protobuf`, which is not among our packages.
"""

from __future__ import annotations

import zipfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLASS = "Counting"
_SOURCE = """
import java.util.ArrayList;
import org.apache.spark.sql.*;
import org.apache.spark.sql.streaming.*;
import scala.collection.Iterator;
import scala.jdk.javaapi.CollectionConverters;

public class Counting extends StatefulProcessor {
    private transient ValueState count;
    private transient ListState last;
    private transient MapState places;

    public void init(OutputMode outputMode, TimeMode timeMode) {
        StatefulProcessorHandle handle = getHandle();
        count = handle.getValueState("count", Encoders.LONG(), TTLConfig.NONE());
        last = handle.getListState("last", Encoders.LONG(), TTLConfig.NONE());
        places = handle.getMapState("places", Encoders.STRING(), Encoders.LONG(), TTLConfig.NONE());
    }

    public Iterator handleInputRows(Object key, Iterator rows, TimerValues timers) {
        ArrayList given = new ArrayList();
        while (rows.hasNext()) {
            Row row = (Row) rows.next();
            long number = count.exists() ? ((Long) count.get()).longValue() + 1L : 1L;
            String place = row.getInt(1) + "/" + row.getLong(2);
            count.update(Long.valueOf(number));
            last.appendValue(Long.valueOf(number));
            given.add(key + " " + number + (places.containsKey(place) ? " again" : ""));
            places.updateValue(place, Long.valueOf(number));
            long half = 30000L * (1L + row.getTimestamp(3).getTime() / 30000L);
            getHandle().registerTimer(half);
        }
        return CollectionConverters.asScala(given.iterator());
    }

    public Iterator handleExpiredTimer(Object key, TimerValues timers, ExpiredTimerInfo over) {
        ArrayList given = new ArrayList();
        given.add(key + " at " + over.getExpiryTimeInMs());
        return CollectionConverters.asScala(given.iterator());
    }
}
"""


def processed(records: DataFrame, folder: Path) -> DataFrame:
    """The number of each record among those of its key, and each half minute of a key once it is over."""
    from pyspark.sql import DataFrame

    spark = records.sparkSession
    jvm = spark._jvm
    assert jvm is not None
    encoders, streaming = jvm.org.apache.spark.sql.Encoders, jvm.org.apache.spark.sql.streaming
    rows = records.selectExpr("CAST(key AS STRING) AS name", "partition", "offset", "timestamp")
    grouped = getattr(rows.groupBy("name")._jgd, "as")(encoders.STRING(), encoders.row(rows._jdf.schema()))
    how = (streaming.TimeMode.EventTime(), streaming.OutputMode.Append(), encoders.STRING())
    return DataFrame(grouped.transformWithState(_processor(spark, folder), *how).toDF(), spark)


@cache
def _processor(spark: SparkSession, folder: Path) -> Any:
    jvm = spark._jvm
    assert jvm is not None
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    jar = folder / "counting.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in dict(compiler.getBytecodes()).items():
            archive.writestr(f"{name}.class", bytes(code))
    spark.sql(f"ADD JAR '{jar}'")
    return compiler.getClassLoader().loadClass(_CLASS).getDeclaredConstructor(None).newInstance(None)
