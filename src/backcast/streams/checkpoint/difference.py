"""Two checkpoints side by side: where they part, and how far each has come."""

from __future__ import annotations

from backcast.model.checkpoint import BatchDifference, CheckpointDifference
from backcast.model.checkpoint_log import Planned
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.look import inspect


def difference(left: Checkpoint, right: Checkpoint) -> CheckpointDifference:
    numbers = sorted({*left.offsets, *left.commits, *right.offsets, *right.commits})
    told = {number: _batch(left, right, number) for number in numbers}
    alike = [number for number, what in told.items() if not what and number in left.offsets and number in right.offsets]
    one, other = inspect(left), inspect(right)
    return CheckpointDifference(
        left=str(left.root),
        right=str(right.root),
        same_query=one.query_id is not None and one.query_id == other.query_id,
        left_id=one.query_id,
        right_id=other.query_id,
        parted_after=max(alike, default=None),
        batches=tuple(BatchDifference(number=number, what=what) for number, what in told.items() if what),
        positions=tuple(_positions(left.readable_plan(left.planned), right.readable_plan(right.planned))),
        settings=tuple(
            f"{key}: {one.settings.get(key, 'not set')} | {other.settings.get(key, 'not set')}"
            for key in sorted({*one.settings, *other.settings})
            if one.settings.get(key) != other.settings.get(key)
        ),
        state=tuple(_state(left, right)),
    )


def _batch(left: Checkpoint, right: Checkpoint, number: int) -> str:
    """In a few words; empty when both tell the same."""
    for name, one, other in (("planned", left.offsets, right.offsets), ("committed", left.commits, right.commits)):
        if (number in one) != (number in other):
            return f"{name} only on the {'left' if number in one else 'right'}"
    plans = left.readable_plan(number), right.readable_plan(number)
    if plans[0] is None or plans[1] is None:
        return "" if plans[0] is plans[1] else "it can be read on one side only"
    if plans[0].ends != plans[1].ends:
        return "other offsets"
    if plans[0].time_ms != plans[1].time_ms:
        return "run at another time"
    return "another watermark" if plans[0].watermark_ms != plans[1].watermark_ms else ""


def _positions(left: Planned | None, right: Planned | None) -> list[str]:
    ends = [_ends(each) for each in (left, right)]
    return [
        f"{topic} {partition}: {ends[0].get((topic, partition), '-')} | {ends[1].get((topic, partition), '-')}"
        for topic, partition in sorted({*ends[0], *ends[1]})
        if ends[0].get((topic, partition)) != ends[1].get((topic, partition))
    ]


def _ends(plan: Planned | None) -> dict[tuple[str, int], int]:
    return {
        (topic, partition): offset
        for source in (() if plan is None else plan.sources)
        for topic, offsets in (source.kafka or {}).items()
        for partition, offset in offsets.items()
    }


def _state(left: Checkpoint, right: Checkpoint) -> list[str]:
    sides = [{each.operator: each for each in inspect(side).operators} for side in (left, right)]
    found = []
    for number in sorted({*sides[0], *sides[1]}):
        versions = [f"{side[number].first} to {side[number].last}" if number in side else "none" for side in sides]
        if versions[0] != versions[1]:
            found.append(f"operator {number}: versions {versions[0]} | {versions[1]}")
    return found
