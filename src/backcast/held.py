"""What verbs do with a run while they hold its lease: the steps in their order, with what each needs of the world."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.appending import only_append
from backcast.faults import point
from backcast.model.amendment import amendments, current_inputs
from backcast.model.report import OnProgress, Progress
from backcast.model.stage import recorded_stage, recorded_staged
from backcast.model.states import ChunkState, RunState
from backcast.model.table import PublishMode
from backcast.plan.pins import pin_inputs, read_windows
from backcast.publish.decide import RestageNeeded
from backcast.publish.job import PublishJob
from backcast.publish.step import publish as publish_step
from backcast.publish.undo import undo as undo_step
from backcast.run import drift, restage, worker
from backcast.run.compute import Compute
from backcast.run.job import RunJob
from backcast.run.step import stage_run
from backcast.validate.step import Validation
from backcast.validate.step import validate as validate_step

if TYPE_CHECKING:
    from backcast.model.manifest import InputPin, Manifest
    from backcast.model.run import Publication, Run
    from backcast.model.table import Movement
    from backcast.model.verdict import Verdict
    from backcast.run.lease import HeldLease
    from backcast.world import World


def quiet(progress: Progress) -> None:
    """Report to nobody."""


@dataclass(frozen=True, slots=True)
class HeldRun:
    """One run and the right to work on it. Everything here can be repeated after a crash."""

    world: World
    run_id: str
    lease: HeldLease
    on_progress: OnProgress = quiet

    def run(self) -> Run:
        """Stage what is not staged yet, then judge it."""
        store, world, lease = self.world.store(), self.world, self.lease
        run, manifest = store.runs.run(self.run_id), store.runs.manifest(self.run_id)
        target = world.target(run.dataset)
        inputs = current_inputs(manifest, amendments(store.runs.events(self.run_id)))
        if run.state is RunState.PLANNED:
            point("run.before-approve")
            run = store.runs.transition(run, RunState.APPROVED, detail="no approval needed", token=lease.check().token)
            point("run.after-approve")
        if run.state in (RunState.APPROVED, RunState.RUNNING):
            self._check_drift(manifest, inputs, run.dataset)
        if run.state is RunState.APPROVED:
            base = drift.base_to_start_from(manifest, target, self.run_id)
            run = store.runs.transition(run, RunState.RUNNING, token=lease.check().token, base=base)
            point("run.after-start")
        if run.state is RunState.RUNNING:
            run = stage_run(self._run_job(run, manifest, inputs))
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

    def validate(self, run: Run, *, read_back: bool) -> Verdict:
        store = self.world.store()
        events = store.runs.events(run.run_id)
        verdict = validate_step(
            Validation(
                run_id=run.run_id,
                manifest=store.runs.manifest(run.run_id),
                stage=recorded_stage(run.run_id, events),
                staged=recorded_staged(events),
                chunks=store.runs.chunks(run.run_id),
                records=store.runs.stage_records(run.run_id),
                target=self.world.target(run.dataset),
                engine=self.world.engine(),
                now=self.world.clock.now(),
                read_back=read_back,
                amended=amendments(events),
                events=tuple(events),
            )
        )
        point("validate.before-verdict")
        store.runs.save_verdict(verdict)
        point("validate.after-verdict")
        failed = [check for check in verdict.checks if not check.passed]
        detail = "; ".join(f"{check.name}: {check.detail}" for check in failed)
        state = RunState.ACCEPTED if verdict.accepted else RunState.REJECTED
        store.runs.transition(run, state, detail=detail, token=self.lease.check().token)
        point("validate.after-state")
        return verdict

    def publish(self, rounds: int = restage.ROUNDS) -> Publication:
        """Publish, or stage again what live rows reached and try once more, for that many rounds."""
        runs = self.world.store().runs
        if restage.is_under_way(runs, self.run_id):
            self.run()
        try:
            with self._in_turn():
                return publish_step(self._publish_job(), runs.verdict(self.run_id))
        except RestageNeeded as needed:
            if not rounds:
                raise restage.given_up(self.run_id, needed) from needed
            self._amend(needed.movement)
        return self.publish(rounds - 1)

    def _in_turn(self) -> AbstractContextManager[None]:
        runs = self.world.store().runs
        manifest = runs.manifest(self.run_id)
        if manifest.settings.publish_mode is not PublishMode.APPEND:
            return nullcontext()
        return only_append(self.world, runs.run(self.run_id), manifest)

    def undo(self, *, rewrite: bool) -> Publication:
        return undo_step(self._publish_job(), rewrite=rewrite)

    def _amend(self, movement: Movement) -> None:
        store, world = self.world.store(), self.world
        manifest = store.runs.manifest(self.run_id)
        drift.check_code(manifest, world.identity(manifest.pipeline), world.result_settings(), self.run_id)
        # Pinned after the head was looked at: who wrote a live row had read its inputs by then.
        specs = world.pipeline(manifest.pipeline).inputs
        before, after = manifest.warm_up_before_seconds, manifest.warm_up_after_seconds
        windows = read_windows(manifest.chunks, timedelta(seconds=before), timedelta(seconds=after))
        inputs = pin_inputs(specs, world.input, windows, world.clock.now())
        restage.amend(store, self.run_id, self.lease, movement, inputs, self.on_progress)

    def _check_drift(self, manifest: Manifest, inputs: tuple[InputPin, ...], dataset: str) -> None:
        world = self.world
        drift.check_code(manifest, world.identity(manifest.pipeline), world.result_settings(), self.run_id)
        specs = {each.name: each for each in world.pipeline(manifest.pipeline).inputs}
        chunks = world.store().runs.chunks(self.run_id)
        pending = frozenset(each.chunk_id for each in chunks if each.state is not ChunkState.STAGED)
        for pin in inputs:
            world.input(specs[pin.name]).check(pin, pending)
        drift.check_target(manifest, world.target(dataset), self.run_id)

    def _run_job(self, run: Run, manifest: Manifest, inputs: tuple[InputPin, ...]) -> RunJob:
        world = self.world
        return RunJob(
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

    def _compute(self, manifest: Manifest, inputs: tuple[InputPin, ...]) -> Compute:
        specs = {each.name: each for each in self.world.pipeline(manifest.pipeline).inputs}

        return Compute(
            run_id=self.run_id,
            manifest=manifest,
            inputs=inputs,
            input=lambda name: self.world.input(specs[name]),
            transform=self.world.transform(manifest.pipeline),
            engine=self.world.engine(),
        )

    def _publish_job(self) -> PublishJob:
        store = self.world.store()
        run = store.runs.run(self.run_id)
        return PublishJob(
            run=run,
            manifest=store.runs.manifest(self.run_id),
            store=store,
            target=self.world.target(run.dataset),
            engine=self.world.engine(),
            clock=self.world.clock,
            check_lease=lambda: self.lease.check().token,
            on_progress=self.on_progress,
        )
