"""A new checkpoint out of another: a new query id, at a batch or at given offsets."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from uuid import uuid4

from backcast.errors import Refused
from backcast.model.checkpoint import Change
from backcast.model.checkpoint_log import SourceOffset
from backcast.streams.checkpoint.change import Checks, positions_after, proven, run_again
from backcast.streams.checkpoint.copying import copy_files, forget_listed_files, refuse_existing, up_to, write_id
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.look import position, starts_of


def fork_at_batch(source: Checkpoint, to: Path, batch: int, checks: Checks) -> Change:
    """A new query that goes on after that batch, with its state."""
    query_id = str(uuid4())
    prediction = checks.predict(query_id, batch + 1, run_again(source, batch))
    with _making(to) as making:
        removed = copy_files(source, making, up_to(batch), vanishing=True)
        notes = forget_listed_files(making, batch)
        write_id(making, query_id)
        loaded = proven(Checkpoint(making, checks.told), batch, checks)
    return Change(
        action="fork",
        path=str(to),
        query_id=query_id,
        batch=batch,
        sources=positions_after(Checkpoint(to), batch),
        proven=loaded,
        removed=removed,
        sink=prediction,
        notes=notes,
    )


def fork_at_offsets(source: Checkpoint, to: Path, starts: Mapping[str, str], checks: Checks) -> Change:
    """A new query that begins at these offsets, with fresh state: batch 0 comes first.

    `starts` has what Spark writes, for each source. Spark takes it for the place where the source began.
    """
    query_id = str(uuid4())
    left_out = partial(_left_out, source, starts)
    prediction = checks.predict(query_id, 0, _repeated(source, starts), left_out)
    skipped = left_out(None if prediction is None else prediction.last_epoch)
    with _making(to) as making:
        write_fresh(making, query_id, starts)
    return Change(
        action="fork",
        path=str(to),
        query_id=query_id,
        batch=None,
        sources=tuple(position(SourceOffset(name, 2, text)) for name, text in starts.items()),
        sink=prediction,
        notes=(
            "it begins with batch 0 and fresh state; settings come from the session that starts it",
            *((f"offsets {skipped} are read by neither query",) if skipped else ()),
        ),
    )


def write_fresh(folder: Path, query_id: str, starts: Mapping[str, str]) -> None:
    """A checkpoint without a batch, whose sources begin at these offsets."""
    folder.mkdir(parents=True)
    write_id(folder, query_id)
    for name, text in starts.items():
        file = folder / "sources" / name / "0"
        file.parent.mkdir(parents=True)
        # Spark 2.1 wrote a zero there, and later ones still expect it.
        file.write_bytes(b"\0v1\n" + text.encode())


def starts_after(source: Checkpoint, batch: int) -> dict[str, str]:
    """Where each source of the query stood after a batch. Raises Refused for sources that are no topics."""
    plan = source.readable_plan(batch)
    if plan is None or any(each.kafka is None for each in plan.sources):
        raise Refused(
            "only sources that are Kafka topics can begin at an offset",
            hint="fork it with its state: leave --fresh-state out",
        )
    return {each.name: each.text for each in plan.sources}


def refuse_inexact(source: Checkpoint, batch: int, starts: Mapping[str, str]) -> None:
    """State belongs to the end of a batch. Raises Refused when the offsets are not those."""
    ends = starts_after(source, batch)
    wanted = {name: SourceOffset(name, 2, text).kafka for name, text in starts.items()}
    if wanted != {name: SourceOffset(name, 2, ends[name]).kafka for name in starts}:
        raise Refused(
            f"no batch ends at exactly these offsets, so no state belongs to them; batch {batch} ends before",
            hint=f"--at-batch {batch}, or --fresh-state to begin there with none",
        )


def _repeated(source: Checkpoint, starts: Mapping[str, str]) -> int:
    """How many committed batches of the other query end behind these offsets."""
    wanted = {name: SourceOffset(name, 2, text).kafka or {} for name, text in starts.items()}
    again = 0
    for number in source.commits:
        plan = source.readable_plan(number)
        ends = () if plan is None else plan.sources
        again += any(
            end > wanted.get(each.name, {}).get(topic, {}).get(partition, end)
            for each in ends
            for topic, offsets in (each.kafka or {}).items()
            for partition, end in offsets.items()
        )
    return again


def _left_out(source: Checkpoint, starts: Mapping[str, str], landed: int | None) -> str:
    """Offsets before these that the other query has not read, in words; empty also where nobody knows how far it is.

    `landed`: its newest batch that the table has, which its checkpoint may not know to be over.
    """
    newest = max((each for each in (source.committed, landed) if each is not None), default=None)
    plan = source.readable_plan(newest)
    ends = starts_of(source) if newest is None else () if plan is None else plan.sources
    reached = {each.name: each.kafka or {} for each in ends}
    found = [
        f"{partition}={reached[name][topic].get(partition, 0)}..{start} of {topic}"
        for name, text in starts.items()
        for topic, offsets in (SourceOffset(name, 2, text).kafka or {}).items()
        if topic in reached.get(name, {})
        for partition, start in sorted(offsets.items())
        if reached[name][topic].get(partition, 0) < start
    ]
    return ", ".join(found)


@contextmanager
def _making(to: Path) -> Iterator[Path]:
    """A folder that gets its name when all went well."""
    refuse_existing(to)
    making = to.parent / f".{to.name}.backcast-building"
    shutil.rmtree(making, ignore_errors=True)
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield making
        making.rename(to)
    finally:
        shutil.rmtree(making, ignore_errors=True)
