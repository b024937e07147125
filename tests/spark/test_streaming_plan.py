"""What a streaming query's plan tells: why a batch gives other rows, and what is written later than it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout

from backcast.model.late import Closing, Holding
from backcast.model.replay import Mend
from backcast.spark.streaming_plan import differences, holding, is_stateful

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Logic = Callable[[DataFrame], DataFrame]

_HOUR = 3_600_000_000
_HOURLY = Closing(every=_HOUR, length=_HOUR)
_WITHIN = "a.value = b.value AND b.timestamp BETWEEN a.timestamp AND a.timestamp + INTERVAL 1 HOUR"


def joined(stream: DataFrame, how: str) -> DataFrame:
    return stream.alias("a").join(stream.alias("b"), F.expr(_WITHIN), how)


def own_state(stream: DataFrame, timeout: str) -> DataFrame:
    def seen(key: Any, groups: Iterator[Any], state: Any) -> Iterator[Any]:
        yield from groups

    schema = "timestamp TIMESTAMP, value BIGINT"
    return stream.groupBy("value").applyInPandasWithState(seen, schema, "n INT", "append", timeout)


LOGIC: dict[str, tuple[Logic, list[tuple[Mend, str]], Holding | None]] = {
    "row by row": (lambda s: s.where("value > 1"), [], None),
    "windows": (lambda s: s.groupBy(F.window("timestamp", "1 hour")).count(), [], Holding((_HOURLY,))),
    "sliding windows": (
        lambda s: s.groupBy(F.window("timestamp", "1 hour", "15 minutes")).count(),
        [],
        Holding((Closing(every=_HOUR // 4, length=_HOUR),)),
    ),
    "each moment": (lambda s: s.groupBy("timestamp").count(), [], Holding()),
    "outer join": (
        lambda s: joined(s, "left"),
        [(Mend.STATE, "a LeftOuter join of two streams finds out by the watermark")],
        Holding(unknown=True),
    ),
    "inner join": (
        lambda s: joined(s, "inner"),
        [(Mend.WARM_UP, "a join of two streams meets records from before the window")],
        None,
    ),
    "session window": (
        lambda s: s.groupBy(F.session_window("timestamp", "5 minutes"), "value").count(),
        [(Mend.WARM_UP, "a session may begin before the window")],
        Holding(unknown=True),
    ),
    "dropDuplicates": (
        lambda s: s.dropDuplicates(["value"]),
        [(Mend.STATE, "dropDuplicates without event time keeps the first row of a key")],
        None,
    ),
    "dropDuplicates with event time": (lambda s: s.dropDuplicates(["value", "timestamp"]), [], None),
    "dropDuplicatesWithinWatermark": (
        lambda s: s.dropDuplicatesWithinWatermark(["value"]),
        [(Mend.STATE, "dropDuplicatesWithinWatermark forgets a key")],
        None,
    ),
    "applyInPandasWithState": (
        lambda s: own_state(s, GroupStateTimeout.EventTimeTimeout),
        [(Mend.STATE, "applyInPandasWithState sees rows in the order of batches")],
        Holding(unknown=True),
    ),
    "timeouts by the clock": (
        lambda s: own_state(s, GroupStateTimeout.ProcessingTimeTimeout),
        [(Mend.STATE, "applyInPandasWithState sees rows"), (Mend.NOTHING, "its timeouts go by the clock")],
        Holding(unknown=True),
    ),
    "processing time": (
        lambda s: s.withColumn("loaded", F.current_timestamp()),
        [(Mend.NOTHING, "current_timestamp is when a batch of the stream ran")],
        None,
    ),
    "a table beside it": (
        lambda s: s.join(s.sparkSession.range(3).dropDuplicates(["id"]).groupBy("id").count(), F.expr("value = id")),
        [],
        None,
    ),
}


_BEYOND = ("outer join", "inner join", "session window", "applyInPandasWithState", "timeouts by the clock")
"""Rows of a window may need records from behind it."""


@pytest.mark.parametrize("logic", LOGIC)
def test_a_plan_tells_what_a_batch_gets_wrong_and_what_the_query_holds_back(spark: SparkSession, logic: str) -> None:
    stream = spark.readStream.format("rate").load().withWatermark("timestamp", "10 minutes")
    made, wanted, held = LOGIC[logic]
    found = differences(made(stream))
    assert [each.mend for each in found] == [mend for mend, _ in wanted]
    assert all(each.because.startswith(because) for each, (_, because) in zip(found, wanted, strict=True)), found
    assert any(each.beyond for each in found) is (logic in _BEYOND)
    assert holding(made(stream)) == held
    assert is_stateful(made(stream)) is (logic not in ("row by row", "processing time", "a table beside it"))
