"""Verbs that find what a stream has not read, what a dataset lacks, and what came too late."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.calendar import Week
from backcast.model.finding import Severity
from backcast.model.gaps import Gaps, PlannedFix
from backcast.model.request import Request
from backcast.spark.gateway import jvm_errors
from backcast.verbs.counting import asked_window
from backcast.verbs.gap_finding import GapFinder
from backcast.verbs.late_finding import LateFinder
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.lag import StreamLag
    from backcast.model.late import LateReport
    from backcast.model.report import Plan


class MissingVerbs(Verbs, ABC):
    @abstractmethod
    def plan(self, request: Request, *, record: bool = True, whole: bool = False) -> Plan: ...

    def stream_lag(self, stream: str, *, topic: str | None = None) -> StreamLag:
        """How far a declared stream is behind, or with a topic the stream of any checkpoint. Needs no Spark."""
        return self.world.stream_lag(stream, topic)

    @jvm_errors("looking for gaps")
    def gaps(
        self,
        dataset: str,
        *,
        start: str | None = None,
        end: str | None = None,
        against: str | None = None,
        calendar: str | None = None,
        why: Request | None = None,
        plan: bool = False,
    ) -> Gaps:
        """What a dataset lacks: pieces of time, hours, offsets, and against a pipeline, rows that it would make now.

        With `plan` exactly that is planned, and the plans are recorded; else nothing is written. `why` says reason,
        ticket and who asks.
        """
        known = self.world.dataset(dataset)
        window = asked_window(known, start, end)
        pipelines = self.world.pipelines_to(known.name)
        if against is not None and against not in pipelines:
            hint = f"name one of: {', '.join(pipelines)}" if pipelines else "no pipeline fills it"
            raise InvalidRequest(f"pipeline {against!r} does not fill {dataset}", hint=hint)
        name = against or (pipelines[0] if pipelines else "")
        week = known.calendar if calendar is None else replace(known.calendar, week=Week(calendar))
        asked = (why or Request(pipeline=name)).model_copy(update={"pipeline": name})
        finder = GapFinder(self.world, known, week, partial(self.plan, whole=True), asked)
        found = finder.find(window, against)
        return found if not plan else found.model_copy(update={"plans": self._planned(found.requests)})

    @jvm_errors("looking for late rows")
    def late(
        self,
        stream: str,
        *,
        start: str | None = None,
        end: str | None = None,
        why: Request | None = None,
        plan: bool = False,
    ) -> LateReport:
        """What the table of a declared stream lacks of its source, and why: too late, not read yet, or neither.

        Computes the window again and writes it nowhere. With `plan` exactly the windows, or the records, that were left
        out are planned, and the plans are recorded. Without a window: whatever the log has whole.
        """
        known = self.world.stream(stream)
        asked = (why or Request(pipeline="")).model_copy(update={"pipeline": known.pipeline.name})
        finder = LateFinder(self.world, known, partial(self.plan, whole=True), asked)
        found = finder.find(asked_window(known.dataset, start, end))
        return found if not plan else found.model_copy(update={"plans": self._planned(found.requests)})

    def _planned(self, requests: tuple[Request, ...]) -> tuple[PlannedFix, ...]:
        return tuple(_fix(self.plan(each)) for each in requests)


def _fix(plan: Plan) -> PlannedFix:
    blocking = [each for each in plan.manifest.findings if each.severity is Severity.BLOCK]
    return PlannedFix(
        run_id=plan.run_id,
        recorded=plan.recorded,
        chunks=len(plan.manifest.chunks),
        problem=blocking[0].reason if blocking else "",
    )
