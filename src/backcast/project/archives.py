"""Pipelines that nobody declares: one for each topic with an archive that is a table, which copies records into it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.archiving import REFERENCE
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.manifest import Settings
from backcast.model.pipeline import Dataset, InputSpec, PipelineSpec, TableFormat
from backcast.model.source import Encoding, Layout, LogSource
from backcast.model.table import PublishMode
from backcast.model.time import Grain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.project.config import Project
    from backcast.project.loading import LoadedTransform
    from backcast.project.transform import Context, Inputs

PREFIX = "archive-"
VERSION = "1"
_INPUT = "records"
_UNDO_WINDOW = timedelta(days=7)


def archive_name(source: str) -> str:
    """Of the pipeline, and of its output as a dataset. No declared one may be called so."""
    return f"{PREFIX}{source}"


def archived_source(project: Project, name: str) -> LogSource | None:
    """The topic behind the name of such a pipeline or dataset; None for any other name."""
    source = name.removeprefix(PREFIX)
    declared = project.config.sources.get(source) if source != name else None
    if declared is None or declared.archive is None or declared.archive.files is not None:
        return None
    return project.log_source(source)


def archive_dataset(source: LogSource) -> Dataset:
    """The table. Raises InvalidRequest when there is none to write to."""
    archive = source.archive
    if archive is None or archive.table is None:
        what = "has no archive" if archive is None else "has an archive of files, which somebody else writes"
        hint = f"declare `archive: {{table: ...}}` under sources.{source.name}"
        raise InvalidRequest(f"source {source.name} {what}", hint=hint)
    if archive.columns:
        hint = "a table that is filled by `backcast archive` has our names: leave `columns` out"
        raise InvalidRequest(f"columns of the archive of {source.name} are called otherwise", hint=hint)
    return Dataset(
        archive_name(source.name),
        archive.table,
        format=TableFormat.DELTA if archive.is_delta else TableFormat.ICEBERG,
        time=TimeColumn(column="timestamp", kind=TimeKind.TIMESTAMP),
        grain=Grain.DAY,
        position=("partition", "offset"),
    )


def archive_pipeline(source: LogSource) -> PipelineSpec:
    """Every record as the log has it, added once."""
    raw = replace(
        source,
        value=Layout(Encoding.RAW),
        key=Layout(Encoding.RAW),
        time=None,
        tombstones=True,
        quarantine=None,
        archive=None,
        to_archive=True,
    )
    return PipelineSpec(
        name=archive_name(source.name),
        version=VERSION,
        inputs=(InputSpec(name=_INPUT, dataset=raw),),
        output=archive_dataset(source),
        settings=Settings(publish_mode=PublishMode.APPEND, undo_window_seconds=int(_UNDO_WINDOW.total_seconds())),
    )


def archive_transform(project: Project, pipeline: str) -> LoadedTransform:
    """Takes the records as they are."""
    from backcast.project.loading import LoadedTransform

    return LoadedTransform(pipeline, REFERENCE, VERSION, project.root, {}, _as_they_are)


def _as_they_are(inputs: Inputs, context: Context) -> DataFrame:
    del context
    return inputs[_INPUT]
