"""Rows of a dataset by piece of time, counted once for whoever looks for gaps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.scope import EVERYTHING, during
from backcast.model.time import Grain, Interval, floor_wall, parse_instant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.pipeline import Dataset
    from backcast.world import World

Counts = dict[datetime, int]
"""Rows by the wall clock time at which their piece starts."""


@dataclass(frozen=True, slots=True)
class Counted:
    """A version of a dataset, or a window of it."""

    version: str | None
    rows: DataFrame
    everything: DataFrame
    """All rows of the version, in the window or not."""
    window: Interval | None
    counts: Counts
    without_time: int
    hours: Counts | None = None
    """None where the time column knows no hours, or nobody asked."""


def counted(world: World, dataset: Dataset, window: Interval | None, *, hours: bool = False) -> Counted:
    """As readers see it now; one Spark job."""
    target = world.target(dataset.name)
    version = target.facts().version
    rows = target.read(version, EVERYTHING if window is None else during(dataset.time_columns, (window,)))
    finer = hours and dataset.grain is not Grain.HOUR and dataset.time.unit in (None, Grain.HOUR)
    grain = Grain.HOUR if finer else dataset.grain
    found, nowhere = world.engine().counted_by_time(rows, dataset.time, grain)
    everything = rows if window is None else target.read(version, EVERYTHING)
    counts = coarse(found, dataset.grain)
    return Counted(version, rows, everything, window, counts, nowhere, found if finer else None)


def coarse(counts: Counts, grain: Grain) -> Counts:
    found: Counts = {}
    for wall, number in counts.items():
        piece = floor_wall(wall, grain)
        found[piece] = found.get(piece, 0) + number
    return found


def asked_window(dataset: Dataset, start: str | None, end: str | None) -> Interval | None:
    """None when none was asked for. Raises InvalidRequest for half of one, and for one that runs backwards."""
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise InvalidRequest("a window needs a start and an end", hint="the end is exclusive")
    first, last = parse_instant(start, dataset.time.zone), parse_instant(end, dataset.time.zone)
    if first >= last:
        raise InvalidRequest(f"the window runs backwards or is empty: {start} .. {end}", hint="the end is exclusive")
    return Interval(start=first, end=last)
