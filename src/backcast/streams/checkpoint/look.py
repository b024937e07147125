"""A checkpoint at a glance."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from backcast.model.checkpoint import Inspection, SourcePosition, StateVersions, instant
from backcast.model.checkpoint_log import Garbled, Planned, SourceOffset
from backcast.streams.checkpoint.damage import damages_of
from backcast.streams.checkpoint.folder import Checkpoint, start_of
from backcast.streams.checkpoint.state_files import Operator


def inspect(checkpoint: Checkpoint, stream: str | None = None) -> Inspection:
    """What the files say. Never fails on damage: what cannot be read is left out, and counted."""
    planned = checkpoint.readable_plan(checkpoint.planned)
    committed = checkpoint.readable_commit(checkpoint.committed)
    return Inspection(
        path=str(checkpoint.root),
        stream=stream,
        query_id=checkpoint.readable_id(),
        planned=checkpoint.planned,
        committed=checkpoint.committed,
        next_batch=checkpoint.next_batch,
        repeats=checkpoint.planned is not None and checkpoint.next_batch == checkpoint.planned,
        sources=begins_at(checkpoint),
        watermark=watermark_of(checkpoint),
        operators=tuple(_versions(checkpoint, each) for each in checkpoint.operators),
        settings={} if planned is None else dict(planned.conf),
        formats={
            name: found.version for name, found in (("offsets", planned), ("commits", committed)) if found is not None
        },
        last_written=last_written(checkpoint),
        unreadable=_unreadable(checkpoint),
        damages=sum(each.severity != "harmless" for each in damages_of(checkpoint)),
    )


def _unreadable(checkpoint: Checkpoint) -> tuple[str, ...]:
    """Files that would tell where the stream stands, and why they do not."""
    batches = {each for each in (checkpoint.next_batch - 1, checkpoint.planned) if each is not None and each >= 0}
    looks: list[tuple[str, Callable[[], object]]] = [
        (f"offsets/{each}", partial(checkpoint.plan, each)) for each in sorted(batches)
    ]
    if checkpoint.committed is not None:
        looks.append((f"commits/{checkpoint.committed}", partial(checkpoint.commit, checkpoint.committed)))
    found = []
    for file, read in looks:
        try:
            if read() is None:
                found.append(f"{file}: it is not there")
        except Garbled as error:
            found.append(f"{file}: {error}")
    return tuple(found)


def begins_at(checkpoint: Checkpoint) -> tuple[SourcePosition, ...]:
    """Where the first batch after a restart begins: at the end of the one before, or where each topic began."""
    if checkpoint.next_batch:
        return positions(checkpoint.readable_plan(checkpoint.next_batch - 1))
    return tuple(map(position, starts_of(checkpoint)))


def position_of(checkpoint: Checkpoint, topic: str) -> dict[int, int] | None:
    """The next offset of each partition of a topic; None when the checkpoint does not tell."""
    found = [each.topics[topic] for each in begins_at(checkpoint) if each.topics and topic in each.topics]
    return found[0] if found else None


def positions(plan: Planned | None) -> tuple[SourcePosition, ...]:
    return () if plan is None else tuple(map(position, plan.sources))


def position(source: SourceOffset) -> SourcePosition:
    """By topic and partition where it is a topic; else as Spark wrote it."""
    if source.kafka is None:
        return SourcePosition(source=source.name, text=source.text)
    topics = {topic: dict(offsets) for topic, offsets in source.kafka.items()}
    return SourcePosition(source=source.name, topics=topics)


def starts_of(checkpoint: Checkpoint) -> tuple[SourceOffset, ...]:
    """Where each topic was begun with, by `sources`; a log of files there is none."""
    files = sorted((checkpoint.root / "sources").glob("[0-9]*/0"))
    found = (SourceOffset(each.parent.name, 2, start_of(each)) for each in files if each.is_file())
    return tuple(each for each in found if each.kafka is not None)


def watermark_of(checkpoint: Checkpoint) -> datetime | None:
    """What the next batch goes by."""
    if checkpoint.planned is not None and checkpoint.next_batch == checkpoint.planned:
        plan = checkpoint.readable_plan(checkpoint.planned)
        return None if plan is None else instant(plan.watermark_ms)
    commit = checkpoint.readable_commit(checkpoint.committed)
    return None if commit is None else instant(commit.watermark_ms)


def last_written(checkpoint: Checkpoint) -> datetime | None:
    """When the newest file changed."""
    times = [moment for each in checkpoint.files() if (moment := _changed(checkpoint, str(each))) is not None]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def _changed(checkpoint: Checkpoint, file: str) -> float | None:
    try:
        return (checkpoint.root / file).stat().st_mtime
    except OSError:
        # A stream that runs has removed it meanwhile.
        return None


def _versions(checkpoint: Checkpoint, operator: Operator) -> StateVersions:
    versions = sorted({each.version for store in operator.stores for each in store.files})
    loading = [number for number in versions if all(store.loads(number) for store in operator.stores)]
    return StateVersions(
        operator=operator.number,
        name=operator.name,
        kind=operator.kind,
        partitions=len({each.partition for each in operator.stores}),
        stores=tuple(sorted({each.name for each in operator.stores})),
        first=loading[0] if loading else None,
        last=loading[-1] if loading else None,
    )
