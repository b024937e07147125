"""Streams as the product knows them: a live query between a topic and a dataset, and the checkpoint it goes by."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from backcast.model.source import LogSource

if TYPE_CHECKING:
    from backcast.model.pipeline import Dataset, PipelineSpec


class StreamWrite(StrEnum):
    """How a batch of the stream meets the table."""

    APPEND = "append"
    MERGE = "merge"
    """By the dataset's key; a row that is there stays when its version is newer."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How long the stream waits for rows of an event time."""

    column: str
    """A column of the topic's decoded value."""
    delay: timedelta


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A declared stream. Its transform is that of the pipeline; so are its topic and its dataset."""

    name: str
    pipeline: PipelineSpec
    input: str
    """What the transform calls the topic that is streamed. Other inputs are tables, as they are when it starts."""
    source: LogSource
    checkpoint: str
    """The folder of the query's checkpoint: an absolute path, or an address with a scheme."""
    write: StreamWrite = StreamWrite.APPEND
    trigger: timedelta = timedelta(seconds=10)
    """How long from the start of one batch to that of the next."""
    starting: str = "earliest"
    """Where a query without a checkpoint begins: earliest, latest, or offsets as Spark writes them."""
    most_per_trigger: int | None = None
    """Records that one batch takes at the most."""
    watermark: Watermark | None = None
    external: bool = False
    """Somebody else runs it: it is looked at and mended here, never started."""

    @property
    def dataset(self) -> Dataset:
        return self.pipeline.output

    @property
    def is_local(self) -> bool:
        """Whether the checkpoint lies on a disk of this machine, where it can be read and backed up."""
        return self.checkpoint.startswith("file:") or "://" not in self.checkpoint
