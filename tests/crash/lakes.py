"""The lake of either format."""

from __future__ import annotations

from pathlib import Path

from backcast.model.pipeline import TableFormat
from tests.crash.delta_lake import DeltaLake
from tests.crash.iceberg_lake import IcebergLake
from tests.crash.lake import Lake


def filled_lake(table_format: TableFormat, project: Path, catalog: Path, namespace: str) -> Lake:
    """Both tables where `Shop` looks for them: in the catalog's namespace, or in a folder of the project."""
    delta = table_format is TableFormat.DELTA
    lake: Lake = DeltaLake(project / "lake") if delta else IcebergLake(catalog, namespace)
    lake.create()
    return lake
