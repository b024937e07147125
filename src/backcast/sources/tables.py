"""A table as an input: pinned to one snapshot, read at it, never written to."""

from __future__ import annotations

from backcast.spark.iceberg.reader import IcebergReader


class IcebergSource(IcebergReader):
    """The port Source for an Iceberg table."""
