"""Whether rows must be brought together by partition before they are written, told by what is known before the run."""

from __future__ import annotations

from collections.abc import Sequence

from backcast.model.manifest import InputPin
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.table import PartitionField
from backcast.model.time import Grain
from backcast.plan.windows import Partitioning, partitioning

_FILES_A_PARTITION = 2
_BIG_ENOUGH = 32 * 1024**2
_FINE_TO_COARSE = list(Grain)


def arrive_together(
    inputs: Sequence[tuple[InputSpec, InputPin]],
    output: Partitioning,
    fields: tuple[PartitionField, ...],
    partitions: int,
) -> bool:
    """True when every file of the inputs lies in one partition of the output, which time alone divides, and they are
    few or big: each task then writes few files, and a shuffle of all rows would change nothing but the time it takes.
    """
    if fields != (output.field,):
        return False
    windowed = [(spec.dataset, pin) for spec, pin in inputs if spec.windowed]
    return bool(windowed) and all(
        isinstance(dataset, Dataset) and _within(dataset, pin, output) and _few_or_big(pin, partitions)
        for dataset, pin in windowed
    )


def _within(dataset: Dataset, pin: InputPin, output: Partitioning) -> bool:
    """Whether a partition of the input never spans two of the output."""
    how = partitioning(dataset.partition or dataset.time, pin.identity.partition_fields)
    if how.unit is None or output.unit is None or how.zone != output.zone:
        return False
    return _FINE_TO_COARSE.index(how.unit) <= _FINE_TO_COARSE.index(output.unit) and how.unit is not Grain.WEEK


def _few_or_big(pin: InputPin, partitions: int) -> bool:
    return pin.files <= _FILES_A_PARTITION * partitions or pin.bytes >= _BIG_ENOUGH * pin.files
