"""The verb that looks at a table after a publish."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.errors import StateConflict
from backcast.held import live_rules, quiet
from backcast.model.report import OnProgress, Progress
from backcast.model.states import RunState
from backcast.model.watch import LOOKED, Watch, watch_of
from backcast.spark.gateway import jvm_errors
from backcast.validate.watch import Watching, look
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.run import Run


class WatchingVerbs(Verbs):
    @jvm_errors("watching the table")
    def watch(self, run_id: str, *, once: bool = False, every: float = 300.0, on_progress: OnProgress = quiet) -> Watch:
        """Look at what readers see until the declared time is over or a check fails; with `once`, one time.

        Changes nothing: what to do about a failure is decided by a person.
        """
        clock, runs = self.world.clock, self.world.store().runs
        run = self._published(run_id)
        while True:
            seen = self._look(run)
            left = 0.0 if seen.until is None else (seen.until - clock.now()).total_seconds()
            if once or seen.failed or left <= 0:
                return seen
            wait = min(every, left)
            after = f"{clock.now() + timedelta(seconds=wait):%H:%M:%S} UTC"
            on_progress(Progress(step="watch", message=f"look {seen.looks} passed; the next at {after}"))
            clock.sleep(wait)
            if runs.run(run.run_id).state is not RunState.PUBLISHED:
                return seen

    def _published(self, run_id: str) -> Run:
        run = self.world.store().runs.run(run_id)
        if run.state is not RunState.PUBLISHED:
            raise StateConflict(
                f"run {run.run_id} is {run.state}: only what is published can be watched",
                hint=f"backcast status {run.run_id}",
            )
        return run

    def _look(self, run: Run) -> Watch:
        runs = self.world.store().runs
        manifest, publication = runs.manifest(run.run_id), runs.publications(run.run_id)[-1]
        found = look(
            Watching(
                manifest=manifest,
                publication=publication,
                target=self.world.target(run.dataset),
                engine=self.world.engine(),
                rules=lambda version, files: live_rules(self.world, run.run_id, version, files),
                now=self.world.clock.now(),
            )
        )
        runs.record(run.run_id, LOOKED, **found.as_json())
        return watch_of(manifest, publication, runs.events(run.run_id))
