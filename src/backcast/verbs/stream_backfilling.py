"""Verbs behind `stream backfill`: each step is on record, so that who repeats the command goes on behind the last."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import PlanRefused, StateConflict
from backcast.faults import point
from backcast.model.finding import Severity
from backcast.model.states import RunState
from backcast.model.stream_backfill import (
    BEGUN,
    GIVEN_UP,
    PLANNED,
    PUBLISHED,
    VERIFIED,
    StreamBackfill,
    choose,
    refuse_another,
    refuse_unread,
    unfinished,
)
from backcast.verbs.streaming import StreamingVerbs

if TYPE_CHECKING:
    from backcast.model.report import Plan


class StreamBackfillVerbs(StreamingVerbs):
    def stream_backfill(self, name: str, start: str, end: str, *, pause: bool = False) -> StreamBackfill:
        """The one that is not over, or a new one. Raises StateConflict when one over another window is not over."""
        spec, store = self.world.stream(name), self.world.store().streams
        there = unfinished(store.steps(name))
        if there is not None:
            refuse_another(there, start, end)
            return self._with_its_run(there)
        status = self.stream_status(name)
        way, why = choose(spec, status, pause=pause)
        begun = StreamBackfill(
            stream=name,
            pipeline=spec.pipeline.name,
            start=start,
            end=end,
            way=way,
            why=why,
            resume=way == "pause" and status.alive,
        )
        store.step(name, BEGUN, **begun.as_json())
        return begun

    def stream_backfill_given_up(self, name: str, start: str, end: str) -> StreamBackfill:
        """One that is to be given up. Raises StateConflict when it is another that is not over, or none."""
        there = unfinished(self.world.store().streams.steps(name))
        if there is None:
            hint = f"backcast stream status {name}"
            raise StateConflict(f"no backfill of stream {name} is under way: there is nothing to give up", hint=hint)
        refuse_another(there, start, end)
        return there

    def _with_its_run(self, there: StreamBackfill) -> StreamBackfill:
        """A run that was cancelled is planned anew. Raises StateConflict when the published one is visible no more."""
        if there.run_id is None or there.has(VERIFIED):
            return there
        state = self.world.store().runs.run(there.run_id).state
        if there.has(PUBLISHED) and state is not RunState.PUBLISHED:
            name, run_id = there.stream, there.run_id
            stands = there.resume and not self.stream_status(name).alive
            stopped = f"stream {name} stays stopped meanwhile; " if stands else ""
            ends = "starts it again and ends here" if stands else "ends here"
            back = f"; after backcast publish {run_id} the same command goes on" if state is RunState.UNDONE else ""
            raise StateConflict(
                f"run {run_id} of this backfill was published, and is {state} now",
                hint=f"{stopped}{there.again} --give-up {ends}{back}",
            )
        return there.unplanned() if state is RunState.CANCELLED else there

    def stream_backfill_step(self, name: str, step: str, **data: str) -> StreamBackfill | None:
        """Record that a step is done; what is left of the backfill, None once it is over."""
        store = self.world.store().streams
        if step != GIVEN_UP:
            point(step.replace(".", ".before-"))
        store.step(name, step, **data)
        point("backfill.after-record")
        return unfinished(store.steps(name))

    def stream_backfill_planned(self, name: str, plan: Plan) -> StreamBackfill | None:
        """Record the plan, once it is clear that the stream has read what the run reads. Raises Refused."""
        spec = self.world.stream(name)
        if plan.refused:
            blocking = [finding for finding in plan.findings if finding.severity is Severity.BLOCK]
            raise PlanRefused("; ".join(each.reason for each in blocking), hint=blocking[0].remedy)
        if not spec.external:
            refuse_unread(plan.manifest, spec, self._ends(name))
        return self.stream_backfill_step(name, PLANNED, run_id=plan.run_id)
