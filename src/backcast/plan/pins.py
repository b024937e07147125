"""Pin what a run reads and what it changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from backcast.model.manifest import InputPin, Survival, TargetPin
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.scope import Predicate, during
from backcast.model.table import FileList, TableFacts
from backcast.model.time import Interval
from backcast.ports import Source


def input_predicate(spec: InputSpec, windows: tuple[Interval, ...]) -> Predicate:
    """The part of the input that the windows need; a partition column other than time is widened by a day for zone
    slack.
    """
    if not spec.windowed or not isinstance(spec.dataset, Dataset):
        return Predicate()
    dataset = spec.dataset
    time_clauses = during((dataset.time,), windows).clauses
    if dataset.partition is None:
        return Predicate(clauses=time_clauses)
    slack = timedelta(
        days=1 if dataset.partition.unit is None or dataset.partition.unit.value in ("hour", "day") else 366
    )
    around = tuple(window.widened(slack, slack) for window in windows)
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


def pin_input(spec: InputSpec, source: Source, windows: tuple[Interval, ...], now: datetime) -> InputPin:
    """The newest version of the input now. Whether it survives is judged again once the run's length is estimated."""
    facts = source.facts()
    files = source.files(facts.version, input_predicate(spec, windows))
    return InputPin(
        name=spec.name,
        dataset=spec.dataset.name,
        identity=facts.identity,
        version=facts.version,
        windowed=spec.windowed,
        survival=survival(facts, now, timedelta()),
        survives_until=None if facts.referenced else facts.survives_until,
        files=len(files.files),
        rows=files.rows,
        bytes=files.size,
    )


def pin_inputs(
    specs: tuple[InputSpec, ...], source: Callable[[str], Source], windows: tuple[Interval, ...], now: datetime
) -> tuple[InputPin, ...]:
    """Every input at its newest version."""
    return tuple(pin_input(each, source(each.dataset.name), windows, now) for each in specs)


def pin_target(dataset: Dataset, facts: TableFacts, files: FileList) -> TargetPin:
    return TargetPin(
        dataset=dataset.name,
        identity=facts.identity,
        base=facts.version,
        files=len(files.files),
        rows=files.rows,
        bytes=files.size,
        files_digest=files.digest(),
    )


def at_risk(pin: InputPin, now: datetime, seconds: int) -> InputPin:
    """The pin with its survival judged against the estimated length of the run."""
    ends = now + timedelta(seconds=seconds)
    if pin.survival is Survival.OK and pin.survives_until is not None and pin.survives_until <= ends:
        return pin.model_copy(update={"survival": Survival.AT_RISK})
    return pin
