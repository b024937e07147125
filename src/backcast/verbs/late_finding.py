"""What a stream left out of its table, found by computing the window again and writing it nowhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pyspark.sql import functions as F

from backcast.errors import InvalidRequest, Refused
from backcast.model import time as t
from backcast.model.fixing import offset_request, window_requests
from backcast.model.late import Lateness, LatePiece, LateReport, SparkCount
from backcast.model.lineage import LINEAGE_COLUMNS
from backcast.model.log import OffsetRange
from backcast.model.pieces import pieces as merged
from backcast.model.quarantine import POSITION
from backcast.model.request import Kind
from backcast.model.scope import Predicate, during
from backcast.model.table import PublishMode
from backcast.model.words import many
from backcast.ports.comparing import Comparing
from backcast.sources.kafka.history import Batch, checkpoint_batches
from backcast.sources.kafka.lag import position_of
from backcast.sources.kafka.late import CODE, LateRecords
from backcast.spark.inspection import keeps_rows
from backcast.spark.lateness import ORDER, counted
from backcast.spark.predicates import quote
from backcast.verbs.recomputed import Recomputed, obstacles, recomputed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.diff import Comparison, DiffRules
    from backcast.model.late import Closing
    from backcast.model.report import Plan
    from backcast.model.request import Request
    from backcast.model.stream import StreamSpec
    from backcast.model.time import Interval
    from backcast.world import World

_MOST_PIECES = 2_000
_MOST_OFFSETS = 10_000
_MOST_BATCHES = 1_000
_AT = "_at"
By = Literal["position", "key", "pieces"]


@dataclass(frozen=True)
class LateFinder:
    """Looks at one stream. `plan` resolves a request and records nothing."""

    world: World
    stream: StreamSpec
    plan: Callable[[Request], Plan]
    asked: Request
    """What the requests have in common."""

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        return checkpoint_batches(self.stream.checkpoint, self.stream.source.topic)

    def find(self, window: Interval | None) -> LateReport:
        """Raises Refused when the source can no longer tell, InvalidRequest for a stream that has read nothing."""
        position = position_of(self.batches, self.stream.checkpoint)
        dataset = self.stream.dataset
        whole = window or self._whole()
        pieces = self._pieces(whole)
        (request,) = window_requests(self.asked, [whole], dataset.time.zone, lists=False)
        plan = self.plan(request)
        if wrong := obstacles(plan):
            raise Refused(f"the window cannot be computed again: {wrong[0].reason}", hint=wrong[0].remedy)
        both = recomputed(self.world, plan)
        by = self._traced_by(both)
        compared = self.world.comparer().count(both.table, both.rows, self._comparing(by, pieces))
        found = self._differing(compared, pieces)
        offsets: tuple[OffsetRange, ...] = ()
        if found and by == "pieces":
            found = self._explained(found, plan, position.batch)
        elif found:
            found, offsets = self._traced(found, plan, both, by, pieces)
        have, expected = compared.total
        report = LateReport(
            stream=self.stream.name,
            pipeline=self.stream.pipeline.name,
            dataset=dataset.name,
            table=dataset.table,
            version=plan.manifest.target.base,
            topic=self.stream.source.topic,
            checkpoint=self.stream.checkpoint,
            batch=position.batch.number,
            watermark=position.batch.watermark,
            oldest=self.batches[0].number,
            by=by,
            grain=dataset.grain,
            zone=dataset.time.zone,
            window=whole,
            expected=expected,
            rows=have,
            pieces=tuple(found),
            offsets=offsets,
            by_spark=self._by_spark(),
        )
        requests, notes = self._requests(report)
        return report.model_copy(update={"requests": requests, "notes": notes})

    def _by_spark(self) -> SparkCount | None:
        """Of the query that runs now: one before it had other batches, and perhaps another delay."""
        batches = [each for each in self.world.stream_reader().batches(self.stream.name, _MOST_BATCHES) if each.landed]
        counted = [each for each in batches if each.rows_in is not None and each.query_id == batches[0].query_id]
        if not counted:
            return None
        numbers = [each.batch for each in counted]
        return SparkCount(rows=sum(each.late_rows for each in counted), first=min(numbers), last=max(numbers))

    def _whole(self) -> Interval:
        """Whole pieces that the log has all records of."""
        span = self.world.event_span(self.stream.source)
        grain, zone = self.stream.dataset.grain, self.stream.dataset.time.zone
        if span is not None:
            start = (t.ceil_instant if span.is_cut else t.floor_instant)(span.first, grain, zone)
            end = t.next_boundary(span.last, grain, zone)
            if start < end:
                return t.Interval(start=start, end=end)
        topic = self.stream.source.topic
        raise InvalidRequest(f"{topic} has no whole {grain} of records", hint="give a window: --from and --to")

    def _pieces(self, whole: Interval) -> dict[str, Interval]:
        found = t.cut(whole, self.stream.dataset.grain, self.stream.dataset.time.zone)
        if len(found) > _MOST_PIECES:
            hint = f"give at most {_MOST_PIECES:,} with --from and --to"
            raise InvalidRequest(f"{len(found):,} {self.stream.dataset.grain}s are too many to look at", hint=hint)
        return {each.start.isoformat(): each for each in found}

    def _traced_by(self, both: Recomputed) -> By:
        """How a row tells of which record it was made, if it was made of one."""
        dataset = self.stream.dataset
        if not keeps_rows(both.rows):
            return "pieces"
        if dataset.position is not None:
            return "position"
        have, made = dict(self._source_types()), dict(both.rows.dtypes)
        known = dataset.key and all(have.get(name) == made.get(name) for name in dataset.key)
        return "key" if known else "pieces"

    def _source_types(self) -> list[tuple[str, str]]:
        (spec,) = (each for each in self.stream.pipeline.inputs if each.name == self.stream.input)
        return [(each.name, each.type) for each in self.world.input(spec).identity().columns]

    def _comparing(self, by: By, pieces: dict[str, Interval]) -> Comparing:
        columns = self.stream.dataset.time_columns
        parts: dict[str, Predicate] = {name: during(columns, (each,)) for name, each in pieces.items()}
        return Comparing(self._rules(by), parts=parts)

    def _rules(self, by: By) -> DiffRules:
        rules = self.world.diff_rules(self.stream.dataset.name)
        ignored = rules.ignored | frozenset(LINEAGE_COLUMNS)
        position = self.stream.dataset.position
        key = position if by == "position" and position is not None else rules.key
        return replace(rules, key=key, ignored=ignored)

    def _differing(self, compared: Comparison, pieces: dict[str, Interval]) -> list[LatePiece]:
        found: list[LatePiece] = []
        for each in compared.partitions:
            rows = each.rows
            if rows is not None and rows.differing:
                found.append(
                    LatePiece(window=pieces[each.chunk], added=rows.added, changed=rows.changed, removed=rows.removed)
                )
        return found

    def _records(self, plan: Plan) -> DataFrame:
        """The source's records of the window, each with what became of it."""
        (spec,) = (each for each in self.stream.pipeline.inputs if each.name == self.stream.input)
        (pin,) = (each for each in plan.manifest.inputs if each.name == self.stream.input)
        rows = self.world.input(spec).read(pin, {each.id: each.window for each in plan.manifest.chunks}).rows
        return LateRecords(self.stream, self.batches, self._closing(plan)).coded(rows)

    def _closing(self, plan: Plan) -> Closing | None:
        windows = plan.manifest.scope.windows
        whole = t.Interval(start=min(each.start for each in windows), end=max(each.end for each in windows))
        return self.world.replaying(self.stream.name).closing(whole, plan.manifest.planned_at)

    def _explained(self, found: list[LatePiece], plan: Plan, newest: Batch) -> list[LatePiece]:
        """Rows cannot be traced: what became of all records of a piece has to explain that it differs."""
        counts = self._by_piece(self._records(plan))
        held = self.world.replaying(self.stream.name).open_windows(plan.manifest.planned_at)
        written = newest.watermark if held is None or not held.known else held.since
        explained = []
        for each in found:
            told = counts.get(each.window.start, {})
            late, pending, unknown = (told.get(one, 0) for one in (Lateness.LATE, Lateness.PENDING, Lateness.UNKNOWN))
            is_open = written is not None and written < each.window.end
            left = 0 if late or pending or unknown or is_open else each.added + each.changed
            explained.append(
                each.model_copy(
                    update={
                        "late": late,
                        "pending": pending,
                        "unknown": unknown,
                        "missing": left,
                        "is_open": is_open,
                    }
                )
            )
        return explained

    def _by_piece(self, records: DataFrame) -> dict[datetime, dict[Lateness, int]]:
        time, dataset = self.stream.source.time, self.stream.dataset
        if time is None:
            return {}
        zone = dataset.time.zone
        column = time if time.is_wall else time.model_copy(update={"zone": zone})
        found = counted(records, CODE, column, dataset.grain)
        return {t.first_instant(wall, zone): each for wall, each in found.items()}

    def _traced(
        self, found: list[LatePiece], plan: Plan, both: Recomputed, by: By, pieces: dict[str, Interval]
    ) -> tuple[list[LatePiece], tuple[OffsetRange, ...]]:
        """Every row that differs, by its records."""
        asked = self._comparing(by, pieces)
        rows = self.world.comparer().changed_rows(both.table, both.rows, asked)
        # An append can only add rows.
        appends = self.stream.pipeline.settings.publish_mode is PublishMode.APPEND
        rows = rows.where(F.col("_change").isin("added", *([] if appends else ["changed"])))
        key = asked.rules.key
        place = [F.col(f"{POSITION}.{name}") for name in ("partition", "offset")]
        origin = place if by == "position" else [F.col(quote(name)) for name in key]
        records = self._records(plan).select(
            *(each.alias(f"_k{number}") for number, each in enumerate(origin)),
            F.struct(*(each.alias(name) for each, name in zip(place, ("p", "o"), strict=True))).alias(_AT),
            CODE,
        )
        same = [F.col(quote(name)).eqNullSafe(F.col(f"_k{number}")) for number, name in enumerate(key)]
        met = rows.select("_chunk", *map(quote, key)).join(records, same, "left")
        missing = ORDER.index(Lateness.MISSING)
        told = (
            met.groupBy("_chunk", *map(quote, key))
            .agg(F.coalesce(F.min(CODE), F.lit(missing)).alias(CODE), F.collect_set(_AT).alias(_AT))
            .groupBy("_chunk", CODE)
            .agg(F.count("*").alias("rows"), F.slice(F.flatten(F.collect_list(_AT)), 1, _MOST_OFFSETS).alias(_AT))
            .collect()
        )
        counts: dict[str, dict[str, int]] = {}
        offsets = []
        for row in told:
            why = ORDER[row[CODE]]
            counts.setdefault(row["_chunk"], {})[why.value] = row["rows"]
            if why is not Lateness.PENDING:
                offsets += [OffsetRange(partition=at["p"], start=at["o"], end=at["o"] + 1) for at in row[_AT]]
        names = {each: name for name, each in pieces.items()}
        traced = [each.model_copy(update=counts.get(names[each.window], {})) for each in found]
        return traced, merged([tuple(offsets)])

    def _requests(self, found: LateReport) -> tuple[tuple[Request, ...], tuple[str, ...]]:
        mode = self.stream.pipeline.settings.publish_mode
        to_mend = [each for each in found.pieces if each.to_mend]
        notes = []
        if not to_mend:
            return (), ()
        reason = _told(found)
        if self.asked.reason:
            reason = f"{reason}: {self.asked.reason}"
        asked = self.asked.model_copy(update={"kind": Kind.REPAIR, "reason": reason})
        if mode is not PublishMode.REPLACE and found.offsets:
            told = sum(each.late + each.missing + each.unknown for each in to_mend)
            most = f"only the first {_MOST_OFFSETS:,} records of each {found.grain.value}: look again after that run"
            return (offset_request(asked, found.offsets),), (most,) if told > _MOST_OFFSETS else ()
        if mode is PublishMode.APPEND:
            return (), ("rows cannot be traced to records, and an append of whole windows would double others",)
        waiting = [each for each in to_mend if each.held_back]
        if waiting:
            notes.append(f"{many(len(waiting), found.grain.value)} left out: the stream is still to write there")
        windows = [each.window for each in to_mend if not each.held_back]
        lists = mode is PublishMode.REPLACE
        return window_requests(asked, windows, found.zone, lists=lists), tuple(notes)


def _told(found: LateReport) -> str:
    late, missing, unknown = (found.total(each) for each in (Lateness.LATE, Lateness.MISSING, Lateness.UNKNOWN))
    parts = [many(late, "late record")] if late else []
    parts += [many(missing, "missing row")] if missing else []
    parts += [f"{unknown:,} that may have been late"] if unknown else []
    return f"{', '.join(parts)} of stream {found.stream}"
