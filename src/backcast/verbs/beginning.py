"""Where a stream goes on, by its checkpoint, or begins: behind the bootstrap that filled its table. What is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.model.analysis import TAKEN_BY_KEY, Combines
from backcast.model.request import Kind
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.stream import StreamWrite
from backcast.status import hand_over

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backcast.model.live import LiveStream
    from backcast.model.log import TopicFacts
    from backcast.model.run import Run
    from backcast.model.stream import StreamSpec
    from backcast.model.topic_report import HandOver
    from backcast.ports.streams import Position
    from backcast.world import World

_ALL = 100_000
_EARLIEST = "earliest"
_LATEST_OF_PARTITION = -1
_NOTHING_THERE = (RunState.CANCELLING, RunState.CANCELLED, RunState.UNDONE)


def behind_bootstrap(
    world: World, spec: StreamSpec, where: Position, ends: dict[int, int], topic: TopicFacts
) -> HandOver | None:
    """Where a stream begins that has no checkpoint yet, in every partition that its topic has now; None when no
    bootstrap filled its table, and for a stream that goes on.

    Raises Refused when one is not published yet, when the stream would read again what one has read, or would leave
    out what it has not, when it keeps state, and when retention was faster.
    """
    runs = list(_bootstraps(world, spec, topic.topic_id))
    if not runs:
        return None
    filled = next((each for each in runs if each.state in VISIBLE_STATES), None)
    if filled is None and (ends or where.planned is not None):
        # It has begun without it, and a publish looks at what that has written.
        return None
    if filled is None:
        raise Refused(
            f"run {runs[0].run_id} is to fill {spec.dataset.table} and is {runs[0].state}: it could not be published"
            f" behind rows of stream {spec.name}",
            hint=f"backcast publish {runs[0].run_id} first, or backcast cancel {runs[0].run_id}",
        )
    found = hand_over(world.reader(), filled.run_id)
    # Of a partition that was added since the bootstrap has read nothing.
    offsets = {each.partition: found.offsets.get(each.partition, 0) for each in topic.partitions}
    if where.planned is not None or any(end > offsets.get(key, 0) for key, end in ends.items()):
        _refuse_double(spec, filled, offsets, where.ends or ends)
        return None
    _refuse_other_start(spec, filled, offsets)
    _refuse_without_state(spec, filled, world.live_query(spec).remembers())
    hint = f"backcast undo {filled.run_id}, and plan the bootstrap again from an archive that has them"
    refuse_forgotten(spec.name, offsets, topic, hint)
    return found.model_copy(update={"starting_offsets": {topic.topic: offsets}})


def _bootstraps(world: World, spec: StreamSpec, topic_id: str) -> Iterator[Run]:
    """Of this table from this topic, the newest first. A table or a topic that was made again is another one."""
    reader, table = world.reader(), world.target(spec.dataset.name).facts().identity.uuid
    for run in reader.runs(limit=_ALL):
        if run.kind != Kind.BOOTSTRAP or run.table != spec.dataset.table or run.state in _NOTHING_THERE:
            continue
        manifest = reader.manifest(run.run_id)
        logs = (pin.log for pin in manifest.inputs if pin.log is not None and pin.log.hand_over is not None)
        if manifest.target.identity.uuid == table and any(log.topic_id == topic_id for log in logs):
            yield run


def _refuse_double(spec: StreamSpec, run: Run, offsets: dict[int, int], position: Mapping[int, int]) -> None:
    """Of a stream that goes on. A merge takes once what it meets twice."""
    lies_before = any(position.get(key, 0) < offset for key, offset in offsets.items())
    if position and lies_before and spec.write is StreamWrite.APPEND:
        raise _other_start(spec, run, offsets, told_offsets(position))


def _refuse_other_start(spec: StreamSpec, run: Run, offsets: dict[int, int]) -> None:
    """What is declared must be where the run ended, if anything is."""
    asked = _literal(spec.starting, spec.source.topic)
    # What Spark calls the earliest offset of a partition is negative, too.
    exact = {key: value if value == _LATEST_OF_PARTITION else max(value, 0) for key, value in asked.items()}
    if spec.starting != _EARLIEST and exact != offsets:
        raise _other_start(spec, run, offsets, told_offsets(asked) if asked else spec.starting)


def _refuse_without_state(spec: StreamSpec, run: Run, remembers: Sequence[Combines]) -> None:
    """A bootstrap leaves rows and no state. A merge takes by key what it meets twice."""
    merges = spec.write is StreamWrite.MERGE
    does = [each for each in remembers if not (merges and each in TAKEN_BY_KEY)]
    if does:
        raise Refused(
            f"run {run.run_id} filled {spec.dataset.table}, and stream {spec.name} would begin behind it without state:"
            f" its transform makes a row of several records ({', '.join(does)}), and knows none of the run",
            hint=f"backcast undo {run.run_id}, and the stream begins at the earliest record and builds its state",
        )


def _other_start(spec: StreamSpec, run: Run, offsets: dict[int, int], begin: str) -> Refused:
    return Refused(
        f"run {run.run_id} filled {spec.dataset.table} up to {told_offsets(offsets)}, and stream {spec.name} would read"
        f" from {begin} on",
        hint="with a new checkpoint and without `starting` it begins behind the run by itself; if that is meant:"
        f" backcast stream start {spec.name} --accept-checkpoint",
    )


def starting_at(found: HandOver) -> str:
    """As a stream's `starting` says it."""
    return json.dumps({found.topic: {str(key): value for key, value in sorted(found.offsets.items())}})


