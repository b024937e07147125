"""A table as an input: pinned to one version, read at it, never written to."""

from __future__ import annotations

from backcast.spark.delta.reader import DeltaReader
from backcast.spark.iceberg.reader import IcebergReader


class IcebergSource(IcebergReader):
    """The port Source for an Iceberg table."""


class DeltaSource(DeltaReader):
    """The port Source for a Delta table."""
