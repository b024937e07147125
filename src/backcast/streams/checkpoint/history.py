"""A checkpoint batch by batch."""

from __future__ import annotations

from backcast.model.checkpoint import Batch, History, instant
from backcast.model.checkpoint_log import Committed, Garbled, Planned, SourceOffset
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.look import positions, starts_of


def history(checkpoint: Checkpoint, last: int | None = None) -> History:
    """Every batch that has a file left, oldest first; the newest so many when that is given."""
    numbers = sorted({*checkpoint.offsets, *checkpoint.commits})
    shown = numbers if last is None else numbers[-last:] if last > 0 else []
    return History(path=str(checkpoint.root), batches=tuple(_batch(checkpoint, number) for number in shown))


def _batch(checkpoint: Checkpoint, number: int) -> Batch:
    problem = ""
    plan: Planned | None = None
    commit: Committed | None = None
    try:
        plan = checkpoint.plan(number)
    except Garbled as error:
        problem = f"offsets/{number}, line {error.line}: {error}"
    try:
        commit = checkpoint.commit(number)
    except Garbled as error:
        problem = problem or f"commits/{number}, line {error.line}: {error}"
    return Batch(
        number=number,
        planned=number in checkpoint.offsets,
        committed=number in checkpoint.commits,
        at=None if plan is None else instant(plan.time_ms),
        watermark=None if plan is None else instant(plan.watermark_ms),
        next_watermark=None if commit is None else instant(commit.watermark_ms),
        records=_records(_before(checkpoint, number), plan),
        sources=positions(plan),
        problem=problem,
    )


def _before(checkpoint: Checkpoint, number: int) -> tuple[SourceOffset, ...]:
    """Where the batch begins: at the end of the one before, and the first where each topic was begun with."""
    if number:
        plan = checkpoint.readable_plan(number - 1)
        return () if plan is None else plan.sources
    return starts_of(checkpoint)


def _records(before: tuple[SourceOffset, ...], plan: Planned | None) -> int | None:
    """Offsets that the batch went through. A partition that is new in it begins at 0, as Spark has it."""
    if plan is None:
        return None
    earlier = {each.name: each.kafka for each in before}
    total = 0
    for each in plan.sources:
        there, here = earlier.get(each.name), each.kafka
        if there is None or here is None:
            return None
        for topic, offsets in here.items():
            known = there.get(topic, {})
            total += sum(offset - known.get(partition, 0) for partition, offset in offsets.items())
    return total
