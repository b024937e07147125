"""Verbs behind `stream backfill`: each step is on record, so that who repeats the command goes on behind the last."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from backcast.beside import rests
from backcast.errors import PlanRefused, StateConflict
from backcast.faults import point
from backcast.model.finding import Severity
from backcast.model.live import backfill_lease, stream_lease
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.stream_backfill import (
    BEGUN,
    DONE,
    GIVEN_UP,
    GIVING_UP,
    PLANNED,
    PUBLISHED,
    STOPPED,
    VERIFIED,
    StreamBackfill,
    Way,
    choose,
    refuse_another,
    refuse_giving_up,
    refuse_moved,
    refuse_unread,
    unfinished,
)
from backcast.run.lease import LEASE_SECONDS, HeldLease, acquire
from backcast.streams.checkpoint.folder import Checkpoint, local_folder
from backcast.verbs.counting import asked_window
from backcast.verbs.standing import at_rest
from backcast.verbs.streaming import StreamingVerbs

if TYPE_CHECKING:
    from backcast.model.report import Plan


class StreamBackfillVerbs(StreamingVerbs):
    def stream_backfill(self, name: str, start: str, end: str, *, pause: bool = False) -> StreamBackfill:
        """The one that is not over, or a new one.

        Raises StateConflict when one over another window is not over, and InvalidRequest for what is no window.
        """
        spec, store = self.world.stream(name), self.world.store().streams
        there = unfinished(store.steps(name))
        if there is not None and there.external and there.has(VERIFIED) and (there.start, there.end) != (start, end):
            # Nothing but the start of the stream is left of it, which is not ours to wait for.
            store.step(name, DONE)
            there = None
        if there is not None:
            refuse_another(there, start, end)
            refuse_giving_up(there)
            return self._with_its_run(there)
        # Before anything is on record: what is no window could not be gone on with, and its stream would stay stopped.
        asked_window(spec.dataset, start, end)
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
            external=spec.external and way is Way.PAUSE,
        )
        store.step(name, BEGUN, **begun.as_json())
        return begun

    def stream_backfill_alone(self, name: str) -> AbstractContextManager[HeldLease]:
        """For the length of one command: nobody else backfills the stream's table meanwhile. Raises LeaseHeld."""
        world = self.world
        world.stream(name)
        return acquire(world.store().leases, backfill_lease(name), world.holder(), world.clock, world.ended)

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

    def stream_backfill_stop(self, name: str) -> StreamBackfill | None:
        """Stop the stream behind its batch if it runs. Nobody can start it from then on, until the table was looked at.

        Raises LeaseHeld when somebody has started it again in between.
        """
        world, there = self.world, self._going_on(name)
        alive = self.stream_status(name).alive
        self.stream_stop(name)
        resume = alive or (there is not None and there.resume)
        leases, holder = world.store().leases, world.holder()
        with acquire(leases, stream_lease(name), holder, world.clock, world.ended, wait=LEASE_SECONDS):
            return self.stream_backfill_step(name, STOPPED, resume=resume)

    def stream_backfill_step(self, name: str, step: str, **data: Any) -> StreamBackfill | None:
        """Record that a step is done; what is left of the backfill, None once it is over."""
        store = self.world.store().streams
        if step not in (GIVING_UP, GIVEN_UP):
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
        there = self._going_on(name)
        if there is not None and there.external:
            # What the plan leaves to the stream is what that had still to read while it was made.
            self.stream_backfill_refuse_moved(name)
            refuse_unread(plan.manifest, spec, there.ends)
        elif not spec.external:
            refuse_unread(plan.manifest, spec, self._ends(name))
        return self.stream_backfill_step(name, PLANNED, run_id=plan.run_id)

    def stream_backfill_stopped(self, name: str, *, stopped: bool) -> StreamBackfill | None:
        """Record where a stream stands that others have stopped, once it is proven that it stands. `stopped` is
        somebody's word for it. What was planned while it stood elsewhere is forgotten.

        Raises Conflict and Refused while it is not, see `at_rest`.
        """
        query_id, found = at_rest(self.world.stream(name), self.world.clock, stopped=stopped)
        return self.stream_backfill_step(name, STOPPED, query_id=query_id, batch=found.batch, ends=found.ends)

    def stream_backfill_to_stop(self, name: str) -> bool:
        """Whether others have to stop the stream before its backfill goes on: none of it is published, and it does not
        stand where it stood.
        """
        there = self._going_on(name)
        return there is not None and not self._is_published(there) and not rests(self.world.stream(name), there)

    def stream_backfill_rests(self, name: str) -> bool:
        """Whether a stream that others have stopped still stands where its backfill has found it."""
        there = self._going_on(name)
        return there is not None and rests(self.world.stream(name), there)

    def stream_backfill_refuse_moved(self, name: str) -> None:
        """Raises Refused for a stream that others have started again before the run was published."""
        spec, there = self.world.stream(name), self._going_on(name)
        if there is not None and there.external and self.stream_backfill_to_stop(name):
            refuse_moved(there, Checkpoint(local_folder(spec.checkpoint)).planned)

    def _going_on(self, name: str) -> StreamBackfill | None:
        return unfinished(self.world.stream_reader().steps(name))

    def _is_published(self, there: StreamBackfill) -> bool:
        """Or may be: then what the stream does meanwhile changes nothing about it."""
        state = None if there.run_id is None else self.world.reader().run(there.run_id).state
        return state in VISIBLE_STATES or state is RunState.PUBLISHING
