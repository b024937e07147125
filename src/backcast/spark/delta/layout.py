"""The shape of a Delta table as its log's metadata tells it: columns, partitions, names inside files, features."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_PHYSICAL = "delta.columnMapping.physicalName"


@dataclass(frozen=True)
class Layout:
    """`metadata` and `protocol` are the actions of the log, without their outer key."""

    metadata: dict[str, Any]
    protocol: dict[str, Any]

    @cached_property
    def schema(self) -> StructType:
        from pyspark.sql.types import StructType

        return StructType.fromJson(json.loads(self.metadata["schemaString"]))

    @cached_property
    def types(self) -> dict[str, str]:
        return {field.name: field.dataType.simpleString() for field in self.schema.fields}

    @cached_property
    def physical(self) -> dict[str, str]:
        """Columns by the names that files, partition values and statistics use."""
        return {field.name: str(field.metadata.get(_PHYSICAL, field.name)) for field in self.schema.fields}

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.metadata.get("partitionColumns") or ())

    def partition_path(self, values: Mapping[str, str | None]) -> str:
        """`day=2026%2F01%2F01/shop=null`: encoded, so that a value's own slashes do not look like further fields."""
        named = ((name, values.get(self.physical[name])) for name in self.partition_columns)
        return "/".join(f"{quote_plus(name)}={quote_plus(value) if value else 'null'}" for name, value in named)

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.metadata.get("configuration") or {})

    @property
    def features(self) -> frozenset[str]:
        return frozenset((self.protocol.get("readerFeatures") or []) + (self.protocol.get("writerFeatures") or []))

    @property
    def identity(self) -> str:
        """The table's id; with column mapping also its columns' inner names, which a column put back does not get."""
        own = str(self.metadata["id"])
        if self.properties.get("delta.columnMapping.mode", "none") == "none":
            return own
        names = json.dumps(self.physical, sort_keys=True)
        return f"{own}/{hashlib.sha256(names.encode()).hexdigest()[:12]}"
