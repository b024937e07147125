"""Small valid documents for tests. Equal arguments give equal documents: no clock and no randomness."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.digest import Digest
from backcast.model.manifest import (
    ChunkPlan,
    CodeIdentity,
    Estimate,
    InputPin,
    Manifest,
    Settings,
    Survival,
    TargetPin,
)
from backcast.model.request import Request
from backcast.model.run import Holder, Publication
from backcast.model.scope import Scope, during
from backcast.model.table import Column, PartitionField, TableIdentity
from backcast.model.time import Grain, Interval, cut
from backcast.model.verdict import Check, PartitionDigest, Verdict

_CODE = CodeIdentity(
    transform="transforms:orders",
    version="1",
    files={"transforms.py": "0" * 64},
    packages={"pyspark": "4.0.5"},
    config="1" * 64,
    git_commit=None,
    git_dirty=(),
)
FIRST_DAY = datetime(2025, 1, 1, tzinfo=UTC)
DAY_COLUMN = TimeColumn(column="day", kind=TimeKind.DATE)


def sample_identity(table: str) -> TableIdentity:
    """An Iceberg table of three columns, partitioned by day."""
    return TableIdentity(
        name=table,
        format="iceberg",
        format_version=2,
        uuid=f"uuid-of-{table}",
        columns=(
            Column(name="id", type="bigint", nullable=False),
            Column(name="day", type="date", nullable=False),
            Column(name="amount", type="decimal(10,2)", nullable=True),
        ),
        partition_fields=(PartitionField(source="day", transform="identity", name="day"),),
        spec_id=0,
    )


def _input(days: int) -> InputPin:
    return InputPin(
        name="events",
        dataset="events",
        identity=sample_identity("lake.db.events"),
        version="9007199254740993",
        windowed=True,
        survival=Survival.OK,
        survives_until=None,
        files=days,
        rows=1_000 * days,
        bytes=100_000 * days,
    )


def sample_manifest(
    *, days: int = 3, pipeline: str = "orders", dataset: str = "orders", reason: str = "time zone bug"
) -> Manifest:
    """A plan that restates that many days from 2025-01-01 on, one chunk each."""
    window = Interval(start=FIRST_DAY, end=FIRST_DAY + timedelta(days=days))
    last_day: date = window.end.date()
    chunks = tuple(
        ChunkPlan(id=piece.start.date().isoformat(), window=piece, predicate=during((DAY_COLUMN,), (piece,)))
        for piece in cut(window, Grain.DAY, "UTC")
    )
    return Manifest(
        request=Request(
            pipeline=pipeline, start="2025-01-01", end=last_day.isoformat(), reason=reason, requested_by="ann"
        ),
        pipeline=pipeline,
        code=_CODE,
        inputs=(_input(days),),
        target=TargetPin(
            dataset=dataset,
            identity=sample_identity(f"lake.db.{dataset}"),
            base="3051729675574597004",
            files=days,
            rows=900 * days,
            bytes=90_000 * days,
            files_digest="2" * 64,
        ),
        scope=Scope(windows=(window,), predicate=during((DAY_COLUMN,), (window,))),
        input_windows=(window,),
        warm_up_before_seconds=0,
        warm_up_after_seconds=0,
        chunks=chunks,
        settings=Settings(),
        estimate=Estimate(
            input_rows=1_000 * days,
            input_bytes=100_000 * days,
            output_rows=900 * days,
            seconds_low=1,
            seconds_high=10,
            basis="file statistics",
        ),
        findings=(),
        planned_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
    )


def sample_holder(owner: str = "ann") -> Holder:
    """A process that does not exist."""
    return Holder(owner=owner, host="host-1", pid=4_000_001, started="1")


def sample_verdict(run_id: str, *, staged: str = "77", accepted: bool = True) -> Verdict:
    """A verdict with one check over one chunk."""
    return Verdict(
        run_id=run_id,
        accepted=accepted,
        base="3051729675574597004",
        staged=staged,
        net_change="3" * 64,
        checks=(Check(name="rows", passed=accepted, detail="900 rows in 1 chunk"),),
        partitions=(PartitionDigest(chunk="2025-01-01", digest=Digest(rows=900, high="12", low="34", version=1)),),
        rows=900,
        at=datetime(2026, 3, 1, 13, tzinfo=UTC),
    )


def sample_publication(run_id: str, *, generation: int = 1) -> Publication:
    """A publish of one file in place of another."""
    return Publication(
        run_id=run_id,
        generation=generation,
        fence=f"backcast_pub_{run_id}_{generation}",
        base="3051729675574597004",
        staged="77",
        head="3051729675574597004",
        version=f"8{generation}",
        added=("new.parquet",),
        removed=("old.parquet",),
        published_at=datetime(2026, 3, 1, 14, tzinfo=UTC),
        undo_until=datetime(2026, 3, 8, 14, tzinfo=UTC),
    )
