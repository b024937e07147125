"""The whole story: a table that is restated, then the table of a live stream, and what both come to."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path

from backcast.demo import table_story, topic_story
from backcast.demo.lake import Lake
from backcast.demo.narrator import Narrator
from backcast.demo.shell import heed_signals
from backcast.demo.table_story import TableTally
from backcast.demo.topic_story import TopicTally
from backcast.errors import Unavailable


def tell(below: Path, narrator: Narrator) -> None:
    """Raises ClaimBroken when the product does not keep a promise."""
    started = time.monotonic()
    _need_kafka()
    _opening(narrator)
    heed_signals()
    lake = Lake.create(below)
    heed_signals()
    try:
        narrator.part("Part one: a table is restated")
        table = table_story.tell(lake, narrator)
        narrator.part("Part two: a live stream has a bug")
        topic = topic_story.tell(lake, narrator)
    finally:
        lake.spark.stop()
    _tally(narrator, table, topic, time.monotonic() - started)


def _need_kafka() -> None:
    """Say at once what would be missing only in the second part."""
    if find_spec("confluent_kafka") is None:
        raise Unavailable("Kafka's client is not installed", hint="install it with `pip install 'backcast[kafka]'`")


def _opening(narrator: Narrator) -> None:
    print("Backcast restates history in Spark tables: planned, staged, validated,")
    print("published in one commit, and reversible, while the live stream keeps writing.")
    narrator.say(
        """Everything below is real: Iceberg tables on this disk, Spark, a Kafka broker, the real commands and their
        real output. Spark starts now; that takes a few seconds."""
    )


def _tally(narrator: Narrator, table: TableTally, topic: TopicTally, seconds: float) -> None:
    narrator.chapter("The tally")
    narrator.show(
        f"rows written live:                {table.written} by the writer, {topic.written} by the stream",
        f"rows lost:                        {table.lost + topic.lost}",
        f"rows doubled:                     {table.doubled + topic.doubled}",
        f"half-way states seen by a reader: {table.seen.count('half-way')} in {table.looks} looks"
        f" ({' -> '.join(table.seen)})",
        f"offsets replayed:                 {topic.offsets:,}, every one accounted for",
        f"claims proven:                    {narrator.proven} in {seconds:.0f} s",
    )
    narrator.say(
        f"""The first project is yours to play with: cd .demo/shop, then `backcast list`, or `backcast logs
        {table.run_id}`. README.md there tells more. .demo/orders keeps the second one, without its broker."""
    )
