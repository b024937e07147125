"""The verb that looks at the table of a stream before the stream is brought back, and after rows were added to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from backcast.model.integrity import Integrity, findings_of
from backcast.model.request import Kind, Request
from backcast.model.scope import EVERYTHING
from backcast.model.stream import StreamWrite
from backcast.model.time import Interval, first_instant, floor_wall, local, next_wall
from backcast.spark.by_time import last_time
from backcast.spark.gateway import jvm_errors
from backcast.spark.holes import beyond
from backcast.verbs.checking import health_of
from backcast.verbs.counting import counted
from backcast.verbs.gap_finding import GapFinder
from backcast.verbs.hole_finding import asked_topic
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.pipeline import Dataset
    from backcast.model.recovery import Recovery
    from backcast.model.report import Plan
    from backcast.world import World

_LOOK_BACK = timedelta(days=31)
"""A damaged checkpoint does its damage to the newest rows; a look at all of a table may take hours."""


class IntegrityVerbs(Verbs, ABC):
    @abstractmethod
    def plan(self, request: Request, *, record: bool = True) -> Plan: ...

    @jvm_errors("looking at the table of the stream")
    def stream_integrity(self, name: str, found: Recovery) -> Integrity:
        """Doubled keys, nulls in them, missing times and offsets in the newest month of rows, and rows of records that
        the stream has not read by what was found. Changes nothing.

        The rows are counted once for both looks; a table of years costs no more than one of a month.
        """
        world, spec = self.world, self.world.stream(name)
        dataset = spec.dataset
        topic = asked_topic(world, dataset, spec.pipeline.name)
        rows = counted(world, dataset, _newest(world, dataset), hours=True)
        health = health_of(world, dataset, None, rows)
        asked = Request(pipeline=spec.pipeline.name, kind=Kind.BACKFILL)
        finder = GapFinder(world, dataset, dataset.calendar, partial(self.plan, record=False), asked)
        gaps = finder.find_in(rows, topic)
        ahead = () if dataset.position is None else beyond(rows.everything, dataset.position, found.starting)
        told = findings_of(
            health,
            gaps,
            ahead,
            appends=spec.write is StreamWrite.APPEND,
            archived=found.archived and (found.by_offset or found.by_window),
            windows=f"backcast late {name} --plan" if found.by_window else "",
            owed=found.lacking,
        )
        return Integrity(health=health, gaps=gaps, ahead=ahead, findings=told)


def _newest(world: World, dataset: Dataset) -> Interval | None:
    """Where the newest rows lie; None where nothing says what is newest."""
    target, zone = world.target(dataset.name), dataset.time.zone
    rows = target.read(target.facts().version, EVERYTHING)
    last = last_time(rows, dataset.time, local(world.clock.now(), zone))
    if last is None:
        return None
    start, piece = floor_wall(last - _LOOK_BACK, dataset.grain), floor_wall(last, dataset.grain)
    return Interval(start=first_instant(start, zone), end=first_instant(next_wall(piece, dataset.grain), zone))
