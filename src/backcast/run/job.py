"""What one process needs to work on one run, and the predicate of chunks that share a job."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.model.manifest import ChunkPlan, Manifest
from backcast.model.report import OnProgress
from backcast.model.run import Run
from backcast.model.scope import Predicate, TimeClause
from backcast.ports import Clock, Engine, Store, Target
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


def joined(plans: list[ChunkPlan]) -> Predicate:
    """One predicate for neighbouring chunks: their ranges side by side, touching ones merged."""
    first = plans[0].predicate
    clauses = list(first.clauses)
    for index, clause in enumerate(clauses):
        if isinstance(clause, TimeClause):
            ranges: list[tuple[str, str]] = []
            for plan in plans:
                own = plan.predicate.clauses[index]
                for lower, upper in own.ranges if isinstance(own, TimeClause) else ():
                    if ranges and clause.time.value(lower) <= clause.time.value(ranges[-1][1]):  # type: ignore[operator]  # one column, one type
                        ranges[-1] = (ranges[-1][0], max(ranges[-1][1], upper, key=clause.time.value))
                    else:
                        ranges.append((lower, upper))
            clauses[index] = TimeClause(time=clause.time, ranges=tuple(ranges))
    return Predicate(clauses=tuple(clauses))
