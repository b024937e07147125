"""Verbs behind `stream replay`: a stream's table computed anew from its topic, and the query that did it goes on.

    slices -> the stream stops -> a last slice to where it stands -> plan, run, publish -> checkpoints change places

Each step is on record, so that who repeats the command goes on behind the last.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING
from uuid import uuid4

from backcast.errors import InvalidRequest, Refused, StateConflict
from backcast.faults import point
from backcast.model import full_replay as steps
from backcast.model import stream_backfill
from backcast.model.full_replay import CaughtUp, FullReplay, refuse_another, unfinished
from backcast.model.live import stream_lease
from backcast.model.states import RunState
from backcast.model.time import parse_instant
from backcast.run.lease import acquire
from backcast.spark.gateway import jvm_errors
from backcast.streams.checkpoint.copying import copy_files, up_to
from backcast.streams.checkpoint.exchange import Exchange
from backcast.streams.checkpoint.folder import Checkpoint, local_folder
from backcast.verbs.streaming import StreamingVerbs

if TYPE_CHECKING:
    from backcast.model.request import Request


class StreamReplayVerbs(StreamingVerbs):
    def stream_replay(self, name: str, start: str | None = None) -> FullReplay:
        """The one that is not over, or a new one. Raises Refused for a stream that has written nothing."""
        spec, store = self.world.stream(name), self.world.store().streams
        there = unfinished(store.steps(name))
        if there is not None:
            refuse_another(there, start)
            return there
        if spec.external:
            hint = f"backcast plan {spec.pipeline.name} --stream {name} --from DAY --to DAY replays a window of it"
            raise InvalidRequest(f"stream {name} is run by somebody else and cannot be replaced from here", hint=hint)
        if stream_backfill.unfinished(store.steps(name)) is not None:
            raise StateConflict(f"a backfill of stream {name} is not over", hint="finish it first, or give it up")
        if not self._ends(name):
            hint = f"backcast stream start {name} reads its topic from the beginning as it is"
            raise Refused(f"stream {name} has written nothing that could be replaced", hint=hint)
        if start is not None:
            parse_instant(start, spec.dataset.time.zone)
        alive = self.stream_status(name).alive
        begun = FullReplay(stream=name, pipeline=spec.pipeline.name, start=start, query_id=str(uuid4()), resume=alive)
        store.step(name, steps.BEGUN, **begun.as_json())
        return begun

    @jvm_errors("replaying the stream")
    def stream_replay_slice(self, name: str, *, last: bool = False) -> CaughtUp:
        """Read on to where the stream stands now. The last one also tells which days the table then has rows of."""
        spec, there = self.world.stream(name), self._under_way(name)
        replaying = self.world.replaying(name)
        query = replaying.catch_up()
        since = None if there.start is None else parse_instant(there.start, spec.dataset.time.zone)
        if query.query_id() != there.query_id:
            query.begin(there.query_id, replaying.first_offsets(since))
        query.advance(self._ends(name))
        point("full-replay.after-slice")
        ends = query.ends()
        behind = sum(max(0, end - ends.get(partition, 0)) for partition, end in self._ends(name).items())
        told: dict[str, str] = {}
        if last and query.batch is not None:
            days = replaying.reach(query.batch)
            first, end = _days(days, there.start)
            told = {"first_day": first, "end_day": end}
        return CaughtUp(batch=query.batch, ends=ends, behind=behind, **told)

    def stream_replay_step(self, name: str, step: str, **data: object) -> FullReplay:
        """Record that a step is done; what is left of the replay."""
        there = self._under_way(name)
        self.world.store().streams.step(name, step, **data)
        return unfinished(self.world.store().streams.steps(name)) or there

    def stream_replay_request(self, name: str, why: Request) -> Request:
        """What is to be planned, once the query has caught up."""
        there = self._under_way(name)
        if there.batch is None or there.first_day is None:
            raise Refused(f"the topic of stream {name} has no record to replay", hint=f"backcast stream lag {name}")
        window = {"start": there.first_day, "end": there.end_day, "stream": name, "takeover": True}
        return why.model_copy(update={"pipeline": there.pipeline, **window})

    def stream_replay_swap(self, name: str) -> FullReplay:
        """The query that computed the rows takes the stream's place; the checkpoint before is kept aside."""
        world, spec, there = self.world, self.world.stream(name), self._under_way(name)
        store = world.store().streams
        if there.has(steps.SWAPPED):
            return there
        if there.batch is None or there.run_id is None or not there.has(steps.PUBLISHED):
            raise StateConflict(f"the replay of stream {name} is not published", hint=f"backcast stream replay {name}")
        if world.store().runs.run(there.run_id).state is not RunState.PUBLISHED:
            raise StateConflict(
                f"run {there.run_id} is not published any more", hint=f"backcast stream replay {name} --give-up"
            )
        with acquire(world.store().leases, stream_lease(name), world.holder(), world.clock, world.ended) as lease:
            exchange, kept = Exchange(local_folder(spec.checkpoint)), None
            exchange.finish_interrupted()
            if Checkpoint(local_folder(spec.checkpoint)).readable_id() != there.query_id:
                source = Checkpoint(world.replaying(name).folder / "checkpoint")
                with exchange.building() as building:
                    copy_files(source, building, up_to(there.batch))
                point("full-replay.before-exchange")
                kept = exchange.exchange("replay", world.clock.now())
            point("full-replay.after-exchange")
            offsets = {spec.source.topic: {str(key): value for key, value in sorted(there.ends.items())}}
            told = {"query_id": there.query_id, "offsets": offsets, "kept": None if kept is None else str(kept)}
            live = store.stream(name)
            if live is not None:
                store.save(
                    live.model_copy(update={"query_id": there.query_id, "detail": "", "hint": ""}), lease.check()
                )
            store.step(name, steps.SWAPPED, **told)
        return unfinished(store.steps(name)) or there

    def stream_replay_end(self, name: str, *, given_up: bool = False) -> None:
        """Forget what it left. Raises StateConflict for giving up one whose rows readers see."""
        there, store = self._under_way(name), self.world.store()
        if given_up and there.run_id is not None and not there.has(steps.SWAPPED):
            state = store.runs.run(there.run_id).state
            if state in (RunState.PUBLISHED, RunState.PUBLISHING, RunState.UNDOING):
                raise StateConflict(
                    f"run {there.run_id} is {state}: the stream would write its rows a second time",
                    hint=f"backcast stream replay {name} goes on; or backcast undo {there.run_id} first",
                )
        store.streams.step(name, steps.GIVEN_UP if given_up else steps.DONE)
        self.world.replaying(name).forget()

    def _under_way(self, name: str) -> FullReplay:
        there = unfinished(self.world.store().streams.steps(name))
        if there is None:
            raise StateConflict(f"no full replay of stream {name} is under way", hint=f"backcast stream replay {name}")
        return there


def _days(days: tuple[date, date] | None, start: str | None) -> tuple[str, str]:
    """A day more at each end: a day of the dataset's zone is not one of UTC."""
    if days is None:
        raise Refused("neither the table nor the replay has a row", hint="look at the topic: backcast kafka offsets")
    first, last = days
    return start or str(first - timedelta(days=1)), str(last + timedelta(days=2))
