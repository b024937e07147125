"""Pin what a run reads and what it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from backcast.model.manifest import ChunkPlan, InputPin, Survival, TargetPin
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.table import FileList, TableFacts
from backcast.model.time import Interval
from backcast.ports import Input


def read_windows(chunks: Iterable[ChunkPlan], before: timedelta, after: timedelta) -> Mapping[str, Interval]:
    """What each chunk needs of its inputs: its own window and the warm-up."""
    return {chunk.id: chunk.window.widened(before, after) for chunk in chunks}


def pin_inputs(
    specs: tuple[InputSpec, ...],
    opened: Callable[[InputSpec], Input],
    windows: Mapping[str, Interval],
    now: datetime,
) -> tuple[InputPin, ...]:
    """Every input as it is now. Whether it survives is judged again once the run's length is estimated."""
    return tuple(opened(each).pin(windows, now) for each in specs)


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
