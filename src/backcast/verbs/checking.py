"""The verb that looks for gaps and doubles in a dataset, run or no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.health import Health, Keys, gaps_of, pieces_of, thin_of
from backcast.model.scope import EVERYTHING, during
from backcast.model.time import Interval, parse_instant
from backcast.spark.gateway import jvm_errors
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.pipeline import Dataset


class CheckingVerbs(Verbs):
    @jvm_errors("looking for gaps and doubles")
    def check(self, dataset: str, *, start: str | None = None, end: str | None = None) -> Health:
        """Pieces of time without rows, rows without time, and keys that are there twice, as readers see them now.

        Two Spark jobs; changes nothing. Without a window: from the first row to the last.
        """
        known = self.world.dataset(dataset)
        window = _window(known, start, end)
        target, engine = self.world.target(known.name), self.world.engine()
        version = target.facts().version
        rows = target.read(version, EVERYTHING if window is None else during(known.time_columns, (window,)))
        counts, nowhere = engine.counted_by_time(rows, known.time, known.grain)
        zone = known.time.zone
        pieces = pieces_of(counts, window, known.grain, zone)
        usual, thin = thin_of(pieces, counts, known.grain, zone)
        keys = None
        if known.key:
            nulls, doubles, example = engine.key_problems(rows, known.key)
            if set(known.key) & self.world.diff_rules(known.name).masked:
                example = "***"
            keys = Keys(columns=known.key, nulls=nulls, doubles=doubles, example=example)
        return Health(
            dataset=known.name,
            table=known.table,
            version=version,
            grain=known.grain,
            zone=zone,
            window=Interval(start=pieces[0].start, end=pieces[-1].end) if pieces else None,
            rows=sum(counts.values()) + nowhere,
            without_time=nowhere,
            pieces=len(pieces),
            usual=usual,
            gaps=gaps_of(pieces, counts, known.grain, zone),
            thin=thin,
            keys=keys,
            pipelines=self.world.pipelines_to(known.name),
        )


def _window(dataset: Dataset, start: str | None, end: str | None) -> Interval | None:
    if start is None and end is None:
        return None
    if start is None or end is None:
        raise InvalidRequest("a window needs a start and an end", hint="the end is exclusive")
    first, last = parse_instant(start, dataset.time.zone), parse_instant(end, dataset.time.zone)
    if first >= last:
        raise InvalidRequest(f"the window runs backwards or is empty: {start} .. {end}", hint="the end is exclusive")
    return Interval(start=first, end=last)
