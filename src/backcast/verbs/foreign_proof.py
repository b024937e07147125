"""Up to where a stream has written that others run: by what its sink remembers, its checkpoint and its rows tell."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, Refused
from backcast.model.recovery import NO_BATCH, RECOVERED
from backcast.model.scope import EVERYTHING
from backcast.spark.holes import spans
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.fork import starts_after
from backcast.streams.checkpoint.look import position_of, positions
from backcast.streams.checkpoint.point import offsets_problem
from backcast.streams.checkpoint.sink import SinkMemory, remembered

if TYPE_CHECKING:
    from backcast.model.checkpoint import Verification
    from backcast.model.log import TopicFacts
    from backcast.model.stream import StreamSpec
    from backcast.streams.checkpoint.folder import Checkpoint
    from backcast.world import World


@dataclass(frozen=True, slots=True)
class Proof:
    """The next offset of each partition behind what the table has."""

    ends: dict[int, int]
    batch: int
    """The batch that ends there, or NO_BATCH."""
    by: str
    """What says so."""
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """All that a recovery goes by."""

    query_id: str
    proof: Proof
    position: dict[int, int] | None
    """Where the stream would go on with its checkpoint."""
    topic: TopicFacts
    found: Verification
    stateful: bool
    """Or it may be."""


def foreign_standing(world: World, spec: StreamSpec, checkpoint: Checkpoint) -> Standing:
    """Raises Refused when nothing proves up to where it has written."""
    topic, found = world.topic(spec.source), verify(checkpoint)
    proof = _proof(world, spec, checkpoint, topic)
    # A batch that its sink has is skipped there when it comes again.
    repeated = proof.batch == checkpoint.planned
    return Standing(
        query_id=checkpoint.readable_id() or "",
        proof=proof,
        position=proof.ends if repeated else position_of(checkpoint, spec.source.topic),
        topic=topic,
        found=found,
        stateful=_keeps_state(world, spec, checkpoint, found),
    )


def starts_beside(checkpoint: Checkpoint, batch: int, offsets: dict[str, dict[str, int]]) -> dict[str, str]:
    """Where each source of the query begins anew: of this topic at these offsets, else where the batch ended. Raises
    Refused for sources that are no topics.
    """
    told = {name: json.loads(text) for name, text in starts_after(checkpoint, batch).items()}
    changed = {name: {each: offsets.get(each, ends) for each, ends in found.items()} for name, found in told.items()}
    return {name: json.dumps(found, separators=(",", ":")) for name, found in changed.items()}


def _proof(world: World, spec: StreamSpec, checkpoint: Checkpoint, topic: TopicFacts) -> Proof:
    """Raises Refused when nothing proves it."""
    query_id = checkpoint.readable_id()
    made = _made_here(world, spec, query_id)
    if made is not None and not checkpoint.offsets:
        return Proof(made, NO_BATCH, "its checkpoint was made by a recovery, and its query has not begun")
    found = _by_batch(world, spec, checkpoint, query_id)
    if isinstance(found, Proof):
        return found
    by_rows = _by_rows(world, spec, checkpoint, topic)
    if by_rows is not None:
        return by_rows
    table, name = spec.dataset.table, spec.dataset.name
    raise Refused(
        f"nothing proves up to where stream {spec.name} has written to {table}: {found}",
        hint=f"backcast checkpoint restore {spec.name} --from BACKUP; or declare `position` of datasets.{name}, where"
        " its rows carry partition and offset; or let a new query begin where nothing was read yet (startingOffsets),"
        f" and merge what lies before by key: backcast plan {spec.pipeline.name} --offsets 0=100..200",
    )


def _keeps_state(world: World, spec: StreamSpec, checkpoint: Checkpoint, found: Verification) -> bool:
    """Or may have kept some: of a checkpoint that is not there nothing but the transform tells."""
    if checkpoint.offsets or checkpoint.commits or checkpoint.operators:
        return bool(checkpoint.operators) or any(each.file.startswith("state") for each in found.damages)
    try:
        return world.live_query(spec).stateful()
    except BackcastError:
        return True


def _made_here(world: World, spec: StreamSpec, query_id: str | None) -> dict[int, int] | None:
    """Where a recovery has put the query, if one has made it."""
    steps = (each for each in world.stream_reader().steps(spec.name) if each.name == RECOVERED)
    made = next((each.data["offsets"] for each in steps if each.data["query_id"] == query_id), None)
    return None if made is None else {int(key): end for key, end in made[spec.source.topic].items()}


def _by_batch(world: World, spec: StreamSpec, checkpoint: Checkpoint, query_id: str | None) -> Proof | str:
    """The newest batch that the sink has, and what the checkpoint says that it read; else why nobody knows."""
    memory = None if query_id is None else _memory(world, spec, query_id, checkpoint.committed)
    newest: int | None
    if memory is not None and memory.last is not None:
        newest, by = memory.last, f"in the history of {spec.dataset.table}"
    else:
        # Its history was compacted and expired, or the query writes by foreachBatch: then its own word counts.
        newest, by = checkpoint.committed, "committed by its checkpoint"
        begun = checkpoint.planned
        if begun is not None and begun != newest:
            return f"batch {begun} was begun, and neither its checkpoint nor the table says whether it landed"
    if newest is None:
        return "its checkpoint has no committed batch"
    problem = offsets_problem(checkpoint, newest)
    if problem:
        return f"batch {newest} is {by}, and what it read is not known: {problem}"
    topic = spec.source.topic
    sources = positions(checkpoint.readable_plan(newest))
    ends = next((each.topics[topic] for each in sources if each.topics and topic in each.topics), None)
    if ends is None:
        return f"batch {newest} of its checkpoint read no topic {topic}"
    version = None if memory is None else memory.version
    return Proof(dict(ends), newest, f"batch {newest} is {by}, its offsets are in the checkpoint", version)


def _memory(world: World, spec: StreamSpec, query_id: str, committed: int | None) -> SinkMemory:
    relation, after = world.relation(spec.dataset.name), NO_BATCH if committed is None else committed
    return remembered(world.spark(), relation.table, relation.format, query_id, world.streams(), after)


def _by_rows(world: World, spec: StreamSpec, checkpoint: Checkpoint, topic: TopicFacts) -> Proof | None:
    """By the newest offset of each partition that rows carry. Of one that no row is of, all is still to be read."""
    plans = (checkpoint.readable_plan(each) for each in checkpoint.offsets)
    several = any(plan is not None and len(plan.sources) > 1 for plan in plans)
    if spec.dataset.position is None or several:
        return None
    target = world.target(spec.dataset.name)
    version = target.facts().version
    found = spans(target.read(version, EVERYTHING), spec.dataset.position)
    if not found:
        return None
    begins = {each.partition: each.log_start for each in topic.partitions}
    ends = begins | {key: end for key, (_, end) in found.items() if key in begins}
    return Proof(ends, NO_BATCH, "no row carries a later offset", version)
