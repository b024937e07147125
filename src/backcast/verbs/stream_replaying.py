"""Verbs behind `stream replay`: a stream's table computed anew from its topic, and the query that did it goes on.

    slices -> the stream stops -> a last slice to where it stands -> plan, run, publish -> checkpoints change places

Each step is on record, so that who repeats the command goes on behind the last.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import uuid4

from backcast.errors import Refused, StateConflict
from backcast.faults import point
from backcast.held import quiet
from backcast.model import full_replay as steps
from backcast.model import stream_backfill
from backcast.model.full_replay import (
    CaughtUp,
    FullReplay,
    gone,
    refuse_another,
    refuse_giving_up,
    refuse_open,
    refuse_unfit,
    scope_of,
    unfinished,
)
from backcast.model.live import replay_lease, slice_lease, stream_lease
from backcast.model.log import Ranges, span
from backcast.model.recovery import ranges_of
from backcast.model.report import OnProgress, Progress
from backcast.model.states import OPEN_STATES, VISIBLE_STATES, RunState
from backcast.model.time import parse_instant
from backcast.pacing import brake_of
from backcast.run.lease import LEASE_SECONDS, HeldLease, acquire
from backcast.sources.kafka.spelling import parse_position
from backcast.spark.gateway import jvm_errors
from backcast.streams.checkpoint.copying import copy_files, up_to
from backcast.streams.checkpoint.exchange import Exchange
from backcast.streams.checkpoint.folder import Checkpoint, local_folder
from backcast.verbs.streaming import StreamingVerbs

if TYPE_CHECKING:
    from pathlib import Path

    from backcast.model.request import Request
    from backcast.model.stream import StreamSpec
    from backcast.ports.pace import Pace

_KEPT = "replay"
"""What the folder of the checkpoint before is called after."""


class StreamReplayVerbs(StreamingVerbs):
    def stream_replay(self, name: str, start: str | None = None, offsets: str | None = None) -> FullReplay:
        """The one that is not over, or a new one. With offsets it reads from there, and replaces the days of which no
        record lies before them. Raises Refused for a stream that has written nothing.
        """
        spec, store = self.world.stream(name), self.world.store().streams
        there = unfinished(store.steps(name))
        if there is not None and not there.has(steps.GIVING_UP):
            refuse_another(there, start, self._asked(spec, offsets))
            return there
        others = (self.world.stream(each) for each in self.world.streams() if each != name)
        refuse_unfit(spec, [each.name for each in others if each.dataset.table == spec.dataset.table])
        local_folder(spec.checkpoint)
        self.world.replaying(name).full.refuse_unshared()
        if stream_backfill.unfinished(store.steps(name)) is not None:
            raise StateConflict(f"a backfill of stream {name} is not over", hint="finish it first, or give it up")
        if not self._ends(name):
            hint = f"backcast stream start {name} reads its topic from the beginning as it is"
            raise Refused(f"stream {name} has written nothing that could be replaced", hint=hint)
        if start is not None:
            parse_instant(start, spec.dataset.time.zone)
        asked = self._asked(spec, offsets)
        if asked:
            start = self.world.replaying(name).full.first_day(asked, start)
        resume = self.stream_status(name).alive
        if there is not None:
            # Its stream was not started again: it is behind this one.
            resume = resume or there.resume
            self.stream_replay_end(name, given_up=True)
        told = {"start": start, "offsets": asked, "resume": resume}
        begun = FullReplay(stream=name, pipeline=spec.pipeline.name, query_id=str(uuid4()), **told)
        store.step(name, steps.BEGUN, **begun.as_json())
        return begun

    def stream_replay_alone(self, name: str) -> AbstractContextManager[HeldLease]:
        """For the length of one command: nobody else replays the stream meanwhile. Raises LeaseHeld."""
        world = self.world
        return acquire(world.store().leases, replay_lease(name), world.holder(), world.clock, world.ended)

    @jvm_errors("replaying the stream")
    def stream_replay_slice(
        self, name: str, *, within: int = 0, last: bool = False, on_progress: OnProgress = quiet
    ) -> CaughtUp:
        """Read on to where the stream stands now. Also tells which days are to be replaced, once there is a batch.

        The last one is for a stream that is stopped: its newest batch becomes the newest of the query too, so that
        both have written the same windows. Until then that batch is left out if it is small, or the stream stands.
        """
        world = self.world
        world.spark()
        # By this process, whose JVM writes: one that was orphaned is ended before another writes to the same files.
        leases, holder = world.store().leases, world.holder()
        with acquire(leases, slice_lease(name), holder, world.clock, world.ended, wait=LEASE_SECONDS):
            return self._slice(name, on_progress, within=within, last=last)

    def _slice(self, name: str, on_progress: OnProgress, *, within: int, last: bool) -> CaughtUp:
        spec, there = self.world.stream(name), self._under_way(name)
        full, live = self.world.replaying(name).full, self.world.store().streams.stream(name)
        query, since = full.catch_up(self._pace(spec, on_progress, last=last)), self._since(spec, there)
        begun = query.query_id() == there.query_id
        full.refuse_other_log("" if live is None else live.topic_id, query.starts() if begun else there.offsets)
        newest = self._newest(spec, probe=last)
        starts, ends = {each.partition: each.start for each in newest}, {each.partition: each.end for each in newest}
        if not begun:
            if there.has(steps.STOPPED):
                raise gone(name, full.folder, f"backcast stream replay {name} --give-up: the stream goes on as it was")
            first = full.first_offsets(since)
            _refuse_nothing(spec, first, ends)
            query.begin(there.query_id, first | there.offsets)
        # Nothing comes behind the newest batch of one that stands: what that closes, it has not written.
        leaves = not last and not self.stream_status(name).alive and query.stateful()
        if last:
            if query.ends() != query.ends() | ends:
                query.advance(starts)
            query.advance(ends, as_one=span(newest) > 0)
        else:
            query.advance(starts if leaves or span(newest) <= within else ends)
            query.rest()
        point("full-replay.after-slice")
        read, told = query.ends(), {}
        wanted = starts if leaves else {each.partition: each.end for each in self._newest(spec)}
        behind = sum(max(0, end - read.get(partition, 0)) for partition, end in wanted.items())
        if query.batch is not None:
            refuse_open(name, query.watermark, since)
            first_day, end_day = scope_of(name, *full.reach(query.batch), there.start)
            told = {"first_day": first_day, "end_day": end_day}
        return CaughtUp(batch=query.batch, ends=read, behind=behind, **told)

    def stream_replay_stop(self, name: str) -> FullReplay:
        """Stop the stream behind its batch if it runs. Nobody can start it from then on, until it is swapped."""
        world, there = self.world, self._under_way(name)
        if there.has(steps.STOPPED):
            return there
        alive = self.stream_status(name).alive
        self.stream_stop(name)
        leases, holder = world.store().leases, world.holder()
        with acquire(leases, stream_lease(name), holder, world.clock, world.ended, wait=LEASE_SECONDS):
            return self.stream_replay_step(name, steps.STOPPED, resume=there.resume or alive)

    def stream_replay_step(self, name: str, step: str, **data: object) -> FullReplay:
        """Record that a step is done; what is left of the replay."""
        there = self._under_way(name)
        self.world.store().streams.step(name, step, **data)
        return unfinished(self.world.store().streams.steps(name)) or there

    def stream_replay_run(self, name: str) -> str | None:
        """The run of the replay, unless there is none or it was cancelled: then it is to be planned anew."""
        there = self._under_way(name)
        state = None if there.run_id is None else self.world.store().runs.run(there.run_id).state
        return there.run_id if state in OPEN_STATES | VISIBLE_STATES else None

    def stream_replay_request(self, name: str, why: Request, found: CaughtUp | None = None) -> Request:
        """What is to be planned, once the query has caught up; before that, for a look, with what was found so far."""
        there = found or self._under_way(name)
        if there.batch is None or there.first_day is None:
            raise Refused(f"the topic of stream {name} has no record to replay", hint=f"backcast stream lag {name}")
        window = {"start": there.first_day, "end": there.end_day, "stream": name, "takeover": True}
        return why.model_copy(update={"pipeline": self._under_way(name).pipeline, **window})

    def stream_replay_swap(self, name: str) -> FullReplay:
        """The query that computed the rows takes the stream's place; the checkpoint before is kept aside."""
        world, spec, there = self.world, self.world.stream(name), self._under_way(name)
        store = world.store().streams
        live = store.stream(name)
        if there.has(steps.SWAPPED) and (live is None or live.query_id == there.query_id):
            return there
        if there.batch is None or there.run_id is None or not there.has(steps.PUBLISHED):
            raise StateConflict(f"the replay of stream {name} is not published", hint=f"backcast stream replay {name}")
        if not there.has(steps.SWAPPED) and world.store().runs.run(there.run_id).state not in VISIBLE_STATES:
            raise StateConflict(
                f"run {there.run_id} is not published any more",
                hint=f"backcast publish {there.run_id}, or backcast stream replay {name} --give-up",
            )
        with acquire(world.store().leases, stream_lease(name), world.holder(), world.clock, world.ended) as lease:
            kept = self._exchanged(spec, there, there.batch)
            point("full-replay.after-exchange")
            offsets = {spec.source.topic: {str(key): value for key, value in sorted(there.ends.items())}}
            told = {"query_id": there.query_id, "offsets": offsets, "kept": None if kept is None else str(kept)}
            if not there.has(steps.SWAPPED):
                # First: while the stream is on record under the old id, what that wrote tells where the table stands.
                store.step(name, steps.SWAPPED, **told)
            point("full-replay.after-swap")
            if live is not None:
                now = live.model_copy(update={"query_id": there.query_id, "detail": "", "hint": ""})
                store.save(now, lease.check())
        return unfinished(store.steps(name)) or there

    def _exchanged(self, spec: StreamSpec, there: FullReplay, batch: int) -> Path | None:
        """Where the checkpoint before lies, also when an earlier command has put it there."""
        exchange = Exchange(local_folder(spec.checkpoint))
        exchange.finish_interrupted()
        if Checkpoint(local_folder(spec.checkpoint)).readable_id() == there.query_id:
            return next((each for each in reversed(exchange.kept()) if f".before-{_KEPT}-" in each.name), None)
        source = Checkpoint(self.world.replaying(spec.name).full.folder / "checkpoint")
        if source.readable_id() != there.query_id or batch not in source.commits or batch not in source.offsets:
            undo = f"backcast undo {there.run_id}, then backcast stream replay {spec.name} --give-up"
            raise gone(spec.name, source.root, f"{undo}: the stream goes on as it was, and can be replayed again")
        with exchange.building() as building:
            copy_files(source, building, up_to(batch))
        point("full-replay.before-exchange")
        return exchange.exchange(_KEPT, self.world.clock.now())

    def stream_replay_given_up(
        self, name: str, start: str | None, offsets: str | None = None
    ) -> tuple[FullReplay, str | None]:
        """One that is to be given up, and its run if that is to be cancelled first. Raises StateConflict."""
        there = self._under_way(name)
        refuse_another(there, start, self._asked(self.world.stream(name), offsets))
        return there, there.run_id if self._refuse_visible(there) in OPEN_STATES else None

    def stream_replay_giving_up(self, name: str) -> FullReplay:
        """From now on the stream may be started from its own checkpoint, with the code that it ran with."""
        there = self._under_way(name)
        if not there.has(steps.STOPPED) or there.has(steps.GIVING_UP):
            return there
        self._refuse_visible(there)
        there = self.stream_replay_step(name, steps.GIVING_UP)
        point("full-replay.after-giving-up")
        return there

    def stream_replay_end(self, name: str, *, given_up: bool = False) -> None:
        """Forget what it left. Raises StateConflict for giving up one whose rows readers see."""
        if given_up:
            self._refuse_visible(self._under_way(name))
        self.world.store().streams.step(name, steps.GIVEN_UP if given_up else steps.DONE)
        self.world.replaying(name).full.forget()

    def _refuse_visible(self, there: FullReplay) -> RunState | None:
        """The state of its run, if it has one and can be given up."""
        state = None if there.run_id is None else self.world.store().runs.run(there.run_id).state
        refuse_giving_up(there, state)
        return state

    def _pace(self, spec: StreamSpec, on_progress: OnProgress, *, last: bool) -> Pace | None:
        throttle, name = spec.pipeline.settings.throttle, spec.name
        if throttle is None:
            return None

        def say(message: str) -> None:
            on_progress(Progress(step="replay", message=message))

        # The last slice is read while the stream stands.
        limits = throttle.at_any_time() if last else throttle
        return brake_of(self.world, lambda: limits, lambda: self._under_way(name), say)

    def _newest(self, spec: StreamSpec, *, probe: bool = False) -> Ranges:
        """What the newest batch of the stream read: on record, or in the table, which may have one that died before."""
        batches = self.world.store().streams.batches(spec.name, 20)
        found = next((each.offsets for each in batches if each.landed), ())
        live = self.world.store().streams.stream(spec.name)
        if not probe or live is None or live.query_id is None:
            return found
        commit = self.world.live_query(spec).newest(live.query_id)
        in_table = () if commit is None or commit.offsets is None else ranges_of(commit.offsets)
        known = {each.partition: each.end for each in found}
        return in_table if any(each.end > known.get(each.partition, 0) for each in in_table) else found

    @staticmethod
    def _asked(spec: StreamSpec, offsets: str | None) -> dict[int, int]:
        return {} if offsets is None else parse_position(offsets, [spec.source.topic])[spec.source.topic]

    @staticmethod
    def _since(spec: StreamSpec, there: FullReplay) -> datetime | None:
        return None if there.start is None else parse_instant(there.start, spec.dataset.time.zone)

    def _under_way(self, name: str) -> FullReplay:
        there = unfinished(self.world.store().streams.steps(name))
        if there is None:
            raise StateConflict(f"no full replay of stream {name} is under way", hint=f"backcast stream replay {name}")
        return there


def _refuse_nothing(spec: StreamSpec, starts: dict[int, int], ends: dict[int, int]) -> None:
    if all(starts.get(partition, 0) >= end for partition, end in ends.items()):
        raise Refused(
            f"stream {spec.name} has read no record of that day or later",
            hint=f"backcast stream replay {spec.name} --give-up, then again from an earlier day",
        )
