"""Publish and undo as the flow does them, on a stage that a test wrote by itself: no pipeline and no plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from backcast.model.manifest import LivePolicy, Manifest, Settings, TargetPin
from backcast.model.run import Publication, Run, lease_name
from backcast.model.scope import EVERYTHING, Scope
from backcast.model.stage import stage_of
from backcast.model.states import RunState
from backcast.model.table import PublishMode, Stage, StageCommit
from backcast.model.verdict import Check, Verdict
from backcast.project.clock import SystemClock
from backcast.publish.job import PublishJob
from backcast.publish.step import publish
from backcast.publish.undo import undo
from backcast.spark.engine import SparkEngine
from backcast.testing.samples import sample_holder, sample_manifest
from backcast.testing.target_lab import LabTable

if TYPE_CHECKING:
    from backcast.ports import Store, Target

Write = Callable[["Target", Stage], StageCommit]


class Flow:
    """Runs on one table. What is published is keyed by id, and the greater v is the newer."""

    def __init__(self, table: LabTable, store: Store) -> None:
        self.table, self.store = table, store

    def accepted(self, name: str, mode: PublishMode, write: Write, live: LivePolicy = LivePolicy.FAIL) -> str:
        """A run that staged what `write` writes and waits for its publish."""
        target, runs = self.table.target(), self.store.runs
        manifest = self._manifest(target, name, Settings(publish_mode=mode, key=("id",), version="v", live_policy=live))
        run, base = runs.create(manifest), manifest.target.base
        stage = stage_of(run.run_id, base)
        target.open_stage(stage, None if mode is PublishMode.APPEND else EVERYTHING)
        staged = write(target, stage).version
        run = runs.transition(runs.transition(run, RunState.APPROVED), RunState.RUNNING, base=base)
        runs.transition(runs.transition(run, RunState.STAGED, staged=staged), RunState.ACCEPTED)
        runs.save_verdict(
            Verdict(
                run_id=run.run_id,
                accepted=True,
                base=base,
                staged=staged,
                net_change=target.net_change(stage, staged, EVERYTHING).digest(),
                checks=(Check(name="rows", passed=True, detail="as the test wrote them"),),
                partitions=(),
                rows=1,
                at=datetime.now(tz=UTC),
            )
        )
        return run.run_id

    def publish(self, run_id: str) -> Publication:
        with self._job(run_id) as job:
            return publish(job, self.store.runs.verdict(run_id))

    def undo(self, run_id: str, *, rewrite: bool = False) -> Publication:
        with self._job(run_id) as job:
            return undo(job, rewrite=rewrite)

    def run(self, run_id: str) -> Run:
        return self.store.runs.run(run_id)

    @contextmanager
    def _job(self, run_id: str) -> Iterator[PublishJob]:
        lease = self.store.leases.acquire(lease_name(run_id), sample_holder(), 600)
        try:
            yield PublishJob(
                run=self.run(run_id),
                manifest=self.store.runs.manifest(run_id),
                store=self.store,
                target=self.table.target(),
                engine=SparkEngine(),
                clock=SystemClock(),
                check_lease=lambda: lease.token,
                on_progress=lambda progress: None,
            )
        finally:
            self.store.leases.release(lease)

    def _manifest(self, target: Target, name: str, settings: Settings) -> Manifest:
        facts, sample = target.facts(), sample_manifest(reason=name)
        pin = TargetPin(
            dataset="orders",
            identity=facts.identity,
            base=facts.version,
            files=0,
            rows=0,
            bytes=0,
            files_digest="2" * 64,
        )
        scope = Scope(windows=sample.scope.windows, predicate=EVERYTHING)
        return sample.model_copy(update={"target": pin, "scope": scope, "settings": settings})
