"""The section `streams` of `backcast.yaml`: live queries, by their pipeline and their checkpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from backcast.errors import InvalidRequest
from backcast.model.document import Document
from backcast.model.source import LogSource
from backcast.model.stream import StreamSpec, StreamWrite, Watermark
from backcast.project.values import Duration, Identifier, Label

if TYPE_CHECKING:
    from pathlib import Path

    from backcast.model.pipeline import PipelineSpec


def _folder(text: str) -> str:
    if not text or any(sign in text for sign in "\n\0"):
        raise ValueError(f"expected the folder of a checkpoint, got {text!r}")
    return text


class WatermarkConfig(Document):
    """How long the stream waits for rows of an event time."""

    column: Identifier
    delay: Duration


class StreamConfig(Document):
    """A live query: the transform of a pipeline over its topic, into its output."""

    pipeline: Label
    checkpoint: Annotated[str, AfterValidator(_folder)]
    """A folder, taken against the project's own."""
    write: StreamWrite = StreamWrite.APPEND
    trigger: Duration = timedelta(seconds=10)
    starting: str = "earliest"
    most_per_trigger: Annotated[int, Field(ge=1)] | None = None
    watermark: WatermarkConfig | None = None
    external: bool = False

    def resolve(self, name: str, root: Path, pipeline: PipelineSpec) -> StreamSpec:
        """Raises InvalidRequest, which names the place, for what the pipeline does not have."""
        place = f"streams.{name}"
        topics = [each for each in pipeline.inputs if isinstance(each.dataset, LogSource)]
        if len(topics) != 1 or not isinstance(topics[0].dataset, LogSource):
            said = "reads no topic" if not topics else "reads several topics"
            hint = "a stream needs a pipeline with exactly one Kafka source among its inputs"
            raise InvalidRequest(f"{place}: pipeline {pipeline.name!r} {said}", hint=hint)
        output = pipeline.output
        if self.write is StreamWrite.MERGE and not (output.key and output.version):
            hint = f"declare key and version of datasets.{output.name}, or write: append"
            raise InvalidRequest(f"{place}: merge needs a key and a version column of {output.name!r}", hint=hint)
        return StreamSpec(
            name=name,
            pipeline=pipeline,
            input=topics[0].name,
            source=topics[0].dataset,
            checkpoint=self.checkpoint if "://" in self.checkpoint else str(root / self.checkpoint),
            write=self.write,
            trigger=self.trigger,
            starting=self.starting,
            most_per_trigger=self.most_per_trigger,
            watermark=None if self.watermark is None else Watermark(self.watermark.column, self.watermark.delay),
            external=self.external,
        )