def refuse_stranger(
    before: LiveStream | None,
    record: LiveStream,
    where: Position,
    ends: dict[int, int],
    *,
    accept: bool,
    spec: StreamSpec,
) -> None:
    """Raises Refused when checkpoint, topic and what is on record do not belong together."""
    name = record.name
    if where.topics and record.topic not in where.topics:
        raise Refused(
            f"the checkpoint {record.checkpoint} is of a query over {', '.join(where.topics)}, not {record.topic}",
            hint=f"name another folder as `checkpoint` of streams.{name}",
        )
    if accept:
        return
    accepting = f"if that is meant: backcast stream start {name} --accept-checkpoint"
    if before is not None and before.topic == record.topic and before.topic_id != record.topic_id:
        raise Refused(
            f"topic {record.topic} was deleted and made again since stream {name} ran: its offsets mean other records",
            hint=f"begin with a new checkpoint; {accepting}",
        )
    if before is None:
        if where.planned is not None and where.planned != where.committed:
            raise Refused(
                f"batch {where.planned} in {record.checkpoint} was begun by somebody else and is not over: whether its"
                f" rows are in {record.table} cannot be told",
                hint=f"let its own query finish the batch; {accepting}",
            )
        return
    if where.query_id == before.query_id or (before.query_id is None and before.checkpoint == record.checkpoint):
        # Without an id it died while its first batch waited for leave to begin.
        return
    position = where.ends or _literal(spec.starting, record.topic)
    if ends and position == ends:
        return
    found = "there is no checkpoint" if where.query_id is None else "the checkpoint is of another query"
    raise Refused(
        f"{found} in {record.checkpoint}: the table has stream {name} up to {told_offsets(ends)}, and the query would"
        f" go on at {told_offsets(position) if position else spec.starting}",
        hint=f"backcast stream recover {name} makes one at exactly that offset; {accepting}",
    )


def refuse_forgotten(name: str, ends: Mapping[int, int], topic: TopicFacts, hint: str) -> None:
    """Raises Refused when retention took what the stream would read next: Spark says so in the middle of a batch."""
    starts = {each.partition: each.log_start for each in topic.partitions}
    gone = [f"{key}={end}..{starts[key]}" for key, end in sorted(ends.items()) if end < starts.get(key, 0)]
    if gone:
        raise Refused(
            f"topic {topic.topic} no longer has offsets {', '.join(gone)}, which stream {name} has not read", hint=hint
        )


def _literal(starting: str, topic: str) -> dict[int, int]:
    """Offsets that a new query begins at, where they are written out."""
    try:
        return {int(key): int(value) for key, value in json.loads(starting)[topic].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def told_offsets(ends: Mapping[int, int]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(ends.items())) or "nothing"
