"""Verbs that answer from the store alone: where a run stands, which there are, what happened."""

from __future__ import annotations

from backcast import status as status_report
from backcast.approving import with_approvals
from backcast.model.report import Status
from backcast.model.run import Event, Run
from backcast.verbs.themed import Verbs

Runs = list[Run]
Events = list[Event]
"""Named, because inside the class `list` is the verb."""


class AskingVerbs(Verbs):
    def status(self, run_id: str) -> Status:
        return with_approvals(self.world, status_report.status(self.world.reader(), run_id, self.world.clock.now()))

    def list(self, *, dataset: str | None = None, open_only: bool = False, limit: int = 50) -> Runs:
        return self.world.reader().runs(dataset=dataset, open_only=open_only, limit=limit)

    def wait(self, run_id: str, *, timeout: float | None = None) -> Run:
        """Until the run is done or needs a person. Raises Failed when nobody works on it, or the time is up."""
        return status_report.wait(self.world.reader(), run_id, self.world.clock, timeout)

    def logs(self, run_id: str, after: int = 0) -> Events:
        reader = self.world.reader()
        return reader.events(reader.run(run_id).run_id, after)
