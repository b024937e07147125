"""Which offsets of its topic a dataset lacks: by its rows, by what streams and runs have read, and by the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.appending import landed_runs
from backcast.beside import position_by_table
from backcast.errors import BackcastError, Unavailable, UnknownName
from backcast.model.gaps import Fate, Hole, joined_holes
from backcast.model.reach import Reach, begins_of, read_by
from backcast.model.source import LogSource
from backcast.spark.holes import holes, spans
from backcast.streams.checkpoint.folder import Checkpoint, local_folder
from backcast.streams.checkpoint.look import position_of

if TYPE_CHECKING:
    from backcast.model.log import Ranges, TopicFacts
    from backcast.model.pipeline import Dataset
    from backcast.model.stream import StreamSpec
    from backcast.verbs.counting import Counted
    from backcast.world import World

MOST_HOLES = 200
_NOBODY = "no pipeline that reads one topic fills the dataset"
_WINDOW = "what is missing elsewhere may be of other times than the window"


@dataclass(frozen=True, slots=True)
class AskedTopic:
    """What is known about the topic of a dataset whose rows carry positions. To be asked before the rows are read: what
    a stream adds in between must not look like a hole.
    """

    source: LogSource | None = None
    reach: Reach | None = None
    unanswered: str = ""
    """Why brokers did not say."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundHoles:
    holes: tuple[Hole, ...] = ()
    pending: Ranges = ()
    between_rows: str = ""
    """Why nothing but holes between two rows was looked for; empty when more was."""


def asked_topic(world: World, dataset: Dataset, pipeline: str) -> AskedTopic:
    """`pipeline` may be empty."""
    inputs = [each.dataset for each in world.pipeline(pipeline).inputs] if pipeline else []
    logs = [each for each in inputs if isinstance(each, LogSource)]
    if dataset.position is None or len(logs) != 1:
        return AskedTopic()
    source = logs[0]
    try:
        facts = world.topic(source)
    except (Unavailable, UnknownName) as error:
        return AskedTopic(source, unanswered=str(error))
    log = {each.partition: each for each in facts.partitions}
    pins = [pin.log for _, manifest in landed_runs(world.reader(), dataset.table) for pin in manifest.inputs]
    begins, ends, scanned = read_by(each for each in pins if each is not None and each.topic_id == facts.topic_id)
    starts, notes = [], []
    for each in (one for one in map(world.stream, world.streams()) if _fills(one, dataset, source)):
        try:
            position = _position(world, each, facts)
        except BackcastError as error:
            notes.append(f"up to where stream {each.name} has read is not known: {error}")
            position = {}
        else:
            if not position:
                # It may never be started, and then nothing would ever be missing.
                continue
        starts.append(begins_of(each.starting, source.topic, log))
        ends = _later(ends, position)
    streamed = bool(starts)
    starts = starts or [{number: each.log_start for number, each in log.items()}]
    begins = {key: min(one[key] for one in (begins, *starts) if key in one) for key in {*begins}.union(*starts)}
    return AskedTopic(source, Reach(log, begins, ends, scanned, streamed=streamed), notes=tuple(notes))


def found_holes(
    world: World, dataset: Dataset, topic: AskedTopic, found: Counted, *, to_end: bool = False
) -> FoundHoles:
    """Of rows of a window only what lies between them is looked for, in the whole table; with `to_end` also behind."""
    if dataset.position is None:
        return FoundHoles()
    marks = () if topic.reach is None else topic.reach.marks()
    within: dict[int, tuple[int, int | None]] | None = None
    if found.window is not None:
        inside = spans(found.rows, dataset.position)
        within = {key: (start, None if to_end else end) for key, (start, end) in inside.items()}
        marks = tuple(each for each in marks if to_end and each[0] in inside and each[1] >= inside[each[0]][0])
    missing = holes(found.everything, dataset.position, MOST_HOLES, marks, within)
    pending = [each for each, carried in missing if topic.reach and topic.reach.is_pending(each, carried=carried)]
    between = topic.unanswered or (_NOBODY if topic.source is None else "" if within is None or to_end else _WINDOW)
    told = _fates(world, topic, tuple(each for each, _ in missing if each not in pending))
    return FoundHoles(told, tuple(pending), between)


def _fates(world: World, topic: AskedTopic, ranges: Ranges) -> tuple[Hole, ...]:
    if topic.source is None or topic.unanswered or not ranges:
        return tuple(Hole(range=each, fate=Fate.UNKNOWN) for each in ranges)
    fates = {True: Fate.THERE, False: Fate.EMPTY, None: Fate.GONE}
    there = world.records_in(topic.source, ranges)
    return joined_holes(Hole(range=each, fate=fates[one]) for each, one in zip(ranges, there, strict=True))


def _fills(stream: StreamSpec, dataset: Dataset, source: LogSource) -> bool:
    return (stream.dataset.table, stream.source.topic) == (dataset.table, source.topic)


def _position(world: World, stream: StreamSpec, facts: TopicFacts) -> Mapping[int, int]:
    """Nothing for one that has never read this topic. Of a stream that somebody else runs, its checkpoint tells."""
    if stream.external:
        return position_of(Checkpoint(local_folder(stream.checkpoint)), facts.topic) or {}
    live = world.stream_reader().stream(stream.name)
    if live is None or live.topic_id != facts.topic_id:
        return {}
    return position_by_table(world, stream) or {}


def _later(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    return {key: max(each[key] for each in (one, other) if key in each) for key in {*one, *other}}
