"""ControlPlane: one short method per verb.

The only door for the command line, Python callers and, later, the console.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from backcast import status as status_report
from backcast.appending import appended_runs
from backcast.approving import planner, require_approval, require_confirmation, require_no_refusal
from backcast.archiving import Archiving
from backcast.attest.step import attest
from backcast.beside import inputs_beside, open_beside
from backcast.collection import Collection, left_by_gc
from backcast.errors import LeaseHeld, PlanRefused, Refused, StateConflict
from backcast.faults import point
from backcast.freezing import Freezing
from backcast.held import HeldRun, forget_stage, quiet, require_retryable
from backcast.model.finding import Severity
from backcast.model.manifest import OnFailure
from backcast.model.report import GcReport, OnProgress, Plan
from backcast.model.run import Publication, Run, lease_name, worker_lease_name
from backcast.model.stage import recorded_base, recorded_staged
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.table import PublishMode
from backcast.plan.limits import Room
from backcast.plan.rule_findings import RuleLook
from backcast.plan.step import Planning, make_manifest
from backcast.publish import clean
from backcast.publish.landed import problem_on_record
from backcast.publish.step import refuse_unaccepted
from backcast.recorded import require_history
from backcast.replaying import planned_with
from backcast.run.lease import HeldLease, acquire, living_workers
from backcast.run.worker import TAKES_PART
from backcast.spark.gateway import jvm_errors
from backcast.verbs.approving import ApprovingVerbs
from backcast.verbs.asking import AskingVerbs
from backcast.verbs.attesting import AttestingVerbs
from backcast.verbs.checking import CheckingVerbs
from backcast.verbs.checkpoints import CheckpointVerbs
from backcast.verbs.comparing import ComparingVerbs
from backcast.verbs.integrity import IntegrityVerbs
from backcast.verbs.missing import MissingVerbs
from backcast.verbs.stream_backfilling import StreamBackfillVerbs
from backcast.verbs.stream_recovering import StreamRecoveryVerbs
from backcast.verbs.stream_replaying import StreamReplayVerbs
from backcast.verbs.throttling import ThrottlingVerbs
from backcast.verbs.topics import TopicVerbs
from backcast.verbs.watching import WatchingVerbs

if TYPE_CHECKING:
    from backcast.model.archiving import ArchiveReport
    from backcast.model.canary import Canary
    from backcast.model.report import Probe
    from backcast.model.request import Request
    from backcast.model.verdict import Verdict

Probes = list["Probe"]
"""Named, because inside the class `list` is the verb."""
_CANCEL_WAIT = 120.0


class ControlPlane(
    ApprovingVerbs,
    AskingVerbs,
    AttestingVerbs,
    CheckingVerbs,
    CheckpointVerbs,
    ComparingVerbs,
    IntegrityVerbs,
    MissingVerbs,
    StreamBackfillVerbs,
    StreamRecoveryVerbs,
    StreamReplayVerbs,
    ThrottlingVerbs,
    TopicVerbs,
    WatchingVerbs,
):
    """The verbs over one project: the flow here, the others by theme in `verbs/`.

    Every method can be repeated after a crash and continues where the last one stopped.
    """

    @jvm_errors("planning")
    def plan(self, request: Request, *, record: bool = True, whole: bool = False) -> Plan:
        """Resolve the request. Reads only; the one thing written is the planned run, when asked and not refused.

        `whole`: of what streams have still to read too, for a look at what a table lacks; never for a run.
        """
        world = self.world
        spec = world.pipeline(request.pipeline)
        store = world.store() if record and not whole else None
        reader = world.reader()
        appends, policy = spec.settings.publish_mode is PublishMode.APPEND, world.policy()
        chosen = planned_with(world, request, spec)
        settings = spec.settings.at_any_time() if request.takeover else spec.settings
        planning = Planning(
            spec=spec,
            target=world.target(spec.output.name),
            input=chosen.input if request.takeover or whole else inputs_beside(world, spec, chosen.input),
            transform=chosen.transform,
            engine=world.engine(),
            code=world.identity(spec.name),
            settings=settings.model_copy(update={"spark": world.result_settings()}),
            memory=world.memory(),
            now=world.clock.now(),
            rate=status_report.recorded_rate(reader, spec.name),
            others=status_report.open_runs(reader, spec.output.table),
            left=left_by_gc(reader, spec.output.table, world.clock.now()),
            published=appended_runs(reader, spec.output.table) if appends else (),
            record=status_report.recorded_hits(reader, spec.name),
            policy=policy,
            planned_by=() if policy is None else planner(world.person()),
            room=Room(*world.free_space(spec.output.name), memory=world.memory()),
            rules=RuleLook(world.rules(), lambda: world.rule_code(spec.name), world.source),
            replay=chosen.replay,
            open=open_beside(world, spec, request.stream if request.takeover else None),
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

    def run(
        self,
        run_id: str,
        on_progress: OnProgress = quiet,
        *,
        canary: Canary | None = None,
        yes: bool = False,
        hold: bool = False,
    ) -> Run:
        """Stage every chunk and validate the stage. Continues an interrupted run; refuses on drift.

        With a canary those chunks are staged and validated alone, and the run waits: the next call goes on. A run that
        is accepted or under review is returned as it is. A table that live policy `freeze` keeps streams from stays so
        with `hold`, until this process publishes the run or ends.
        """
        run = self.world.store().runs.run(run_id)
        if run.state in (RunState.ACCEPTED, RunState.REVIEW):
            return run
        if canary is not None:
            canary.of(self.world.store().runs.manifest(run.run_id))
        if run.state not in (RunState.PLANNED, RunState.APPROVED, RunState.RUNNING, RunState.STAGED):
            hint = f"backcast retry {run.run_id}" if run.state is RunState.FAILED else f"backcast status {run.run_id}"
            raise StateConflict(f"run {run.run_id} is {run.state}: there is nothing to stage", hint=hint)
        if run.state in (RunState.PLANNED, RunState.APPROVED):
            require_approval(self.world, run)
            require_confirmation(self.world, run, yes=yes)
        with self._held(run.run_id) as lease, self._freezing.frozen(run, hold=hold):
            ended = HeldRun(self.world, run.run_id, lease, on_progress).run(canary)
        if ended.state is not RunState.ACCEPTED:
            self._freezing.release(run.table)
        return self._discarded(ended)

    def work(self, run_id: str, on_progress: OnProgress = quiet, *, patience: float = 60.0) -> Run:
        """Take part in a run until its stage is judged: beside its driver, or as that when it has none.

        A canary that was judged ends it too: what it holds back, only `run` lets go.
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
        while run.state in TAKES_PART and not status_report.waits_after_canary(runs, run.run_id):
            run = self._take_part(run.run_id, on_progress)
        return run

    def retry(self, run_id: str, on_progress: OnProgress = quiet) -> Run:
        """Put failed chunks back to pending and go on."""
        store = self.world.store()
        run = store.runs.run(run_id)
        require_retryable(store.runs, run)
        with self._held(run.run_id) as lease:
            failed = [chunk.chunk_id for chunk in store.runs.chunks(run.run_id) if chunk.state == "failed"]
            store.chunks.reset(run.run_id, failed, lease.check())
            base = recorded_base(store.runs.events(run.run_id))
            store.runs.transition(run, RunState.RUNNING, token=lease.check().token, base=base, retried=len(failed))
            ended = HeldRun(self.world, run.run_id, lease, on_progress).run()
        return self._discarded(ended)

    def validate(self, run_id: str) -> Verdict:
        """Judge the stage again, also when it was judged before; all of it is read back."""
        store = self.world.store()
        run = store.runs.run(run_id)
        require_no_refusal(store.runs, run)
        with self._held(run.run_id) as lease:
            run = store.runs.run(run.run_id)
            require_no_refusal(store.runs, run)
            if run.state in (RunState.ACCEPTED, RunState.REVIEW, RunState.REJECTED):
                staged = recorded_staged(store.runs.events(run.run_id))
                run = store.runs.transition(run, RunState.STAGED, token=lease.check().token, staged=staged)
            if run.state is not RunState.STAGED:
                raise StateConflict(
                    f"run {run.run_id} is {run.state}: only a complete stage can be validated",
                    hint=f"backcast status {run.run_id}",
                )
            return HeldRun(self.world, run.run_id, lease).validate(run, read_back=True)

    def publish(self, run_id: str, on_progress: OnProgress = quiet, *, yes: bool = False) -> Publication:
        """Make the validated stage visible in one commit; what live rows reached is staged again if the plan allows.

        A run that is published is left as it is.
        """
        run = self.world.store().runs.run(run_id)
        if run.state is RunState.PUBLISHED:
            return self._done_before(run)
        refuse_unaccepted(run)
        if run.state in (RunState.ACCEPTED, RunState.UNDONE):
            # What is under way already is asked the same under its lease: refused, it goes back.
            require_approval(self.world, run)
            require_history(self.world.reader(), run)
            require_confirmation(self.world, run, yes=yes)
        with self._held(run.run_id) as lease, self._freezing.frozen(run):
            publication = HeldRun(self.world, run.run_id, lease, on_progress).publish()
            self.world.forget_replay(run.run_id)
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

    def cancel(self, run_id: str, *, because: str = "cancelled on request") -> Run:
        """Give the run up and remove its stage; a process that works on it stops before its next chunk.

        Of an undo, or of a publish after one, that broke off before it landed only that is given up.
        """
        store = self.world.store()
        run = store.runs.run(run_id)
        if run.state is RunState.CANCELLED:
            return run
        if run.state in (RunState.PUBLISHING, RunState.UNDOING):
            with self._held(run.run_id) as lease:
                run = HeldRun(self.world, run.run_id, lease).withdraw(run.state, because)
            if run.state is not RunState.ACCEPTED:
                return run
        if run.state is RunState.UNDONE:
            hint = "backcast gc removes its stage once its undo window is over"
            raise StateConflict(f"run {run.run_id} is undone: nothing is left to give up", hint=hint)
        if run.state in VISIBLE_STATES:
            raise StateConflict(
                f"run {run.run_id} is {run.state}: only an undo takes it back", hint=f"backcast undo {run.run_id}"
            )
        if run.state is not RunState.CANCELLING:
            run = store.runs.transition(run, RunState.CANCELLING, detail=because)
        point("cancel.after-intent")
        with self._held(run.run_id, wait=_CANCEL_WAIT) as lease:
            self._see_workers_off(run.run_id, _CANCEL_WAIT)
            store.effects.begin(run.run_id, "forget", run.run_id)
            point("cancel.before-forget")
            files = forget_stage(self.world, run)
            point("cancel.after-forget")
            self.world.forget_replay(run.run_id)
            clean.close_effects(store, run.run_id, files)
            store.chunks.release_lost(run.run_id)
            return store.runs.transition(run, RunState.CANCELLED, detail=run.detail, token=lease.check().token)

    def backfill(self, request: Request, on_progress: OnProgress = quiet, *, yes: bool = False) -> Publication:
        """Plan, run and publish in one go; stops at the first refusal."""
        plan = self.plan(request)
        if plan.refused:
            blocking = [finding for finding in plan.findings if finding.severity is Severity.BLOCK]
            raise PlanRefused("; ".join(each.reason for each in blocking), hint=blocking[0].remedy)
        run = self.run(plan.run_id, on_progress, yes=yes, hold=True)
        if run.state is RunState.REVIEW:
            hint = f"backcast diff {run.run_id}, then backcast approve {run.run_id} --comment WHY"
            raise Refused(f"run {run.run_id} waits for a person: {run.detail}", hint=hint)
        if run.state is not RunState.ACCEPTED:
            raise Refused(f"run {run.run_id} was rejected: {run.detail}", hint=f"backcast status {run.run_id}")
        return self.publish(run.run_id, on_progress, yes=yes)

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

    def doctor(self) -> Probes:
        """What works, what does not, what to do."""
        return self.world.doctor()

    @cached_property
    def _freezing(self) -> Freezing:
        return Freezing(self.world)

    def _discarded(self, run: Run) -> Run:
        """A rejected stage goes at once where nobody wants to look at it."""
        manifest = self.world.store().runs.manifest(run.run_id)
        if run.state is RunState.REJECTED and manifest.settings.on_failure is OnFailure.DISCARD:
            return self.cancel(run.run_id, because=f"rejected, and discarded: {run.detail}")
        return run

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
            ended = HeldRun(world, run_id, lease, on_progress).run(release=False)
        return self._discarded(ended)

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
