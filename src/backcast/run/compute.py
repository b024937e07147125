"""One job's rows: pinned inputs read, the transform applied, warm-up cut, strangers refused, lineage stamped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backcast.model.lineage import lineage_values
from backcast.model.manifest import ChunkPlan, InputPin, Manifest
from backcast.model.pipeline import Job
from backcast.model.scope import Predicate, TimeClause, during
from backcast.model.states import Execution
from backcast.model.time import Interval
from backcast.ports import Engine, Source
from backcast.world import Transform

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

InputPredicate = Callable[[str, tuple[Interval, ...]], Predicate]


@dataclass(frozen=True, slots=True)
class Compute:
    """Calling it gives the rows of neighbouring chunks as a frame; nothing has been computed yet."""

    run_id: str
    manifest: Manifest
    inputs: tuple[InputPin, ...]
    """The manifest's, or those of the newest amendment."""
    source: Callable[[str], Source]
    input_predicate: InputPredicate
    transform: Transform
    engine: Engine

    def __call__(self, plans: list[ChunkPlan], keep: Predicate) -> DataFrame:
        manifest = self.manifest
        before, after = (
            timedelta(seconds=manifest.warm_up_before_seconds),
            timedelta(seconds=manifest.warm_up_after_seconds),
        )
        windows = tuple(plan.window.widened(before, after) for plan in plans)
        whole = Interval(start=plans[0].window.start, end=plans[-1].window.end)
        job = Job(run_id=self.run_id, execution=Execution.BACKFILL, window=whole, clock=manifest.planned_at)
        frames = {
            pin.name: self.source(pin.dataset).read(pin.version, self.input_predicate(pin.name, windows))
            for pin in self.inputs
        }
        rows = self.transform.apply(frames, job)
        identity = manifest.target.identity
        columns = identity.columns
        rows = self.engine.stamp(rows, lineage_values(manifest, self.run_id, columns))
        rows = self.engine.conform(rows, columns, identity.without_empty_texts)
        return self.engine.within(rows, keep, self._spare(keep, windows))

    def _spare(self, keep: Predicate, windows: tuple[Interval, ...]) -> Predicate:
        """Rows that a transform may return and that are cut: the warm-up on both sides, and other values of
        `--where`.
        """
        column = next(clause.time for clause in keep.clauses if isinstance(clause, TimeClause))
        return during((column,), windows)
