"""What a Delta table is and until when a version of it lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from backcast.model.table import Column, PartitionField, TableFacts, TableIdentity
from backcast.spark.delta.paths import by_path

if TYPE_CHECKING:
    from backcast.spark.delta.handle import DeltaHandle, Version


def table_facts(handle: DeltaHandle, version: str | None) -> TableFacts:
    """Facts about the given version, or the newest.

    The identity is always today's: schema and partitions are what a write would meet now, whatever is asked about.
    """
    head = handle.at()
    asked = head if version is None else handle.at(version)
    files, log = kept(head, handle)
    return TableFacts(
        identity=_identity(handle, head),
        version=asked.name,
        committed_at=asked.committed_at,
        survives_until=_survives_until(handle, asked, head),
        referenced=False,
        properties=head.layout.properties,
        removed_files_kept=files if log is None else min(files, log),
    )


def kept(head: Version, handle: DeltaHandle) -> tuple[timedelta, timedelta | None]:
    """How long files stay that a commit removed, and how old a commit gets: in the log is what a version holds.

    None for the log when nobody cleans it.
    """
    log = handle.jvm.log_retention_millis(handle.log, head.snapshot)
    files = timedelta(milliseconds=handle.jvm.retention_millis(head.snapshot))
    return files, None if log is None else timedelta(milliseconds=log)


def instant(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


def _survives_until(handle: DeltaHandle, asked: Version, head: Version) -> datetime:
    """Until its files or its own commit may go. The newest version's commit is not cleaned however old it is."""
    files, log = kept(head, handle)
    superseded = _superseded_at(handle, asked, head)
    if log is None:
        return superseded + files
    newest = asked.branch is not None or asked.number >= head.number
    written = superseded if newest else asked.committed_at
    return min(superseded + files, written + log)


def _superseded_at(handle: DeltaHandle, asked: Version, head: Version) -> datetime:
    """When the version's first file can have been removed: by the commit after it, or now at the earliest."""
    if asked.branch is not None or asked.number >= head.number:
        return datetime.now(UTC)
    actions = handle.jvm.actions(handle.log, asked.number + 1) or []
    stamps = [each["commitInfo"].get("timestamp") for each in actions if "commitInfo" in each]
    return instant(stamps[0]) if stamps and stamps[0] else asked.committed_at


def _identity(handle: DeltaHandle, head: Version) -> TableIdentity:
    layout = head.layout
    return TableIdentity(
        name=handle.name,
        format="delta",
        format_version=int(layout.protocol["minWriterVersion"]),
        uuid=layout.identity,
        columns=tuple(
            Column(name=field.name, type=field.dataType.simpleString(), nullable=field.nullable)
            for field in layout.schema.fields
        ),
        partition_fields=tuple(
            PartitionField(source=name, transform="identity", name=name) for name in layout.partition_columns
        ),
        spec_id=0,
        location=by_path(head.root.path),
    )
