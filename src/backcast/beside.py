"""Runs beside streams: where those stand whose rows are in the table that a run restates, and what they hold back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, cast

from backcast.errors import Refused
from backcast.model.full_replay import SWAPPED
from backcast.model.live import KEPT_BATCHES
from backcast.model.recovery import NO_BATCH, RECOVERED, ends_of, proven_position
from backcast.model.source import LogSource
from backcast.model.stream import StreamWrite
from backcast.model.stream_backfill import STOPPED, StreamBackfill, unfinished
from backcast.ports.streams import LiveCommit
from backcast.streams.checkpoint.folder import Checkpoint, local_folder

if TYPE_CHECKING:
    from backcast.model.late import OpenWindows
    from backcast.model.live import LiveBatch
    from backcast.model.pipeline import InputSpec, PipelineSpec
    from backcast.model.stream import StreamSpec
    from backcast.ports import Input, SharedLog
    from backcast.ports.streams import LiveQuery
    from backcast.world import World


def inputs_beside(
    world: World, spec: PipelineSpec, opened: Callable[[InputSpec], Input]
) -> Callable[[InputSpec], Input]:
    """Inputs of a plan: of a topic that a stream adds to the pipeline's own table, what the stream has read."""

    def input_of(each: InputSpec) -> Input:
        found = opened(each)
        stream = _adding(world, spec, each)
        if stream is None:
            return found
        return cast("SharedLog", found).beside(stream.name, partial(position_by_table, world, stream))

    return input_of


def open_beside(world: World, spec: PipelineSpec, replaced: str | None) -> tuple[OpenWindows, ...]:
    """What streams into the pipeline's table, of ours and of others, have read and will add to it later.

    To be asked before the table is looked at: a window that one of them closes in between is in it then, or counts as
    open. `replaced` is a stream that ends with the run. What a merge meets twice it takes once.
    """
    streams = [each for each in map(world.stream, world.streams()) if each.dataset.table == spec.output.table]
    adding = [each for each in streams if each.write is StreamWrite.APPEND and each.name != replaced]
    found = (world.replaying(each.name).open_windows(world.clock.now()) for each in adding)
    return tuple(each for each in found if each is not None)


def _adding(world: World, spec: PipelineSpec, each: InputSpec) -> StreamSpec | None:
    """One that appends rows of this input to the table. What a merge meets twice it takes once."""
    if not isinstance(each.dataset, LogSource):
        return None
    for stream in map(world.stream, world.streams()):
        same = (stream.dataset.table, stream.source.name) == (spec.output.table, each.dataset.name)
        if same and stream.write is StreamWrite.APPEND and (not stream.external or _at_rest(world, stream)):
            return stream
    return None


def position_by_table(world: World, stream: StreamSpec) -> Mapping[int, int] | None:
    """Up to where the stream has read, by the table, not by what is on record: a process may have died between the two.
    None: it has nothing there. One that others have stopped for a backfill stands where its checkpoint does."""
    if stream.external:
        there = _at_rest(world, stream)
        return None if there is None else there.ends
    live = world.stream_reader().stream(stream.name)
    if live is None or live.query_id is None:
        return None
    query = world.live_query(stream)
    commit = newest_commit(world, stream, query, live.query_id)
    return None if commit is None else proven(world, stream, query, live.query_id, commit)


def rests(stream: StreamSpec, there: StreamBackfill) -> bool:
    """Whether a stream that others run still stands where a backfill has found it stopped."""
    if not there.has(STOPPED):
        return False
    found = Checkpoint(local_folder(stream.checkpoint))
    return (found.readable_id(), found.planned, found.committed) == (there.query_id, there.batch, there.batch)


def _at_rest(world: World, stream: StreamSpec) -> StreamBackfill | None:
    there = unfinished(world.stream_reader().steps(stream.name))
    return there if there is not None and there.external and rests(stream, there) else None


def newest_commit(world: World, stream: StreamSpec, query: LiveQuery, query_id: str) -> LiveCommit | None:
    """The newest batch of the query in the table; of one that a command put in its place, where it begins."""
    commit = query.newest(query_id)
    if commit is not None:
        return commit
    steps = reversed(world.stream_reader().steps(stream.name))
    made = next(
        (each for each in steps if each.name in (RECOVERED, SWAPPED) and each.data["query_id"] == query_id), None
    )
    if made is None:
        return None
    offsets = made.data["offsets"][stream.source.topic]
    return LiveCommit(NO_BATCH, None, 0, ",".join(f"{key}={value}..{value}" for key, value in offsets.items()))


def proven(world: World, stream: StreamSpec, query: LiveQuery, query_id: str, commit: LiveCommit) -> dict[int, int]:
    """The next offset of each partition behind what the table has, or needs nothing of."""
    # Before the store is asked: in between a stream that runs only gets further.
    over = _over(query, query_id)
    batches = [each for each in world.stream_reader().batches(stream.name, KEPT_BATCHES) if each.query_id == query_id]
    return proven_position(_ends(stream, commit, batches), commit.batch, batches, over)


def _over(query: LiveQuery, query_id: str) -> tuple[int, Mapping[int, int]] | None:
    """The newest batch that the query's own checkpoint has behind it, and where that ends."""
    try:
        found = query.position()
    except Refused:
        return None
    if found.query_id != query_id or not found.ends:
        return None
    return None if found.committed is None else (found.committed, found.ends)


def _ends(stream: StreamSpec, commit: LiveCommit, batches: list[LiveBatch]) -> dict[int, int]:
    """Where the newest commit ended, in its own words, or in those of the store about the same batch."""
    if commit.offsets is not None:
        return ends_of(commit.offsets)
    recorded = next((each for each in batches if each.batch == commit.batch and each.landed), None)
    if recorded is None:
        raise Refused(
            f"the table has batch {commit.batch} of stream {stream.name}, and nobody knows its offsets any more",
            hint="compare the table with the topic: backcast late, or restore a backup: backcast checkpoint restore",
        )
    return {each.partition: each.end for each in recorded.offsets}
