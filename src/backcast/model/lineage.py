"""Which run produced a row: optional columns of the table, and properties of every commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from backcast.model.amendment import Amendment
from backcast.model.manifest import InputPin, Manifest
from backcast.model.run import Event
from backcast.model.states import Execution
from backcast.model.table import Column

LINEAGE_COLUMNS = (
    "produced_by_run_id",
    "produced_by_transform",
    "transform_version",
    "processing_mode",
    "input_snapshot_id",
    "input_range_start",
    "input_range_end",
    "reference_data_version",
    "restatement_reason",
)
"""Filled by the run when `lineage_columns` is on and the table has them; the transform need not return them."""

Stamped = str | datetime | None
"""A time without zone is meant for a column without zone, in UTC."""


def lineage_values(
    manifest: Manifest, run_id: str, columns: tuple[Column, ...], inputs: tuple[InputPin, ...]
) -> dict[str, Stamped]:
    """Values for those lineage columns that the table has; empty when lineage columns are off.

    `inputs` are those that the rows come from: the manifest's, or an amendment's.
    """
    if not manifest.settings.lineage_columns:
        return {}
    read, code = manifest.input_windows, manifest.code
    values = (
        run_id,
        code.transform,
        code.version,
        manifest.execution.value,
        _versions(pin for pin in inputs if pin.windowed),
        min((each.start for each in read), default=None),
        max((each.end for each in read), default=None),
        _versions(pin for pin in inputs if not pin.windowed),
        manifest.request.reason or None,
    )
    return _named(values, columns)


def live_values(
    stream: str, transform: str, version: str, read: str, tables: str | None, columns: tuple[Column, ...]
) -> dict[str, Stamped]:
    """The same of a batch of a stream: which part of the topic it read, and which versions of its tables."""
    values = (stream, transform, version, Execution.LIVE.value, read, None, None, tables, None)
    return _named(values, columns)


def _named(values: tuple[Stamped, ...], columns: tuple[Column, ...]) -> dict[str, Stamped]:
    types = {column.name: column.type for column in columns}
    named = zip(LINEAGE_COLUMNS, values, strict=True)
    return {name: _fitted(value, types[name]) for name, value in named if name in types}


def _versions(pins: Iterable[InputPin]) -> str | None:
    return ",".join(pinned(pin) for pin in pins) or None


def pinned(pin: InputPin) -> str:
    """An input and what it was pinned to: a version of a table, offsets of a topic."""
    return f"{pin.identity.name}@{pin.version}"


def _fitted(value: Stamped, column_type: str) -> Stamped:
    if not isinstance(value, datetime):
        return value
    if column_type == "timestamp":
        return value
    instant = value.astimezone(UTC)
    return instant.replace(tzinfo=None) if column_type == "timestamp_ntz" else instant.isoformat()


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
        "backcast.inputs": ",".join(map(pinned, manifest.inputs)),
    }


WITNESS, WITNESS_NUMBER = "backcast.events-head", "backcast.events-number"
"""Properties of a publish or undo commit: hash and number of the newest event of the run before it."""


def witness_properties(events: Sequence[Event]) -> dict[str, str]:
    """What makes the table a witness of the run's history up to its commit: nobody can change that history later."""
    return {WITNESS: events[-1].sha256, WITNESS_NUMBER: str(events[-1].number)} if events else {}


def amendment_properties(amended: tuple[Amendment, ...]) -> dict[str, str]:
    """Which newer inputs the chunks that were staged again come from; empty for a run that was never amended."""
    if not amended:
        return {}
    inputs = ",".join(map(pinned, amended[-1].inputs))
    return {"backcast.amendment": str(len(amended)), "backcast.amended-inputs": inputs}
