"""One job's rows: pinned inputs read, the transform applied, warm-up cut, strangers refused, lineage stamped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.model.lineage import lineage_values
from backcast.model.manifest import ChunkPlan, InputPin, Manifest
from backcast.model.pipeline import Job
from backcast.model.quarantine import rejects
from backcast.model.scope import EVERYTHING, Predicate, TimeClause, during
from backcast.model.time import Interval
from backcast.ports import Engine, Input, LogReading, Sifted
from backcast.world import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Computed:
    """Rows of neighbouring chunks, and each input of theirs that is a log."""

    rows: DataFrame
    logs: dict[str, LogReading]
    sifted: Sifted | None = None
    """Where the transform may reject records."""


@dataclass(frozen=True, slots=True)
class Compute:
    """Calling it gives the rows of neighbouring chunks as a frame; nothing has been computed yet."""

    run_id: str
    manifest: Manifest
    inputs: tuple[InputPin, ...]
    """The manifest's, or those of the newest amendment."""
    input: Callable[[str], Input]
    """By the name that the transform knows it by."""
    transform: Transform
    engine: Engine
    shake: bool = False
    """The transform gets its inputs in another order than usual."""

    def __call__(self, plans: list[ChunkPlan], keep: Predicate) -> Computed:
        manifest = self.manifest
        before, after = (
            timedelta(seconds=manifest.warm_up_before_seconds),
            timedelta(seconds=manifest.warm_up_after_seconds),
        )
        windows = {plan.id: plan.window.widened(before, after) for plan in plans}
        whole = Interval(start=plans[0].window.start, end=plans[-1].window.end)
        job = Job(run_id=self.run_id, execution=manifest.execution, window=whole, clock=manifest.planned_at)
        readings = {pin.name: self.input(pin.name).read(pin, windows) for pin in self.inputs}
        rows = self.transform.apply({name: self._ordered(each.rows) for name, each in readings.items()}, job)
        identity = manifest.target.identity
        columns = identity.columns
        names = frozenset(each.name for each in columns)
        logs = {name: each.log for name, each in readings.items() if each.log is not None}
        topics = frozenset(each.topic for each in logs.values())
        sifted = self.engine.sifted(rows, names, topics) if rejects(rows.columns, names) else None
        rows = rows if sifted is None else sifted.kept
        rows = self.engine.stamp(rows, lineage_values(manifest, self.run_id, columns, self.inputs))
        rows = self.engine.conform(rows, manifest.settings.result_columns(columns), identity.without_empty_texts)
        if merging := manifest.settings.merging:
            rows = self.engine.newest(rows, merging.key, merging.version)
        if keep.clauses:
            rows = self.engine.within(rows, keep, self._spare(keep, tuple(windows.values())))
        return Computed(rows, logs, sifted)

    def _ordered(self, rows: DataFrame) -> DataFrame:
        return self.engine.shaken(rows) if self.shake else rows

    def _spare(self, keep: Predicate, windows: tuple[Interval, ...]) -> Predicate:
        """Rows that a transform may return and that are cut: the warm-up on both sides, and other values of
        `--where`.
        """
        if self.manifest.streamed is not None:
            # A query goes on until all windows are closed, and gives the rows of all of them.
            return EVERYTHING
        column = next(clause.time for clause in keep.clauses if isinstance(clause, TimeClause))
        return during((column,), windows)
