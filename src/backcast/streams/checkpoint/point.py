"""The batch that somebody means: by its number, by event time, or by offsets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from backcast.errors import InvalidRequest, Refused
from backcast.model.checkpoint import instant
from backcast.model.checkpoint_log import Garbled
from backcast.streams.checkpoint.content import fits_checksum
from backcast.streams.checkpoint.damage import is_whole
from backcast.streams.checkpoint.damage_state import StateDamages
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.lost_state import STATE_UNKNOWN
from backcast.streams.checkpoint.out_of_step import step_back


@dataclass(frozen=True, slots=True)
class Point:
    """Where a stream is to go on: after a batch. Exactly one of the three says which."""

    batch: int | None = None
    before: datetime | None = None
    """The newest batch after which the watermark, and the delay that is added to it, lie at or before this moment."""
    delay: timedelta = timedelta()
    offsets: Mapping[int, int] | None = None
    """The newest batch that ends at or before the offset of each of these partitions."""


def find_batch(checkpoint: Checkpoint, point: Point) -> int:
    """A committed batch whose logs and state are whole. Raises InvalidRequest, and Refused when it is not whole."""
    given = [each for each in (point.batch, point.before, point.offsets) if each is not None]
    if len(given) != 1:
        raise InvalidRequest(
            "where is it to go back to?", hint="give one of --to-batch N, --before TIME and --offset 0=123"
        )
    if not checkpoint.commits:
        raise Refused(f"{checkpoint.root} has no committed batch to go back to", hint="fork it at offsets instead")
    if point.batch is not None:
        found = point.batch
        if found not in checkpoint.commits or found not in checkpoint.offsets:
            first, last = checkpoint.commits[0], checkpoint.commits[-1]
            raise InvalidRequest(f"there is no batch {found} to go back to", hint=f"it has {first} to {last}")
    elif point.before is not None:
        found = _before(checkpoint, point.before, point.delay)
    else:
        found = _at_offsets(checkpoint, point.offsets or {})
    _refuse_broken(checkpoint, found)
    return found


def _refuse_broken(checkpoint: Checkpoint, batch: int) -> None:
    state = StateDamages(checkpoint)
    if is_whole(checkpoint, batch, state):
        return
    first = next(iter(state.problems(batch + 1)), None)
    why = _log_problem(checkpoint, batch) or ("" if first is None else f"{first.file}: {first.what}")
    if first is not None and first.kind == STATE_UNKNOWN:
        raise Refused(f"nobody can tell whether the stream can go on after batch {batch}: {why}", hint=first.remedy)
    earlier = next(
        (each for each in reversed(checkpoint.commits) if each < batch and is_whole(checkpoint, each, state)), None
    )
    hint = "fork it at offsets instead" if earlier is None else f"batch {earlier} is whole: --to-batch {earlier}"
    raise Refused(f"the stream cannot go on after batch {batch}: {why}", hint=hint)


def _log_problem(checkpoint: Checkpoint, batch: int) -> str:
    """What is wrong with the logs of the batch; empty when nothing is."""
    return offsets_problem(checkpoint, batch) or _file_problem(checkpoint, "commits", batch, checkpoint.commit)


def offsets_problem(checkpoint: Checkpoint, batch: int) -> str:
    """Why the offsets of the batch cannot be relied on; empty when they can."""
    problem = _file_problem(checkpoint, "offsets", batch, checkpoint.plan)
    what = "" if problem else step_back(checkpoint, batch)
    return problem or (f"offsets/{batch}: {what} of batch {batch - 1}" if what else "")


def _file_problem(checkpoint: Checkpoint, name: str, batch: int, read: Callable[[int], object]) -> str:
    try:
        there = read(batch)
    except Garbled as error:
        return f"{name}/{batch}: {error}"
    if there is None:
        return f"{name}/{batch}: it is not there"
    fits = fits_checksum(checkpoint.root / name / str(batch))
    return f"{name}/{batch}: it does not fit the checksum beside it" if fits is False else ""


def _before(checkpoint: Checkpoint, moment: datetime, delay: timedelta) -> int:
    """By the watermark that the batch left behind: everything that it and those before it read is older than that
    and the delay together.
    """
    reached = {
        number: _left_behind(checkpoint, number) for number in checkpoint.commits if number in checkpoint.offsets
    }
    known = {number: found for number, found in reached.items() if found is not None}
    if not known:
        hint = "find the offsets of that moment, then --offset: backcast kafka offsets TOPIC --at TIME"
        raise Refused(f"{checkpoint.root}: the query has no watermark to go by", hint=hint)
    # Batches before the first watermark read nothing that has an event time.
    fitting = [number for number in reached if number not in known and number < min(known)]
    fitting += [number for number, found in known.items() if found + delay <= moment]
    if not fitting:
        first = min(known)
        raise Refused(
            f"the oldest batch that is kept, {first}, left the watermark at {known[first]:%Y-%m-%d %H:%M:%S} UTC, "
            "later than that",
            hint="restore an older backup, or fork it at offsets with fresh state",
        )
    return max(fitting)


def _left_behind(checkpoint: Checkpoint, number: int) -> datetime | None:
    after = checkpoint.readable_plan(number + 1)
    if after is not None:
        return instant(after.watermark_ms)
    commit = checkpoint.readable_commit(number)
    return None if commit is None else instant(commit.watermark_ms)


def _at_offsets(checkpoint: Checkpoint, wanted: Mapping[int, int]) -> int:
    for number in reversed(checkpoint.commits):
        plan = checkpoint.readable_plan(number)
        if plan is None:
            continue
        ends: dict[int, int] = {}
        for source in plan.sources:
            for offsets in (source.kafka or {}).values():
                ends.update({each: min(end, ends.get(each, end)) for each, end in offsets.items()})
        unknown = sorted(set(wanted) - set(ends))
        if not ends:
            raise Refused(f"{checkpoint.root}: the query reads no topic", hint="name a batch: --to-batch N")
        if unknown:
            raise InvalidRequest(f"the query reads no partition {unknown[0]}", hint=f"it reads {sorted(ends)}")
        if all(ends[each] <= offset for each, offset in wanted.items()):
            return number
    first = checkpoint.commits[0]
    raise Refused(
        f"the oldest batch that is kept, {first}, ends behind these offsets", hint="fork it at the offsets instead"
    )
