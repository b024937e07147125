"""What verbs do with a run while they hold its lease: the steps in their order, with what each needs of the world."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from backcast.appending import only_append
from backcast.approving import approved_by, require_approval
from backcast.errors import Refused, StateConflict, UnknownName
from backcast.faults import point
from backcast.model.amendment import amendments, current_inputs
from backcast.model.approval import Approvals
from backcast.model.canary import JUDGED, Canary, CanaryVerdict, chosen, judged, part_of, spread
from backcast.model.report import OnProgress, Progress
from backcast.model.rule import NO_GATES
from backcast.model.stage import recorded_stage, recorded_staged, stages_of
from backcast.model.states import ChunkState, RunState
from backcast.model.table import NetChange, PublishMode
from backcast.model.verdict import Check, Consequence, Outcome
from backcast.model.words import many
from backcast.pacing import brake_of_run
from backcast.plan.pins import pin_inputs, read_windows
from backcast.publish import clean
from backcast.publish.decide import RestageNeeded
from backcast.publish.job import PublishJob
from backcast.publish.step import publish as publish_step
from backcast.publish.step import withdraw
from backcast.publish.undo import undo as undo_step
from backcast.publish.undo import withdraw as withdraw_undo
from backcast.recorded import require_history
from backcast.replaying import input_of, record_replay, transform_of
from backcast.run import drift, restage, worker
from backcast.run.chunks import report, still_working
from backcast.run.compute import Compute
from backcast.run.job import RunJob
from backcast.run.step import stage_run
from backcast.validate.diff import rules_of
from backcast.validate.measure import RuleHelp, Versions, judging_of, measure
from backcast.validate.step import Validation
from backcast.validate.step import validate as validate_step
from backcast.validate.twice import Again

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backcast.model.amendment import Amendment
    from backcast.model.manifest import ChunkPlan, InputPin, Manifest
    from backcast.model.run import Event, Publication, Run
    from backcast.model.table import FileRef, Movement
    from backcast.model.time import Interval
    from backcast.model.verdict import Verdict
    from backcast.ports import Input, RunReader
    from backcast.run.lease import HeldLease
    from backcast.world import World


def rule_help(world: World, manifest: Manifest) -> RuleHelp:
    """What the rules of a run need of the world."""
    pipeline = manifest.pipeline

    def opened(name: str) -> Input:
        return world.input(next(each for each in world.pipeline(pipeline).inputs if each.name == name))

    diff_rules = rules_of(manifest, world.diff_rules(manifest.target.dataset))
    code = partial(world.rule_code, pipeline)
    return RuleHelp(world.rules(), code, world.source, opened, world.comparer(), diff_rules)


def live_rules(world: World, run_id: str, version: str | None, files: tuple[FileRef, ...]) -> tuple[Check, ...]:
    """A run's rules over that version of the live table; of a run that adds rows, over those of these files in it.

    Gates are about the change, which is made. What a merge changed is mixed with the rest: nothing to compare with.
    """
    runs = world.store().runs
    manifest, events = runs.manifest(run_id), runs.events(run_id)
    mode = manifest.settings.publish_mode
    replaces = mode is PublishMode.REPLACE
    rules = tuple(rule for rule in manifest.settings.rules if mode is not PublishMode.MERGE or not rule.sees_base)
    if not rules:
        return ()
    settings = manifest.settings.model_copy(update={"gates": NO_GATES, "rules": rules})
    manifest = manifest.model_copy(update={"settings": settings})
    inputs = current_inputs(manifest, amendments(events))
    target = world.target(manifest.target.dataset)
    if replaces:
        versions = Versions(target, recorded_stage(run_id, events).base, version, live=version)
    else:
        versions = Versions(target, version, version, NetChange(version, version or "", files, (), ()))
    return measure(judging_of(run_id, manifest, inputs, rule_help(world, manifest), versions)).checks()


def require_retryable(runs: RunReader, run: Run) -> None:
    """Raises StateConflict for a run that has not failed, and for one whose canary was rejected: so would the rest."""
    if run.state is not RunState.FAILED:
        raise StateConflict(f"run {run.run_id} is {run.state}, not failed", hint=f"backcast status {run.run_id}")
    seen = judged(runs.events(run.run_id))
    held = any(chunk.state is ChunkState.HELD for chunk in runs.chunks(run.run_id))
    if held and seen is not None and seen.outcome is Outcome.REJECTED:
        raise StateConflict(
            f"the canary of {run.run_id} was rejected: the other chunks stay held back",
            hint=f"mend what it shows, backcast cancel {run.run_id}, then plan again",
        )


def forget_stage(world: World, run: Run) -> int:
    """Data files deleted with the run's stages. A table that was dropped took them along."""
    target = world.target(run.dataset)
    try:
        return target.forget(clean.stage_forget(stages_of(run.run_id, world.store().runs.events(run.run_id))))
    except UnknownName:
        return 0


