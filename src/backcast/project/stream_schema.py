"""The section `streams` of `backcast.yaml`: live queries, by their pipeline and their checkpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field

from backcast.errors import InvalidRequest
from backcast.model.document import Document
from backcast.model.source import LogSource
from backcast.model.stream import StreamSpec, StreamWrite, Watermark
from backcast.project.problems import KeyPath, Problem
from backcast.project.values import Duration, Identifier, Label
from backcast.project.yaml_lines import Tree
from backcast.streams.checkpoint.folder import local_folder

if TYPE_CHECKING:
    from pathlib import Path

    from backcast.model.pipeline import PipelineSpec


def _folder(text: str) -> str:
    if not text or any(sign in text for sign in "\n\0"):
        raise ValueError(f"expected the folder of a checkpoint, got {text!r}")
    return text


def _address(checkpoint: str, root: Path) -> str:
    return checkpoint if checkpoint.startswith("file:") or "://" in checkpoint else str(root / checkpoint)


def shared_checkpoints(tree: Tree, root: Path) -> list[Problem]:
    """Streams that name the folder of another one, however it is spelled: each would go on where the other stood."""
    found: list[Problem] = []
    known: dict[str, str] = {}
    streams = tree.mapping.get("streams")
    for name, stream in (streams if isinstance(streams, dict) else {}).items():
        checkpoint = stream.get("checkpoint") if isinstance(stream, dict) else None
        if not isinstance(checkpoint, str) or not checkpoint or "\0" in checkpoint:
            continue
        address = _address(checkpoint, root)
        try:
            address = str(local_folder(address))
        except InvalidRequest:
            address = address.rstrip("/")
        if address in known:
            path: KeyPath = ("streams", name, "checkpoint")
            text = f"streams.{known[address]} has this folder already: give each stream a folder of its own"
            found.append(Problem(tree.place(path), path, text))
        known.setdefault(address, name)
    return found


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
        old = [each.name for each in pipeline.inputs if each.version is not None or each.as_of is not None]
        if old and not self.external:
            hint = "declare a pipeline of its own for runs that read an older version"
            raise InvalidRequest(f"{place}: a stream reads the newest version, and {old[0]!r} names another", hint=hint)
        output = pipeline.output
        if self.write is StreamWrite.MERGE and not (output.key and output.version):
            hint = f"declare key and version of datasets.{output.name}, or write: append"
            raise InvalidRequest(f"{place}: merge needs a key and a version column of {output.name!r}", hint=hint)
        return StreamSpec(
            name=name,
            pipeline=pipeline,
            input=topics[0].name,
            source=topics[0].dataset,
            checkpoint=_address(self.checkpoint, root),
            write=self.write,
            trigger=self.trigger,
            starting=self.starting,
            most_per_trigger=self.most_per_trigger,
            watermark=None if self.watermark is None else Watermark(self.watermark.column, self.watermark.delay),
            external=self.external,
        )
