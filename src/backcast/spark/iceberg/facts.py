"""What an Iceberg table is and until when a version of it lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from backcast.model.table import Column, PartitionField, TableFacts, TableIdentity
from backcast.spark.iceberg.handle import MAIN, head_of, snapshot_of

if TYPE_CHECKING:
    from backcast.spark.iceberg.handle import TableHandle

_MAX_AGE = "history.expire.max-snapshot-age-ms"
_MAX_AGE_DEFAULT = 5 * 86_400_000


def table_facts(handle: TableHandle, version: str | None) -> TableFacts:
    """Facts about the given version, or the newest.

    The identity is always today's: schema and spec are what a write would meet now, whatever version is asked about.
    """
    table = handle.load()
    properties = {str(key): str(table.properties().get(key)) for key in handle.items(table.properties().keySet())}
    version = version or head_of(table)
    committed_at = survives_until = None
    if version is not None:
        snapshot = snapshot_of(table, version)
        committed_at = instant(snapshot.timestampMillis())
        survives_until = committed_at + timedelta(milliseconds=int(properties.get(_MAX_AGE, _MAX_AGE_DEFAULT)))
    return TableFacts(
        identity=_identity(handle, table),
        version=version,
        committed_at=committed_at,
        survives_until=survives_until,
        referenced=version is not None and version in _referenced(handle, table),
        properties=properties,
    )


def instant(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, UTC)


def _identity(handle: TableHandle, table: Any) -> TableIdentity:
    spec, schema = table.spec(), table.schema()
    columns = tuple(
        Column(name=field.name, type=field.dataType.simpleString(), nullable=field.nullable)
        for field in handle.schema(table).fields
    )
    fields = tuple(
        PartitionField(
            # A void field may outlive its column.
            source=schema.findColumnName(field.sourceId()) or "",
            transform=field.transform().toString(),
            name=field.name(),
        )
        for field in handle.items(spec.fields())
    )
    return TableIdentity(
        name=handle.name,
        format="iceberg",
        format_version=table.operations().current().formatVersion(),
        uuid=table.uuid().toString(),
        columns=columns,
        partition_fields=fields,
        spec_id=spec.specId(),
    )


def _referenced(handle: TableHandle, table: Any) -> frozenset[str]:
    """Versions that a tag or a branch other than main points at."""
    refs = table.refs()
    return frozenset(str(refs.get(name).snapshotId()) for name in handle.items(refs.keySet()) if name != MAIN)
