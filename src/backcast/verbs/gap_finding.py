"""What a dataset lacks, found in its rows, in its positions and against its sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.calendar import Calendar
from backcast.model.fixing import offset_request, window_requests
from backcast.model.gaps import Against, Differing, Fate, Gaps
from backcast.model.health import Gap, gaps_of, missing_hours, pieces_of, rows_of, together
from backcast.model.request import Kind, Request
from backcast.model.table import PublishMode
from backcast.model.time import Grain, Interval, ceil_instant, floor_instant
from backcast.model.words import many
from backcast.verbs.counting import Counted, Counts, counted
from backcast.verbs.hole_finding import MOST_HOLES, AskedTopic, asked_topic, found_holes
from backcast.verbs.recomputed import obstacles, recomputed

if TYPE_CHECKING:
    from backcast.model.pipeline import Dataset, PipelineSpec
    from backcast.model.report import Plan
    from backcast.world import World


@dataclass(frozen=True, slots=True)
class GapFinder:
    """Looks at one dataset. `plan` resolves a request and records nothing."""

    world: World
    dataset: Dataset
    calendar: Calendar
    plan: Callable[[Request], Plan]
    asked: Request
    """What the requests have in common; its pipeline may be empty."""

    def find(self, window: Interval | None, against: str | None) -> Gaps:
        topic = asked_topic(self.world, self.dataset, self.asked.pipeline)
        found = counted(self.world, self.dataset, window, hours=against is None)
        return self._gaps(window, against, found, topic)

    def find_in(self, newest: Counted, topic: AskedTopic) -> Gaps:
        """Among the newest rows, which were counted: between the first of them and the last."""
        return self._gaps(None, None, newest, topic)

    def _gaps(self, window: Interval | None, against: str | None, found: Counted, topic: AskedTopic) -> Gaps:
        dataset, now = self.dataset, self.world.clock.now()
        zone, grain = dataset.time.zone, dataset.grain
        pieces = [each for each in pieces_of(found.counts, window, grain, zone) if each.start < now]
        compared, expected = (None, None) if against is None else self._against(against, window, found, pieces, now)
        if expected is not None:
            pieces = pieces_of({**expected, **found.counts}, window, grain, zone)
            gaps = self._unfilled(pieces, found.counts, expected)
        else:
            gaps = gaps_of(pieces, found.counts, grain, zone, self.calendar)
        hours = () if found.hours is None else self._hours(pieces, found.hours, now, whole=window is not None)
        empty = sum(1 for each in pieces if not rows_of(each, found.counts, grain, zone))
        offsets = found_holes(self.world, dataset, topic, found, to_end=window is None)
        answer = Gaps(
            dataset=dataset.name,
            table=dataset.table,
            version=found.version,
            grain=grain,
            zone=zone,
            window=Interval(start=pieces[0].start, end=pieces[-1].end) if pieces else None,
            rows=sum(found.counts.values()) + found.without_time,
            pieces=len(pieces),
            calendar=self.calendar.week,
            closed=empty - sum(each.pieces for each in gaps),
            gaps=gaps,
            hours=hours,
            holes=offsets.holes,
            positions=dataset.position is not None,
            pending=offsets.pending,
            between_rows=offsets.between_rows,
            unanswered=topic.unanswered,
            against=compared,
            pipeline=self.asked.pipeline or None,
            requests=(),
            notes=topic.notes,
        )
        requests, notes = self._requests(answer)
        return answer.model_copy(update={"requests": requests, "notes": (*answer.notes, *notes)})

    def _hours(self, pieces: list[Interval], hours: Counts, now: datetime, *, whole: bool) -> tuple[Gap, ...]:
        """Unless a window was asked for, the first and the last piece may have begun late, or be under way."""
        zone = self.dataset.time.zone
        until = floor_instant(now, Grain.HOUR, zone)
        past = [
            Interval(start=each.start, end=min(each.end, until))
            for each in (pieces if whole else pieces[1:-1])
            if each.start < until
        ]
        return missing_hours(past, hours, zone, self.calendar)

    def _against(
        self, pipeline: str, window: Interval | None, found: Counted, pieces: list[Interval], now: datetime
    ) -> tuple[Against, Counts | None]:
        """Up to now where no window says otherwise: what came since the last row may be what is missing."""
        zone, grain = self.dataset.time.zone, self.dataset.grain
        if window is None and not pieces:
            raise InvalidRequest(f"{self.dataset.name} has no rows to begin at", hint="give a window: --from and --to")
        whole = window or Interval(start=pieces[0].start, end=max(pieces[-1].end, ceil_instant(now, grain, zone)))
        (request,) = window_requests(self.asked, [whole], zone, lists=False)
        plan = self.plan(request)
        if wrong := obstacles(plan):
            return Against(pipeline=pipeline, expected=0, differing=(), problem=wrong[0].reason), None
        rows = recomputed(self.world, plan).rows
        expected, _ = self.world.engine().counted_by_time(rows, self.dataset.time, grain)
        both = pieces_of({**expected, **found.counts}, window, grain, zone)
        pairs = [
            (each, rows_of(each, found.counts, grain, zone), rows_of(each, expected, grain, zone)) for each in both
        ]
        differing = [
            Differing(window=piece, rows=number, expected=other) for piece, number, other in pairs if number != other
        ]
        told = tuple(each for each in differing if each.rows)
        return Against(pipeline=pipeline, expected=sum(expected.values()), differing=told), expected

    def _unfilled(self, pieces: list[Interval], counts: Counts, expected: Counts) -> tuple[Gap, ...]:
        """The sources say what is expected, whatever the calendar does."""
        zone, grain = self.dataset.time.zone, self.dataset.grain
        empty = (each for each in pieces if not rows_of(each, counts, grain, zone))
        return together(each for each in empty if rows_of(each, expected, grain, zone))

    def _spec(self) -> PipelineSpec:
        return self.world.pipeline(self.asked.pipeline)

    def _requests(self, found: Gaps) -> tuple[tuple[Request, ...], tuple[str, ...]]:
        if not self.asked.pipeline:
            return (), ()
        mode, zone, notes = self._spec().settings.publish_mode, found.zone, []
        missing = [each.range for each in found.holes if each.fate is Fate.THERE]
        windows = [each.window for each in (*found.gaps, *found.hours)]
        differing = [] if found.against is None else [each.window for each in found.against.differing]
        if mode is PublishMode.APPEND and differing:
            notes.append(
                f"{many(len(differing), found.grain.value)} with some of the rows: an append would double them"
            )
            differing = []
        if missing and mode is not PublishMode.REPLACE:
            if windows or differing:
                notes.append("offsets say exactly what is missing between them; look again after that run")
            if len(found.holes) == MOST_HOLES:
                notes.append(f"only the first {MOST_HOLES:,} holes: look again after that run")
            request = offset_request(self._because(f"{many(len(missing), 'hole')} in the offsets"), missing)
            return (request,), tuple(notes)
        if missing and not windows and not differing:
            notes.append(f"offsets say nothing about time: backcast gaps {found.dataset} --against {found.pipeline}")
        asked = self._because(_told(found))
        return window_requests(asked, [*windows, *differing], zone, lists=mode is PublishMode.REPLACE), tuple(notes)

    def _because(self, told: str) -> Request:
        reason = f"{told} of {self.dataset.name}"
        said = f"{reason}: {self.asked.reason}" if self.asked.reason else reason
        return self.asked.model_copy(update={"kind": Kind.BACKFILL, "reason": said})


def _told(found: Gaps) -> str:
    parts = []
    if found.gaps:
        parts.append(f"{many(sum(each.pieces for each in found.gaps), found.grain.value)} without rows")
    if found.hours:
        parts.append(f"{many(sum(each.pieces for each in found.hours), 'hour')} without rows")
    if found.against is not None and found.against.differing:
        parts.append(f"{many(len(found.against.differing), found.grain.value)} with other rows than the source")
    return ", ".join(parts)
