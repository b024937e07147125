"""Offsets of a batch that do not follow from those of the batch before: readable, and still not what Spark wrote."""

from __future__ import annotations

from collections.abc import Iterator

from backcast.model.checkpoint import Damage, Severity
from backcast.model.checkpoint_log import Planned, Position
from backcast.streams.checkpoint.folder import Checkpoint

_AGAIN = "it begins there: records are read again, or left out, without a word; of a topic that is not there it fails"


def out_of_step(checkpoint: Checkpoint) -> Iterator[Damage]:
    """Positions that go back, partitions and topics that are gone from one batch to the next."""
    for number in checkpoint.offsets:
        what = step_back(checkpoint, number)
        if not what:
            continue
        needed = number == checkpoint.planned
        yield Damage(
            kind="offsets-out-of-step",
            file=f"offsets/{number}",
            severity=Severity.SILENT if needed else Severity.HARMLESS,
            what=f"{what} of batch {number - 1}: Spark never writes that",
            at_restart=_AGAIN if needed else "nothing reads it; the checkpoint cannot go back to that batch",
            remedy="compare both with a backup; go back to a batch that is whole" if needed else "",
        )


def step_back(checkpoint: Checkpoint, number: int) -> str:
    """How the offsets of a batch contradict those of the one before; empty when they do not."""
    before, plan = checkpoint.readable_plan(number - 1), checkpoint.readable_plan(number)
    if before is None or plan is None:
        return ""
    return next((found for one, other in _sources(before, plan) if (found := _contradiction(one, other))), "")


def _sources(before: Planned, plan: Planned) -> Iterator[tuple[Position, Position]]:
    earlier = {each.name: each.kafka for each in before.sources}
    for each in plan.sources:
        one, other = earlier.get(each.name), each.kafka
        if one is not None and other is not None:
            yield one, other


def _contradiction(before: Position, after: Position) -> str:
    for topic, offsets in before.items():
        if topic not in after:
            return f"it has no offsets of topic {topic}, unlike those"
        for partition, offset in offsets.items():
            reached = after[topic].get(partition)
            if reached is None:
                return f"it has no offset of partition {partition} of {topic}, unlike those"
            if reached < offset:
                return f"partition {partition} of {topic} goes back to {reached} from the {offset}"
    return ""
