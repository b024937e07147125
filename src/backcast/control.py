"""ControlPlane: one short method per verb.

The only door for the command line, Python callers and, later, the console.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backcast import status as status_report
from backcast.appending import appended_runs
from backcast.archiving import Archiving
from backcast.attest.step import attest
from backcast.collection import Collection
from backcast.errors import LeaseHeld, PlanRefused, Refused, StateConflict, UnknownName
from backcast.faults import point
from backcast.held import HeldRun, quiet
from backcast.model.diff import Diff
from backcast.model.evidence import Evidence
from backcast.model.finding import Severity
from backcast.model.quarantine import QuarantinedRecord, QuarantinedRun
from backcast.model.report import GcReport, OnProgress, Plan, Status
from backcast.model.run import Event, Publication, Run, lease_name, worker_lease_name
from backcast.model.stage import recorded_base, recorded_stage, recorded_staged, stages_of
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.plan.step import Planning, make_manifest
from backcast.publish import clean
from backcast.publish.landed import problem_on_record
from backcast.retrying import quarantined_runs, retry_request
from backcast.run.lease import HeldLease, acquire, living_workers
from backcast.run.worker import TAKES_PART
from backcast.spark.gateway import jvm_errors
from backcast.validate.diff import diff as diff_step

if TYPE_CHECKING:
    from backcast.model.archiving import ArchiveReport
    from backcast.model.report import Probe
    from backcast.model.request import Request
    from backcast.model.topic_report import HandOver, TopicOffsets, WindowSurvey
    from backcast.model.verdict import Verdict
    from backcast.world import World

Runs = list[Run]
Events = list[Event]
Probes = list["Probe"]
Quarantined = list[QuarantinedRun]
QuarantinedRecords = list[QuarantinedRecord]
"""Named, because inside the class `list` is the verb."""
_CANCEL_WAIT = 120.0


class ControlPlane:
    """The verbs over one project.

    Every method can be repeated after a crash and continues where the last one stopped.
    """

    def __init__(self, world: World) -> None:
        self.world = world

    @jvm_errors("planning")
    def plan(self, request: Request, *, record: bool = True) -> Plan:
        """Resolve the request.

        Reads only; the one thing written is the planned run, and only when asked and not refused.
        """
        world = self.world
        spec = world.pipeline(request.pipeline)
        store = world.store() if record else None
        reader = world.reader()
        appends = spec.settings.publish_mode is PublishMode.APPEND
        planning = Planning(
            spec=spec,
            target=world.target(spec.output.name),
            input=world.input,
            transform=world.transform(spec.name),
            engine=world.engine(),
            code=world.identity(spec.name),
            settings=spec.settings.model_copy(update={"spark": world.result_settings()}),
            memory=world.memory(),
            now=world.clock.now(),
            rate=status_report.recorded_rate(reader, spec.name),
            others=status_report.open_runs(reader, spec.output.table),
            published=appended_runs(reader, spec.output.table) if appends else (),
        )
        manifest = make_manifest(request, planning)
        refused = any(finding.severity is Severity.BLOCK for finding in manifest.findings)
        recorded = store is not None and not refused
        if store is not None and recorded:
            point("plan.before-record")
            store.runs.create(manifest)
            point("plan.after-record")
        return Plan(
            manifest=manifest, sha256=manifest.sha256(), run_id=manifest.run_id(), recorded=recorded, refused=refused
        )

    def run(self, run_id: str, on_progress: OnProgress = quiet) -> Run:
        """Stage every chunk and validate the stage. Continues an interrupted run; refuses on drift.

        An accepted run is returned as it is.
        """
        run = self.world.store().runs.run(run_id)
        if run.state is RunState.ACCEPTED:
            return run
        if run.state not in (RunState.PLANNED, RunState.APPROVED, RunState.RUNNING, RunState.STAGED):
            hint = f"backcast retry {run.run_id}" if run.state is RunState.FAILED else f"backcast status {run.run_id}"
            raise StateConflict(f"run {run.run_id} is {run.state}: there is nothing to stage", hint=hint)
        with self._held(run.run_id) as lease:
            return HeldRun(self.world, run.run_id, lease, on_progress).run()

    def work(self, run_id: str, on_progress: OnProgress = quiet, *, patience: float = 60.0) -> Run:
        """Take part in a run until its stage is judged: beside its driver, or as that when it has none.

        Waits that many seconds for a run that nobody has started yet. The run as it is then.
        """
        runs, clock = self.world.store().runs, self.world.clock
        run = runs.run(run_id)
        self.world.spark()
        deadline = clock.monotonic() + patience
        while run.state in (RunState.PLANNED, RunState.APPROVED):
            if clock.monotonic() >= deadline:
                raise StateConflict(f"run {run.run_id} is {run.state}", hint=f"start it: backcast run {run.run_id}")
            clock.sleep(0.5)
            run = runs.run(run.run_id)
        while run.state in TAKES_PART:
            run = self._take_part(run.run_id, on_progress)
        return run

    def retry(self, run_id: str, on_progress: OnProgress = quiet) -> Run:
        """Put failed chunks back to pending and go on."""
        store = self.world.store()
        run = store.runs.run(run_id)
        if run.state is not RunState.FAILED:
            raise StateConflict(f"run {run.run_id} is {run.state}, not failed", hint=f"backcast status {run.run_id}")
        with self._held(run.run_id) as lease:
            failed = [chunk.chunk_id for chunk in store.runs.chunks(run.run_id) if chunk.state == "failed"]
            store.chunks.reset(run.run_id, failed, lease.check())
            base = recorded_base(store.runs.events(run.run_id))
            store.runs.transition(run, RunState.RUNNING, token=lease.check().token, base=base, retried=len(failed))
            return HeldRun(self.world, run.run_id, lease, on_progress).run()

    def validate(self, run_id: str) -> Verdict:
        """Judge the stage again, also when it was judged before; all of it is read back."""
        store = self.world.store()
        run = store.runs.run(run_id)
        with self._held(run.run_id) as lease:
            run = store.runs.run(run.run_id)
            if run.state in (RunState.ACCEPTED, RunState.REJECTED):
                staged = recorded_staged(store.runs.events(run.run_id))
                run = store.runs.transition(run, RunState.STAGED, token=lease.check().token, staged=staged)
            if run.state is not RunState.STAGED:
                raise StateConflict(
                    f"run {run.run_id} is {run.state}: only a complete stage can be validated",
                    hint=f"backcast status {run.run_id}",
                )
            return HeldRun(self.world, run.run_id, lease).validate(run, read_back=True)

    @jvm_errors("comparing base and stage")
    def diff(self, run_id: str) -> Diff:
        """Base against stage, counts and digests per chunk."""
        reader = self.world.reader()
        run = reader.run(run_id)
        if run.state in (RunState.CANCELLING, RunState.CANCELLED):
            raise StateConflict(f"run {run.run_id} is {run.state}: its stage is gone", hint="plan it again")
        events = reader.events(run.run_id)
        manifest = reader.manifest(run.run_id)
        found = diff_step(
            run.run_id,
            manifest,
            recorded_stage(run.run_id, events),
            recorded_staged(events),
            reader.verdict(run.run_id),
            self.world.target(run.dataset),
            self.world.engine(),
        )
        return found.model_copy(update={"publishable": run.state is RunState.ACCEPTED})

    def publish(self, run_id: str, on_progress: OnProgress = quiet) -> Publication:
        """Make the validated stage visible in one commit; what live rows reached is staged again if the plan allows.

        A run that is published is left as it is.
        """
        run = self.world.store().runs.run(run_id)
        if run.state is RunState.PUBLISHED:
            return self._done_before(run)
        with self._held(run.run_id) as lease:
            publication = HeldRun(self.world, run.run_id, lease, on_progress).publish()
        self._attest(run.run_id)
        return publication

    def undo(self, run_id: str, *, rewrite: bool = False, on_progress: OnProgress = quiet) -> Publication:
        """Take the newest publish back in one commit. A run that is undone is left as it is."""
        run = self.world.store().runs.run(run_id)
        if run.state is RunState.UNDONE:
            return self._done_before(run)
        with self._held(run.run_id) as lease:
            publication = HeldRun(self.world, run.run_id, lease, on_progress).undo(rewrite=rewrite)
        self._attest(run.run_id)
        return publication

    def cancel(self, run_id: str) -> Run:
        """Give the run up and remove its stage. A process that works on it stops before its next chunk."""
        store = self.world.store()
        run = store.runs.run(run_id)
        if run.state is RunState.CANCELLED:
            return run
        if run.state in (RunState.PUBLISHED, RunState.PUBLISHING, RunState.UNDOING):
            raise StateConflict(
                f"run {run.run_id} is {run.state}: only an undo takes it back", hint=f"backcast undo {run.run_id}"
            )
        if run.state is not RunState.CANCELLING:
            run = store.runs.transition(run, RunState.CANCELLING, detail="cancelled on request")
        point("cancel.after-intent")
        with self._held(run.run_id, wait=_CANCEL_WAIT) as lease:
            self._see_workers_off(run.run_id, _CANCEL_WAIT)
            store.effects.begin(run.run_id, "forget", run.run_id)
            point("cancel.before-forget")
            files = self._forget_stage(run)
            point("cancel.after-forget")
            clean.close_effects(store, run.run_id, files)
            store.chunks.release_lost(run.run_id)
            return store.runs.transition(
                run, RunState.CANCELLED, detail="cancelled on request", token=lease.check().token
            )

    def backfill(self, request: Request, on_progress: OnProgress = quiet) -> Publication:
        """Plan, run and publish in one go; stops at the first refusal."""
        plan = self.plan(request)
        if plan.refused:
            blocking = [finding for finding in plan.findings if finding.severity is Severity.BLOCK]
            raise PlanRefused("; ".join(each.reason for each in blocking), hint=blocking[0].remedy)
        run = self.run(plan.run_id, on_progress)
        if run.state is RunState.REJECTED:
            raise Refused(f"run {run.run_id} was rejected: {run.detail}", hint=f"backcast validate {run.run_id}")
        return self.publish(run.run_id, on_progress)

    def status(self, run_id: str) -> Status:
        return status_report.status(self.world.reader(), run_id)

    def list(self, *, dataset: str | None = None, open_only: bool = False, limit: int = 50) -> Runs:
        return self.world.reader().runs(dataset=dataset, open_only=open_only, limit=limit)

    def wait(self, run_id: str, *, timeout: float | None = None) -> Run:
        """Until the run is done or needs a person. Raises Failed when nobody works on it, or the time is up."""
        return status_report.wait(self.world.reader(), run_id, self.world.clock, timeout)

    def logs(self, run_id: str, after: int = 0) -> Events:
        reader = self.world.reader()
        return reader.events(reader.run(run_id).run_id, after)

    def evidence(self, run_id: str) -> Evidence:
        """Everything on record about the run, as one document. Needs no Spark and no user code."""
        return attest(self.world.reader(), run_id)

    def gc(self, *, dry_run: bool = False) -> GcReport:
        """Release what no undo needs any more, then sweep up what earlier releases had to leave."""
        return Collection(self.world, self._held).collect(dry_run=dry_run)

    def archive(
        self,
        topic: str,
        *,
        offsets: str | None = None,
        until: str | None = None,
        requested_by: str = "",
        on_progress: OnProgress = quiet,
    ) -> ArchiveReport:
        """Copy what the log of a declared topic has more than its archive. Nothing is copied twice."""
        return Archiving(self, on_progress).archive(topic, offsets, until, requested_by)

    def kafka_offsets(self, topic: str, at: str) -> TopicOffsets:
        """Where a moment of record time lies in a declared topic. Needs no Spark and no user code."""
        return self.world.kafka_offsets(topic, at)

    def hand_over(self, run_id: str) -> HandOver:
        """Where a stream goes on after a bootstrap. Needs no Spark."""
        return status_report.hand_over(self.world.reader(), run_id)

    @jvm_errors("reading the topic")
    def kafka_window(self, topic: str, event_time: str, *, to_end: bool = False) -> WindowSurvey:
        """Which offsets of a declared topic hold a window of event time, and how disordered they are."""
        return self.world.kafka_window(topic, event_time, to_end=to_end)

    def quarantined(self, *, limit: int = 50) -> Quarantined:
        """Which of the newest runs set records aside, and which took them up again. Needs no Spark."""
        return quarantined_runs(self.world.reader(), limit)

    @jvm_errors("reading the quarantine")
    def quarantined_records(self, run_id: str, *, limit: int = 20) -> QuarantinedRecords:
        """The first records that the run set aside, by their place in the log."""
        reader = self.world.reader()
        run = reader.run(run_id)
        names = [pin.dataset for pin in reader.manifest(run.run_id).inputs if pin.log is not None]
        return self.world.quarantined_records(run.run_id, names, limit)

    @jvm_errors("reading the quarantine")
    def retry_request(self, run_id: str, *, reason: str = "", ticket: str = "", requested_by: str = "") -> Request:
        """What to plan, or to backfill, so that the records that a published run set aside are taken up again."""
        return retry_request(self.world, run_id, reason=reason, ticket=ticket, requested_by=requested_by)

    def doctor(self) -> Probes:
        """What works, what does not, what to do."""
        return self.world.doctor()

    def _take_part(self, run_id: str, on_progress: OnProgress) -> Run:
        leases, world = self.world.store().leases, self.world
        try:
            driving = self._lease(run_id, 0.0)
        except LeaseHeld:
            name = worker_lease_name(run_id, secrets.token_hex(4))
            with (
                jvm_errors(f"working on run {run_id}", run_id=run_id),
                acquire(leases, name, world.holder(), world.clock, world.ended) as lease,
            ):
                return HeldRun(world, run_id, lease, on_progress).take_part()
        with jvm_errors(f"working on run {run_id}", run_id=run_id), driving as lease:
            return HeldRun(world, run_id, lease, on_progress).run()

    def _see_workers_off(self, run_id: str, wait: float) -> None:
        """Until nobody can write to the run's stage any more: workers stop at their next claim."""
        world, clock = self.world, self.world.clock
        deadline = clock.monotonic() + wait
        while workers := living_workers(world.store(), run_id, world.ended):
            if clock.monotonic() >= deadline:
                who = workers[0].holder.process
                hint = f"repeat it, or stop that process: backcast cancel {run_id}"
                raise LeaseHeld(f"worker {who} is still busy with a chunk of {run_id}", hint=hint, lease=workers[0])
            clock.sleep(0.2)

    @contextmanager
    def _held(self, run_id: str, wait: float = 0.0) -> Iterator[HeldLease]:
        """The run's lease, taken over from a dead process if need be. Spark is up first: the lease names our JVM."""
        with jvm_errors(f"working on run {run_id}", run_id=run_id), self._lease(run_id, wait) as held:
            yield held

    def _lease(self, run_id: str, wait: float) -> HeldLease:
        if not wait:
            self._refuse_while_held(run_id)
        world = self.world
        world.spark()
        return acquire(world.store().leases, lease_name(run_id), world.holder(), world.clock, world.ended, wait)

    def _refuse_while_held(self, run_id: str) -> None:
        """At once: Spark takes seconds to start, and would be started in vain."""
        reader = self.world.reader()
        held = reader.holder(lease_name(run_id))
        if held is None or self.world.ended(held.holder):
            return
        me = self.world.holder()
        if (me.host, me.pid) == (held.holder.host, held.holder.pid):
            raise LeaseHeld(
                f"this process itself holds {run_id}, from a call that is under way or that lost the store",
                hint="repeat it when that call is over, or in half a minute when its lease has ended",
                lease=held,
            )
        who = f"{held.holder.owner} ({held.holder.process})"
        help_it = f"; to help it compute: backcast worker {run_id}"
        hint = f"backcast wait {run_id}{help_it if reader.run(run_id).state is RunState.RUNNING else ''}"
        raise LeaseHeld(f"{who} works on {run_id} right now", hint=hint, lease=held)

    def _done_before(self, run: Run) -> Publication:
        """For who repeats a command because its answer was lost. The evidence may be missing still."""
        runs = self.world.store().runs
        events, publication = runs.events(run.run_id), runs.publications(run.run_id)[-1]
        problem = problem_on_record(publication, events) if run.state is RunState.PUBLISHED else None
        if problem is not None:
            raise problem
        if events[-1].name != "attested":
            self._attest(run.run_id)
        return publication

    def _attest(self, run_id: str) -> None:
        """Write the hash of the evidence into the run's history, where the next event chains it."""
        evidence = attest(self.world.reader(), run_id)
        self.world.store().runs.record(run_id, "attested", evidence=evidence.digest(), events=len(evidence.events))

    def _forget_stage(self, run: Run) -> int:
        """Data files deleted with the run's stages. A table that was dropped took them along."""
        target = self.world.target(run.dataset)
        try:
            return target.forget(clean.stage_forget(stages_of(run.run_id, self.world.store().runs.events(run.run_id))))
        except UnknownName:
            return 0
