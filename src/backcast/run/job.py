"""What one process needs to work on one run, and the predicate of chunks that share a job."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.model.manifest import ChunkPlan, Manifest
from backcast.model.report import OnProgress
from backcast.model.run import Run
from backcast.model.scope import Predicate, union
from backcast.ports import Clock, Engine, Store, Target
from backcast.ports.pace import Pace
from backcast.run.compute import Compute
from backcast.run.lease import EndHolder, HeldLease


@dataclass(frozen=True, slots=True)
class RunJob:
    """One process working on one run: its driver, or a worker with a lease of its own."""

    run: Run
    manifest: Manifest
    store: Store
    lease: HeldLease
    target: Target
    engine: Engine
    compute: Compute
    clock: Clock
    on_progress: OnProgress
    ended: EndHolder
    pace: Pace | None = None
    """None: jobs follow each other at once."""


def joined(plans: list[ChunkPlan]) -> Predicate:
    """One predicate for chunks that share a job."""
    return union([plan.predicate for plan in plans])
