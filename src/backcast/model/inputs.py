"""Tables as inputs: which part of one the chunks need, and how long a pinned version stays."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from backcast.model.manifest import Survival
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.scope import Predicate, during
from backcast.model.table import TableFacts
from backcast.model.time import Interval


def input_predicate(spec: InputSpec, windows: Mapping[str, Interval]) -> Predicate:
    """The part of a table that the windows need; a partition column other than time is widened by a day for zone
    slack.
    """
    if not spec.windowed or not isinstance(spec.dataset, Dataset):
        return Predicate()
    dataset, needed = spec.dataset, tuple(windows.values())
    time_clauses = during((dataset.time,), needed).clauses
    if dataset.partition is None:
        return Predicate(clauses=time_clauses)
    slack = timedelta(
        days=1 if dataset.partition.unit is None or dataset.partition.unit.value in ("hour", "day") else 366
    )
    around = tuple(window.widened(slack, slack) for window in needed)
    return Predicate(clauses=time_clauses + during((dataset.partition,), around).clauses)


def survival(facts: TableFacts, now: datetime, needed: timedelta) -> Survival:
    """OK until the owner's expiry may remove the version; AT RISK when that is sooner than the run is likely to end."""
    if facts.version is None:
        return Survival.OK
    if facts.referenced:
        return Survival.OK
    if facts.survives_until is None:
        return Survival.UNKNOWN
    return Survival.OK if facts.survives_until > now + needed else Survival.AT_RISK
