"""The verb that looks for gaps and doubles in a dataset, run or no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.model.health import Health, Keys, gaps_of, pieces_of, pieces_with_rows, thin_of
from backcast.model.masked import hides, not_among
from backcast.model.table import PublishMode
from backcast.model.time import Interval
from backcast.spark.gateway import jvm_errors
from backcast.verbs.counting import Counted, asked_window, counted
from backcast.verbs.masking import require_masked
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.pipeline import Dataset
    from backcast.world import World


class CheckingVerbs(Verbs):
    @jvm_errors("looking for gaps and doubles")
    def check(self, dataset: str, *, start: str | None = None, end: str | None = None) -> Health:
        """Pieces of time without rows, rows without time, and keys that are there twice, as readers see them now.

        Two Spark jobs, and a third where a key is there twice; changes nothing. Without a window: from the first row to
        the last.
        """
        known = self.world.dataset(dataset)
        window = asked_window(known, start, end)
        found = counted(self.world, known, window)
        require_masked(self.world, dataset, found.rows.columns)
        return health_of(self.world, known, window, found)


def health_of(world: World, known: Dataset, window: Interval | None, found: Counted) -> Health:
    """Of rows that were counted. Without a window from the first of them to the last."""
    engine = world.engine()
    masked = world.diff_rules(known.name).masked
    counts, nowhere = found.counts, found.without_time
    zone = known.time.zone
    pieces = pieces_of(counts, window, known.grain, zone)
    usual, thin = thin_of(pieces, counts, known.grain, zone)
    keys = None
    if known.key:
        nulls, doubles, example = engine.key_problems(found.rows, known.key)
        if hides(masked, *known.key) or not_among(masked, found.rows.columns):
            example = "***"
        keys = Keys(columns=known.key, nulls=nulls, doubles=doubles, example=example)
        if doubles:
            where, _ = engine.counted_by_time(engine.doubled(found.rows, known.key), known.time, known.grain)
            keys = keys.model_copy(update={"where": pieces_with_rows(pieces, where, known.grain, zone)})
    pipelines = world.pipelines_to(known.name)
    return Health(
        dataset=known.name,
        table=known.table,
        version=found.version,
        grain=known.grain,
        zone=zone,
        window=Interval(start=pieces[0].start, end=pieces[-1].end) if pieces else None,
        rows=sum(counts.values()) + nowhere,
        without_time=nowhere,
        pieces=len(pieces),
        usual=usual,
        gaps=gaps_of(pieces, counts, known.grain, zone, known.calendar),
        thin=thin,
        keys=keys,
        pipelines=pipelines,
        restated_by=tuple(each for each in pipelines if _replaces(world, each)),
    )


def _replaces(world: World, pipeline: str) -> bool:
    return world.pipeline(pipeline).settings.publish_mode is PublishMode.REPLACE