def _windows(manifest: Manifest, chunks: Iterable[ChunkPlan]) -> Mapping[str, Interval]:
    before, after = manifest.warm_up_before_seconds, manifest.warm_up_after_seconds
    return read_windows(chunks, timedelta(seconds=before), timedelta(seconds=after))


def quiet(progress: Progress) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True)
class HeldRun:
    """One run and the right to work on it. Everything here can be repeated after a crash."""

    world: World
    run_id: str
    lease: HeldLease
    on_progress: OnProgress = quiet

    def run(self, canary: Canary | None = None, *, release: bool = True) -> Run:
        """Stage what is not staged yet, then judge it; a canary first, if there is to be one, and no more at once.

        Without `release` what a canary holds back stays there: only a person lets it go.
        """
        store, world, lease = self.world.store(), self.world, self.lease
        run, manifest = store.runs.run(self.run_id), store.runs.manifest(self.run_id)
        target = world.target(run.dataset)
        inputs = current_inputs(manifest, amendments(store.runs.events(self.run_id)))
        # Asked when it begins: who expires later does not stop a run that is under way, only its publish.
        agreed = require_approval(world, run) if run.state in (RunState.PLANNED, RunState.APPROVED) else Approvals()
        if run.state is RunState.PLANNED:
            point("run.before-approve")
            run = store.runs.transition(run, RunState.APPROVED, detail=approved_by(agreed), token=lease.check().token)
            point("run.after-approve")
        if run.state in (RunState.APPROVED, RunState.RUNNING):
            self._check_drift(manifest, inputs, run.dataset)
        if run.state is RunState.APPROVED:
            base = drift.base_to_start_from(manifest, target, self.run_id)
            run = store.runs.transition(run, RunState.RUNNING, token=lease.check().token, base=base)
            point("run.after-start")
        if run.state is RunState.RUNNING:
            self._hold_or_release(manifest, canary, release=release)
            run = stage_run(self._run_job(run, manifest, inputs))
            record_replay(world, self.run_id, manifest, inputs)
        if run.state is RunState.RUNNING:
            self._judge_canary(run, manifest)
        if run.state is RunState.STAGED:
            self.on_progress(Progress(step="validate", message="validating the stage"))
            self.validate(run, read_back=False)
        return store.runs.run(self.run_id)

    def take_part(self) -> Run:
        """Stage chunks as a worker, under a worker's lease, for as long as another process drives the run."""
        store = self.world.store()
        run, manifest = store.runs.run(self.run_id), store.runs.manifest(self.run_id)
        events = store.runs.events(self.run_id)
        inputs = current_inputs(manifest, amendments(events))
        self._check_drift(manifest, inputs, run.dataset)
        return worker.take_part(self._run_job(run, manifest, inputs), recorded_stage(self.run_id, events))

    def _hold_or_release(self, manifest: Manifest, canary: Canary | None, *, release: bool) -> None:
        """Before a canary the others are held back; once it was judged, whoever runs on lets them go."""
        store, run_id = self.world.store(), self.run_id
        chunks = store.runs.chunks(run_id)
        held = any(chunk.state is ChunkState.HELD for chunk in chunks)
        seen = judged(store.runs.events(run_id)) is not None
        if held and canary is None and seen:
            if not release:
                raise StateConflict(f"the canary of {run_id} waits for a person", hint=f"backcast run {run_id}")
            store.chunks.release(run_id, self.lease.check())
        elif canary is not None and (seen or (not held and any(chunk.attempts for chunk in chunks))):
            raise StateConflict(
                f"run {run_id} has {'had its canary' if seen else 'begun already'}", hint=f"backcast run {run_id}"
            )
        elif canary is not None and not held:
            store.chunks.hold(run_id, canary.of(manifest), self.lease.check())

    def _judge_canary(self, run: Run, manifest: Manifest) -> None:
        """What can be said of the stage so far. A canary that is rejected fails the run: the rest would be, too."""
        store = self.world.store()
        events = store.runs.events(run.run_id)
        names = chosen(events)
        self.on_progress(Progress(step="validate", message=f"validating {many(len(names), 'chunk')}"))
        staged = self.world.target(run.dataset).history(recorded_stage(run.run_id, events))[-1].version
        part = self._validation(run, part_of(manifest, names), events, staged, read_back=True)
        mine = [chunk for chunk in part.chunks if chunk.chunk_id in names]
        # A row that moves to another chunk still has its old copy there, which the rest of the run takes out.
        verdict = validate_step(replace(part, chunks=mine, whole=False, replaced=manifest.scope.predicate))
        found = CanaryVerdict(chunks=names, staged=staged, checks=verdict.checks)
        if found.outcome is not Outcome.REJECTED:
            store.runs.record(run.run_id, JUDGED, **found.as_json())
            return
        detail, token = f"the canary was rejected: {_failures(found.checks)}", self.lease.check().token
        store.runs.transition(run, RunState.FAILED, detail=detail, token=token, canary=found.as_json())

    def _validation(
        self, run: Run, manifest: Manifest, events: list[Event], staged: str, *, read_back: bool
    ) -> Validation:
        store = self.world.store()
        return Validation(
            run_id=run.run_id,
            manifest=manifest,
            stage=recorded_stage(run.run_id, events),
            staged=staged,
            chunks=store.runs.chunks(run.run_id),
            records=store.runs.stage_records(run.run_id),
            target=self.world.target(run.dataset),
            engine=self.world.engine(),
            now=self.world.clock.now(),
            help=rule_help(self.world, manifest),
            read_back=read_back,
            amended=amendments(events),
            events=tuple(events),
            again=self._again(manifest.chunks, amendments(events)),
        )

    def _again(self, chunks: tuple[ChunkPlan, ...], amended: tuple[Amendment, ...]) -> Again | None:
        """Which of the chunks the pipeline wants to be computed twice."""
        manifest = self.world.store().runs.manifest(self.run_id)
        number = min(manifest.settings.recompute, len(chunks))
        if not number or manifest.streamed is not None:
            return None
        names = spread([chunk.id for chunk in chunks], number)
        compute = replace(self._compute(manifest, current_inputs(manifest, amended)), shake=True)
        plans = tuple(chunk for chunk in chunks if chunk.id in names)
        return Again(plans, lambda plan: compute([plan], plan.predicate).rows)

    def validate(self, run: Run, *, read_back: bool) -> Verdict:
        store = self.world.store()
        events = store.runs.events(run.run_id)
        manifest = store.runs.manifest(run.run_id)
        verdict = validate_step(self._validation(run, manifest, events, recorded_staged(events), read_back=read_back))
        point("validate.before-verdict")
        store.runs.save_verdict(verdict)
        point("validate.after-verdict")
        state, detail = RunState(verdict.outcome.value), _failures(verdict.checks)
        store.runs.transition(run, state, detail=detail, token=self.lease.check().token)
        point("validate.after-state")
        return verdict

    def publish(self, rounds: int = restage.ROUNDS) -> Publication:
        """Publish, or stage again what live rows reached and try once more, for that many rounds."""
        runs = self.world.store().runs
        if restage.is_under_way(runs, self.run_id):
            self.run()
        run = runs.run(self.run_id)
        if run.state in (RunState.ACCEPTED, RunState.UNDONE, RunState.PUBLISHING):
            try:
                require_approval(self.world, run)
                require_history(runs, run)
            except Refused as error:
                withdraw(self._publish_job(), error.message)
                raise
        try:
            with self._in_turn() as turn:
                return publish_step(self._publish_job(turn), runs.verdict(self.run_id))
        except RestageNeeded as needed:
            if not rounds:
                raise restage.given_up(self.run_id, needed) from needed
            self._amend(needed.movement)
        return self.publish(rounds - 1)

    def _in_turn(self) -> AbstractContextManager[HeldLease | None]:
        runs = self.world.store().runs
        manifest = runs.manifest(self.run_id)
        if manifest.settings.publish_mode is not PublishMode.APPEND:
            return nullcontext()
        return only_append(self.world, runs.run(self.run_id), manifest)

    def undo(self, *, rewrite: bool) -> Publication:
        return undo_step(self._publish_job(), rewrite=rewrite)

    def withdraw(self, was: RunState, why: str) -> Run:
        """Give up a publish or an undo that broke off. Raises StateConflict when its commit landed."""
        job, runs = self._publish_job(), self.world.store().runs
        withdraw(job, why)
        withdraw_undo(job, why)
        run = runs.run(self.run_id)
        back = RunState.PUBLISHED if was is RunState.UNDOING else RunState.ACCEPTED
        if run.state not in (back, RunState.UNDONE):
            finish = f"backcast {'undo' if was is RunState.UNDOING else 'publish'} {run.run_id}"
            raise StateConflict(f"run {run.run_id} is {run.state}: its commit has landed", hint=f"finish it: {finish}")
        return run

    def _amend(self, movement: Movement) -> None:
        store, world = self.world.store(), self.world
        manifest = store.runs.manifest(self.run_id)
        drift.check_code(manifest, world.identity(manifest.pipeline), world.result_settings(), self.run_id)
        # Pinned after the head was looked at: who wrote a live row had read its inputs by then.
        specs = world.pipeline(manifest.pipeline).inputs
        inputs = pin_inputs(specs, world.input, _windows(manifest, manifest.chunks), world.clock.now())
        restage.amend(store, self.run_id, self.lease, movement, inputs, self.on_progress)

    def _check_drift(self, manifest: Manifest, inputs: tuple[InputPin, ...], dataset: str) -> None:
        world = self.world
        drift.check_code(manifest, world.identity(manifest.pipeline), world.result_settings(), self.run_id)
        specs = {each.name: each for each in world.pipeline(manifest.pipeline).inputs}
        chunks = world.store().runs.chunks(self.run_id)
        pending = {each.chunk_id for each in chunks if each.state is not ChunkState.STAGED}
        windows = _windows(manifest, (each for each in manifest.chunks if each.id in pending))
        for pin in inputs:
            input_of(world, manifest, specs[pin.name]).check(pin, windows)
        drift.check_target(manifest, world.target(dataset), self.run_id)

    def _run_job(self, run: Run, manifest: Manifest, inputs: tuple[InputPin, ...]) -> RunJob:
        world = self.world
        job = RunJob(
            run=run,
            manifest=manifest,
            store=world.store(),
            lease=self.lease,
            target=world.target(run.dataset),
            engine=world.engine(),
            compute=self._compute(manifest, inputs),
            clock=world.clock,
            on_progress=self.on_progress,
            ended=world.ended,
        )
        planned = manifest.settings.throttle
        pace = brake_of_run(world, self.run_id, planned, partial(still_working, job), partial(report, job))
        paced = transform_of(world, self.run_id, manifest, inputs, pace)
        return replace(job, pace=pace, compute=replace(job.compute, transform=paced))

    def _compute(self, manifest: Manifest, inputs: tuple[InputPin, ...]) -> Compute:
        specs = {each.name: each for each in self.world.pipeline(manifest.pipeline).inputs}
        return Compute(
            run_id=self.run_id,
            manifest=manifest,
            inputs=inputs,
            input=lambda name: input_of(self.world, manifest, specs[name]),
            transform=transform_of(self.world, self.run_id, manifest, inputs),
            engine=self.world.engine(),
        )

    def _publish_job(self, turn: HeldLease | None = None) -> PublishJob:
        store = self.world.store()
        run = store.runs.run(self.run_id)

        def token() -> int:
            if turn is not None:
                turn.check()
            return self.lease.check().token

        return PublishJob(
            run=run,
            manifest=store.runs.manifest(self.run_id),
            store=store,
            target=self.world.target(run.dataset),
            engine=self.world.engine(),
            clock=self.world.clock,
            check_lease=token,
            on_progress=self.on_progress,
        )


def _failures(checks: tuple[Check, ...]) -> str:
    """What decided: checks that block, or where none does, those that need a look. Never what is only a warning."""
    failed = [check for check in checks if not check.passed and check.consequence is Consequence.BLOCK]
    failed = failed or [check for check in checks if not check.passed and check.consequence is Consequence.REVIEW]
    return "; ".join(f"{check.name}: {check.detail}" for check in failed)
