"""Which run produced a row: optional columns of the table, and properties of every commit."""

from __future__ import annotations

from backcast.model.amendment import Amendment
from backcast.model.manifest import Manifest
from backcast.model.states import Execution
from backcast.model.table import Column

LINEAGE_COLUMNS = ("produced_by_run_id", "produced_by_transform", "transform_version", "processing_mode")
"""Filled by the run when `lineage_columns` is on and the table has them; the transform need not return them."""


def lineage_values(manifest: Manifest, run_id: str, columns: tuple[Column, ...]) -> dict[str, str]:
    """Values for those lineage columns that the table has; empty when lineage columns are off."""
    if not manifest.settings.lineage_columns:
        return {}
    values = (run_id, manifest.code.transform, manifest.code.version, Execution.BACKFILL.value)
    have = {column.name for column in columns}
    return {name: value for name, value in zip(LINEAGE_COLUMNS, values, strict=True) if name in have}


def commit_properties(manifest: Manifest, run_id: str, change: str) -> dict[str, str]:
    """What the table's own commit says about why it exists."""
    return {
        "backcast.change": change,
        "backcast.run": run_id,
        "backcast.manifest": manifest.sha256(),
        "backcast.pipeline": manifest.pipeline,
        "backcast.transform": manifest.code.transform,
        "backcast.version": manifest.code.version,
        "backcast.git-commit": manifest.code.git_commit or "none",
        "backcast.reason": manifest.request.reason,
        "backcast.ticket": manifest.request.ticket,
        "backcast.requested-by": manifest.request.requested_by,
        "backcast.inputs": ",".join(f"{pin.identity.name}@{pin.version}" for pin in manifest.inputs),
    }


def amendment_properties(amended: tuple[Amendment, ...]) -> dict[str, str]:
    """Which newer inputs the chunks that were staged again come from; empty for a run that was never amended."""
    if not amended:
        return {}
    inputs = ",".join(f"{pin.identity.name}@{pin.version}" for pin in amended[-1].inputs)
    return {"backcast.amendment": str(len(amended)), "backcast.amended-inputs": inputs}
