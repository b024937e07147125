"""Where a replay starts: the newest batch of a live query that lies before a moment, and a checkpoint made of it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from uuid import uuid4

from backcast.errors import Drifted, InvalidRequest, Refused
from backcast.streams.checkpoint.copying import copy_files, up_to, write_id
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.point import Point, find_batch

_VOID = "-"
_HEAD = 2
"""Lines of an offset log before those of its sources: version and metadata."""


@dataclass(frozen=True, slots=True)
class Start:
    """A committed batch of the live query: all that was read up to it happened before the moment that was asked for."""

    query_id: str
    batch: int
    positions: dict[int, int]


def start_before(folder: str, topic: str, moment: datetime, delay: timedelta) -> Start | None:
    """The newest such batch; None when the checkpoint has none, or none that is whole."""
    checkpoint = Checkpoint.at(folder)
    try:
        batch = find_batch(checkpoint, Point(before=moment, delay=delay))
    except Refused:
        return None
    plan = checkpoint.plan(batch)
    found = [] if plan is None else [each.kafka[topic] for each in plan.sources if each.kafka and topic in each.kafka]
    if not found or any(each != found[0] for each in found):
        raise InvalidRequest(
            f"{folder}: the query does not read topic {topic!r} up to one position",
            hint="is it another query's folder?",
        )
    return Start(checkpoint.query_id() or "", batch, dict(found[0]))


def begin(folder: str, batch: int, into: Path, *, files: bool = False) -> None:
    """The checkpoint as it was after that batch, for a query of another name in which a source of sentinels follows
    each topic; with `files`, a folder of records takes the topic's place. Raises Drifted when the live query has
    removed meanwhile what that takes.
    """
    source = Checkpoint.at(folder)
    copy_files(source, into, up_to(batch), vanishing=True)
    copy = Checkpoint(into)
    if batch not in copy.offsets or batch not in copy.commits:
        hint = "plan again"
        raise Drifted(f"batch {batch} of {folder} is gone: a query keeps its newest batches only", hint=hint)
    for number in copy.offsets:
        file = into / "offsets" / str(number)
        lines = file.read_text(encoding="utf-8").split("\n")
        sources = [each for line in lines[_HEAD:] for each in (_VOID if files else line, _VOID)]
        file.write_text("\n".join([*lines[:_HEAD], *sources]), encoding="utf-8")
        (file.parent / f".{number}.crc").unlink(missing_ok=True)
    # Where its topic began is of no use, and the numbers of sources are others here.
    shutil.rmtree(into / "sources", ignore_errors=True)
    write_id(into, str(uuid4()))
