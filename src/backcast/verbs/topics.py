"""Verbs about declared topics, and about the records of theirs that a run set aside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast import status as status_report
from backcast.model.quarantine import QuarantinedRecord, QuarantinedRun
from backcast.retrying import quarantined_runs, retry_request
from backcast.spark.gateway import jvm_errors
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.request import Request
    from backcast.model.topic_report import HandOver, TopicOffsets, WindowSurvey


class TopicVerbs(Verbs):
    def kafka_offsets(self, topic: str, at: str) -> TopicOffsets:
        """Where a moment of record time lies in a declared topic. Needs no Spark and no user code."""
        return self.world.kafka_offsets(topic, at)

    def hand_over(self, run_id: str) -> HandOver:
        """Where a stream goes on after a bootstrap, and which declared ones do. Needs no Spark."""
        found = status_report.hand_over(self.world.reader(), run_id)
        table = self.world.reader().run(found.run_id).table
        streams = [each for each in map(self.world.stream, self.world.streams()) if not each.external]
        fed = [each.name for each in streams if (each.dataset.table, each.source.topic) == (table, found.topic)]
        return found.model_copy(update={"streams": tuple(fed)})

    @jvm_errors("reading the topic")
    def kafka_window(self, topic: str, event_time: str, *, to_end: bool = False) -> WindowSurvey:
        """Which offsets of a declared topic hold a window of event time, and how disordered they are."""
        return self.world.kafka_window(topic, event_time, to_end=to_end)

    def quarantined(self, *, limit: int = 50) -> list[QuarantinedRun]:
        """Which of the newest runs set records aside, and which took them up again. Needs no Spark."""
        return quarantined_runs(self.world.reader(), limit)

    @jvm_errors("reading the quarantine")
    def quarantined_records(self, run_id: str, *, limit: int = 20) -> list[QuarantinedRecord]:
        """The first records that the run set aside, by their place in the log."""
        reader = self.world.reader()
        run = reader.run(run_id)
        names = [pin.dataset for pin in reader.manifest(run.run_id).inputs if pin.log is not None]
        return self.world.quarantined_records(run.run_id, names, limit)

    @jvm_errors("reading the quarantine")
    def retry_request(self, run_id: str, *, reason: str = "", ticket: str = "", requested_by: str = "") -> Request:
        """What to plan, or to backfill, so that the records that a published run set aside are taken up again."""
        return retry_request(self.world, run_id, reason=reason, ticket=ticket, requested_by=requested_by)
