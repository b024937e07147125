"""Documents and screens for tests of what the command line shows."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import Any

from rich.console import Console, RenderableType

from backcast.model.report import ChunkCounts, Plan, Status
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.testing.samples import sample_manifest

NOW = datetime(2026, 3, 1, 15, tzinfo=UTC)


def shown(renderable: RenderableType, width: int = 80) -> str:
    """What a terminal of that width without colours shows."""
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as capture:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def sample_plan(*, refused: bool = False, recorded: bool = True, **changes: Any) -> Plan:
    manifest = sample_manifest(days=3).model_copy(update=changes)
    digest = manifest.sha256()
    return Plan(manifest=manifest, sha256=digest, run_id=manifest.run_id(), recorded=recorded, refused=refused)


def sample_run(state: RunState = RunState.RUNNING, **changes: Any) -> Run:
    manifest = sample_manifest(days=3)
    values = {
        "run_id": manifest.run_id(),
        "manifest_sha256": manifest.sha256(),
        "pipeline": "orders",
        "dataset": "orders",
        "table": "lake.db.orders",
        "kind": "restatement",
        "reason": "time zone bug",
        "ticket": "DATA-91",
        "requested_by": "ann",
        "state": state,
        "revision": 1,
        "created_at": NOW,
        "updated_at": datetime(2026, 3, 1, 14, 30, tzinfo=UTC),
    }
    return Run.model_validate(values | changes)


def sample_status(state: RunState, strip: str, **changes: Any) -> Status:
    """A run of three days whose chunks stand as the strip says."""
    counts = {name: strip.count(letter) for letter, name in zip(".:>#x", ChunkCounts.model_fields, strict=True)}
    values = {
        "run": sample_run(state),
        "manifest": sample_manifest(days=3),
        "counts": ChunkCounts(**counts),
        "strip": strip,
        "output_rows": 900 * counts["staged"],
        "rows_per_second": None,
        "seconds_left": None,
        "failed_chunks": (),
        "holder": None,
        "verdict": None,
        "publication": None,
        "undo_until": None,
        "next_command": f"backcast run {sample_run().run_id}",
        "because": "where it stands",
    }
    return Status.model_validate(values | changes)
