"""Copying a topic into its archive: what the log has more, through plan, run and publish like any other run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from backcast.errors import Drifted, PlanRefused, Refused
from backcast.model.archiving import ArchiveReport, ToArchive, archive_lease_name
from backcast.model.finding import Severity
from backcast.model.log import OffsetRange, Ranges
from backcast.model.report import OnProgress, Plan
from backcast.model.request import Kind, Request
from backcast.model.run import Publication, Run
from backcast.model.states import RunState
from backcast.run.lease import acquire
from backcast.spark.gateway import jvm_errors

if TYPE_CHECKING:
    from backcast.model.manifest import Manifest
    from backcast.world import World

_TO_PUBLISH = (RunState.ACCEPTED, RunState.PUBLISHING)
_NOT_BEGUN = (RunState.PLANNED, RunState.APPROVED, RunState.CANCELLING)


class Verbs(Protocol):
    """What of the control plane is used."""

    @property
    def world(self) -> World: ...

    def plan(self, request: Request, *, record: bool = True) -> Plan: ...

    def run(self, run_id: str, on_progress: OnProgress) -> Run: ...

    def retry(self, run_id: str, on_progress: OnProgress) -> Run: ...

    def publish(self, run_id: str, on_progress: OnProgress) -> Publication: ...

    def cancel(self, run_id: str) -> Run: ...


class Archiving:
    """One round, by one process at a time. A run that an earlier round left behind is finished first."""

    def __init__(self, verbs: Verbs, on_progress: OnProgress) -> None:
        self._verbs, self._world, self._progress = verbs, verbs.world, on_progress
        self._runs: list[str] = []

    def archive(self, name: str, offsets: str | None, until: str | None, requested_by: str) -> ArchiveReport:
        """Raises LeaseHeld while another process fills the same archive."""
        world = self._world
        with jvm_errors("looking at the topic and its archive"):
            # Before the lease, which names our JVM; and again behind it, when nobody else can add to the archive.
            task = world.to_archive(name, offsets, until)
            lease, leases = archive_lease_name(task.table), world.store().leases
            with acquire(leases, lease, world.holder(), world.clock, world.ended) as held:
                self._finish_others(task)
                task = world.to_archive(name, offsets, until)
                for layer in task.layers:
                    held.check()
                    self._copy(task, layer, requested_by)
        return self._report(task)

    def _finish_others(self, task: ToArchive) -> None:
        """Of earlier rounds that ended in the middle. What was only planned is planned anew."""
        for run in reversed(self._world.reader().runs(dataset=task.pipeline, open_only=True)):
            if run.state in _NOT_BEGUN:
                self._verbs.cancel(run.run_id)
            elif _overlaps(self._world.reader().manifest(run.run_id)):
                raise Refused(
                    f"run {run.run_id} would add offsets to the archive that it has already",
                    hint=f"backcast cancel {run.run_id}, then repeat this",
                )
            elif run.state is RunState.REJECTED or run.state is RunState.UNDOING:
                verb = "cancel" if run.state is RunState.REJECTED else "undo"
                raise Refused(
                    f"run {run.run_id} of an earlier round is {run.state}: {run.detail}",
                    hint=f"backcast {verb} {run.run_id}, then repeat this",
                )
            else:
                self._finish(run)

    def _finish(self, run: Run) -> None:
        try:
            self._staged_and_published(run)
        except Drifted:
            if run.state in _TO_PUBLISH:
                raise
            # The log has moved on since, so there is nothing to save: what is left of it is planned anew.
            self._verbs.cancel(run.run_id)

    def _copy(self, task: ToArchive, layer: Ranges, requested_by: str) -> None:
        wanted = ",".join(f"{each.partition}={each.start}..{each.end}" for each in layer if each.span)
        reason = f"archive of {task.topic}"
        request = Request(
            pipeline=task.pipeline, offsets=wanted, kind=Kind.BACKFILL, reason=reason, requested_by=requested_by
        )
        plan = self._verbs.plan(request)
        blocking = [each for each in plan.findings if each.severity is Severity.BLOCK]
        if blocking:
            raise PlanRefused("; ".join(each.reason for each in blocking), hint=blocking[0].remedy)
        self._staged_and_published(self._world.reader().run(plan.run_id))

    def _staged_and_published(self, run: Run) -> None:
        if run.state not in _TO_PUBLISH:
            stage = self._verbs.retry if run.state is RunState.FAILED else self._verbs.run
            run = stage(run.run_id, self._progress)
        if run.state is RunState.REJECTED:
            raise Refused(f"run {run.run_id} was rejected: {run.detail}", hint=f"backcast validate {run.run_id}")
        self._verbs.publish(run.run_id, self._progress)
        self._runs.append(run.run_id)

    def _report(self, task: ToArchive) -> ArchiveReport:
        reader = self._world.reader()
        copied: list[OffsetRange] = []
        for run_id in self._runs:
            copied += [each for pin in reader.manifest(run_id).inputs if pin.log for each in pin.log.ranges]
        return ArchiveReport(
            source=task.source,
            topic=task.topic,
            table=task.table,
            runs=tuple(self._runs),
            copied=tuple(copied),
            records=sum(each.output_rows or 0 for run_id in self._runs for each in reader.chunks(run_id)),
        )


def _overlaps(manifest: Manifest) -> bool:
    """Planned by hand, against what the plan said."""
    return any(each.code.startswith("append.") for each in manifest.findings)
