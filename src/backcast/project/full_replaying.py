"""The full replay of a declared stream, wired: where its query begins, what computes its rows, and of which days."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.model.document import canonical, sha256
from backcast.model.log import OffsetRange
from backcast.model.replay import batch_records
from backcast.model.scope import EVERYTHING
from backcast.model.states import Execution
from backcast.model.stream import StreamSpec
from backcast.project.sharing import refuse_unshared
from backcast.sources.kafka.ranges import moved, ranges_for_times
from backcast.sources.kafka.retention import forgotten
from backcast.sources.kafka.topic import KafkaTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.full_replay import Days
    from backcast.ports.pace import Pace
    from backcast.project.wiring import Wiring
    from backcast.streams.catch_up import CatchUp


@dataclass(frozen=True)
class StreamFullReplay:
    """The port `FullReplaying` over one stream of a project."""

    wiring: Wiring
    stream: StreamSpec

    @property
    def folder(self) -> Path:
        return self.wiring.project.root / ".backcast" / "full-replays" / self.stream.name

    def partitions(self) -> int:
        """Of the topic, as it is now."""
        return len(self._topic.log())

    @property
    def batch_records(self) -> int:
        """Records that a batch of a replay takes at the most."""
        return batch_records(self.stream.most_per_trigger, self.stream.pipeline.settings.throttle, self.partitions)

    def catch_up(self, pace: Pace | None = None) -> CatchUp:
        from backcast.project.streaming import code_digest, live_query, tables_now
        from backcast.streams.batch import refuse_unfit
        from backcast.streams.catch_up import CatchUp

        refuse_unshared(self.wiring.project, str(self.wiring.spark().sparkContext.master), self.folder)
        paced = replace(self.stream, most_per_trigger=self.batch_records)

        def rows(versions: Mapping[str, str | None]) -> DataFrame:
            query = live_query(self.wiring, paced, Execution.REPLAY, versions)
            found = query.rows()
            refuse_unfit(query.sink, found)
            return found

        watermark = self.stream.watermark
        seconds = None if watermark is None else [watermark.column, watermark.delay.total_seconds()]
        code = sha256(canonical({"code": code_digest(self.wiring, self.stream), "watermark": seconds}))
        return CatchUp(
            folder=self.folder,
            topic=self.stream.source.topic,
            rows=rows,
            code=code,
            partitions=lambda: [each.partition for each in self._topic.log()],
            pace=pace,
            tables_now=lambda: tables_now(self.wiring, self.stream),
        )

    def refuse_unshared(self) -> None:
        refuse_unshared(self.wiring.project, self.wiring.project.config.spark.master, self.folder)

    def first_offsets(self, since: datetime | None) -> dict[int, int]:
        source, topic = self.stream.source, self._topic
        facts = topic.facts()
        starts = {each.partition: each.log_start for each in facts.partitions}
        if since is None:
            gone = tuple(OffsetRange(partition=key, start=0, end=value) for key, value in starts.items() if value)
        else:
            moment = moved(since, -self._before)
            found = ranges_for_times(facts, topic.offsets_at(moment), {})
            starts = {each.partition: each.start for each in found}
            gone = forgotten(facts, found, topic.record_times(starts), moment, self.wiring.clock.now())
        if gone:
            named = ", ".join(f"{each.partition}={each.start}..{each.end}" for each in gone)
            begins = "its beginning" if since is None else f"what {moment:%Y-%m-%d %H:%M} UTC and later needs"
            raise Refused(
                f"the log of topic {source.topic} no longer has {begins} (offsets {named}): rows that came of it would"
                " be replaced by nothing",
                hint=f"backcast stream replay {self.stream.name} --give-up, then --from a day that the log has whole:"
                f" backcast kafka offsets {source.name} --at DAY",
            )
        return starts

    def first_day(self, offsets: Mapping[int, int], start: str | None) -> str | None:
        from backcast.project.first_day import first_day, refuse_beyond

        spec, topic = self.stream, self._topic
        refuse_beyond(spec, topic.facts(), offsets)
        return first_day(spec, topic, offsets, self._before, start)

    @property
    def _before(self) -> timedelta:
        """How much earlier than a row a record may have been written of which it is made.

        State is made of what lies before the day: what the watermark waits for, and what the pipeline declares.
        """
        delay = timedelta() if self.stream.watermark is None else self.stream.watermark.delay
        return self.stream.source.slack_before + delay + self.stream.pipeline.warm_up_before

    def refuse_other_log(self, topic_id: str, starts: Mapping[int, int]) -> None:
        facts, source = self._topic.facts(), self.stream.source
        if facts.topic_id != topic_id:
            raise Refused(
                f"topic {source.topic} was deleted and made again since stream {self.stream.name} ran: its offsets mean"
                " other records",
                hint="what the table has cannot be computed from it",
            )
        gone = [each for each in facts.partitions if each.log_start > starts.get(each.partition, each.log_start)]
        if gone:
            named = ", ".join(f"{each.partition}={starts[each.partition]}..{each.log_start}" for each in gone)
            raise Refused(
                f"retention has removed offsets {named} of {source.topic} since the replay began: what became of them"
                " can no longer be proven",
                hint=f"raise retention.ms of {source.topic}; then backcast stream replay {self.stream.name} --give-up,"
                " and again --from a later day",
            )

    def reach(self, batch: int) -> tuple[Days, Days]:
        from pyspark.sql import functions as F

        target = self.wiring.target(self.stream.dataset.name)
        there = target.read(target.facts().version, EVERYTHING)

        def days(rows: DataFrame) -> Days:
            # The ends of the column as it is: formats have them in their metadata.
            time = self.stream.dataset.time.column
            ends = rows.agg(F.min(time).alias("first"), F.max(time).alias("last"))
            first, last = ends.select(F.to_date("first"), F.to_date("last")).collect()[0]
            return None if first is None else (first, last)

        return days(there), days(self.catch_up().spooled(batch))

    @property
    def _topic(self) -> KafkaTopic:
        """The log alone: a stream cannot read its archive. Needs no Spark."""
        source = self.stream.source
        return KafkaTopic(self.wiring.project.kafka_access(source.name), source.topic, source.isolation)

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
