"""Scopes and chunks: whole partitions or exact rows; together they cover the window, apart they never overlap."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from backcast.errors import InvalidRequest
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.inputs import input_counts, read_by, rows_read
from backcast.model.manifest import ChunkPlan, RowCount
from backcast.model.partitions import RowFinder, first_value, partition_value, rows_by_chunk
from backcast.model.pipeline import Cut, Dataset, InputSpec
from backcast.model.request import Request
from backcast.model.run import Chunk, InputCount
from backcast.model.scope import EVERYTHING, Scope, TimeClause, ValueClause
from backcast.model.states import ChunkState
from backcast.model.table import FileList, FileRef, PartitionField
from backcast.model.time import Grain, Interval, joined, parse_instant
from backcast.plan.chunks import make_chunks, make_scope
from backcast.plan.preflight import scope_findings
from backcast.plan.windows import partitioning, requested_windows
from backcast.testing.samples import sample_identity, sample_manifest
from tests.unit.test_time import ZONES

COLUMNS = [
    TimeColumn(column="day", kind=TimeKind.DATE),
    TimeColumn(column="ts", kind=TimeKind.TIMESTAMP),
    TimeColumn(column="wall", kind=TimeKind.TIMESTAMP_NTZ),
    TimeColumn(column="d", kind=TimeKind.STRING, format="yyyy-MM-dd"),
    TimeColumn(column="n", kind=TimeKind.INTEGER, format="yyyyMMdd"),
    TimeColumn(column="e", kind=TimeKind.INTEGER, format="epoch_millis"),
]

TOKYO = TimeColumn(column="wall", kind=TimeKind.TIMESTAMP_NTZ, zone="Asia/Tokyo")


def plan(
    request: Request, column: TimeColumn, transform: str | None, grain: Grain = Grain.DAY, cut: Cut = Cut.WIDEN
) -> tuple[Scope, tuple[ChunkPlan, ...]]:
    dataset = Dataset(name="d", table="lake.x.d", time=column, grain=grain)
    fields = (PartitionField(source=column.column, transform=transform, name="p"),) if transform else ()
    how = partitioning(column, fields)
    scope = make_scope(requested_windows(request, column.zone), request.where, dataset, how, fields, cut)
    return scope, make_chunks(scope, request.where, dataset, how)


def ranges(chunk: ChunkPlan) -> list[tuple[Any, Any]]:
    return [
        (clause.time.value(low), clause.time.value(high))
        for clause in chunk.predicate.clauses
        if isinstance(clause, TimeClause)
        for low, high in clause.ranges
    ]


def request(start: str = "2026-01-01", end: str = "2026-01-11", **more: Any) -> Request:
    return Request(pipeline="p", start=start, end=end, **more)


@given(
    st.sampled_from(COLUMNS),
    st.sampled_from(ZONES),
    st.dates(date(2005, 1, 2), date(2036, 1, 1)),
    st.integers(1, 70),
    st.sampled_from([Grain.DAY, Grain.WEEK, Grain.MONTH]),
    st.sampled_from(list(Cut)),
)
def test_chunks_cover_the_scope_without_gap_or_overlap(
    column: TimeColumn, zone: str, first: date, days: int, grain: Grain, cut: Cut
) -> None:
    """For every kind of time column, zone and grain: the ranges of the chunks join up to the range of the scope."""
    column = column.model_copy(update={"zone": zone})
    transform = "identity" if column.kind in (TimeKind.DATE, TimeKind.STRING, TimeKind.INTEGER) else "day"
    asked = request(str(first), str(first + timedelta(days=days)))
    scope, chunks = plan(asked, column, transform, grain, cut)
    assert (chunks[0].window.start, chunks[-1].window.end) == (scope.windows[0].start, scope.windows[-1].end)
    found = [span for chunk in chunks for span in ranges(chunk)]
    (clause,) = (each for each in scope.predicate.clauses if isinstance(each, TimeClause))
    assert (found[0][0], found[-1][1]) == (
        clause.time.value(clause.ranges[0][0]),
        clause.time.value(clause.ranges[-1][1]),
    )
    assert all(low < high for low, high in found)
    assert all(left[1] == right[0] for left, right in pairwise(found))
    assert len({chunk.id for chunk in chunks}) == len(chunks)


def test_a_new_york_day_over_utc_partitions_is_widened_or_cut_exactly() -> None:
    column = TimeColumn(column="ts", zone="America/New_York")
    asked = request("2026-01-05", "2026-01-06")
    wide, chunks = plan(asked, column, "day")
    assert not wide.exact
    assert wide.windows[0] == Interval(start=datetime(2026, 1, 5, tzinfo=UTC), end=datetime(2026, 1, 7, tzinfo=UTC))
    assert [chunk.id for chunk in chunks] == ["2026-01-05", "2026-01-06"]
    exact, chunks = plan(asked, column, "day", cut=Cut.EXACT)
    assert exact.exact
    assert exact.windows[0].start == datetime(2026, 1, 5, 5, tzinfo=UTC)
    assert len(chunks) == 1


def test_hours_of_a_day_partition_are_widened_or_cut_exactly() -> None:
    asked = request("2026-01-05T03:00", "2026-01-05T06:00")
    wide, chunks = plan(asked, COLUMNS[1], "day", Grain.HOUR)
    assert wide.windows[0].end - wide.windows[0].start == timedelta(days=1)
    assert len(chunks) == 1, "a chunk never cuts a partition"
    exact, chunks = plan(asked, COLUMNS[1], "day", Grain.HOUR, Cut.EXACT)
    assert exact.exact
    assert [chunk.id for chunk in chunks] == ["2026-01-05T03Z", "2026-01-05T04Z", "2026-01-05T05Z"]


def test_an_unpartitioned_table_is_always_cut_exactly() -> None:
    scope, chunks = plan(request(), COLUMNS[1], None)
    assert scope.exact
    assert len(chunks) == 10


def test_a_predicate_on_a_partition_column_keeps_partitions_whole() -> None:
    where = (ValueClause(column="tenant", values=("T-41",)),)
    dataset = Dataset(name="d", table="lake.x.d", time=COLUMNS[0], grain=Grain.DAY)
    by_day = PartitionField(source="day", transform="identity", name="day")
    by_tenant = PartitionField(source="tenant", transform="identity", name="tenant")
    windows = requested_windows(request(), "UTC")
    for fields, exact in (((by_day, by_tenant), False), ((by_day,), True)):
        scope = make_scope(windows, where, dataset, partitioning(COLUMNS[0], fields), fields, Cut.WIDEN)
        assert scope.exact is exact
        assert where[0] in scope.predicate.clauses


def test_the_repeated_hour_of_a_wall_clock_is_one_chunk() -> None:
    """2013-11-03 has 25 hours in New York; a wall clock column can tell only 24 apart."""
    column = TimeColumn(column="w", kind=TimeKind.TIMESTAMP_NTZ, zone="America/New_York")
    _, chunks = plan(request("2013-11-03", "2013-11-04"), column, "hour", Grain.HOUR)
    assert len(chunks) == 24
    instants = TimeColumn(column="w", zone="America/New_York")
    _, chunks = plan(request("2013-11-03", "2013-11-04"), instants, "hour", Grain.HOUR)
    assert len(chunks) == 25


def test_excluded_days_leave_two_windows_and_chunks_with_names_of_their_own() -> None:
    asked = request(exclude=(date(2026, 1, 4),))
    scope, chunks = plan(asked, COLUMNS[0], "identity")
    assert len(scope.windows) == 2
    assert "2026-01-04" not in {chunk.id for chunk in chunks}
    _, months = plan(asked, COLUMNS[0], "identity", Grain.MONTH)
    assert len({chunk.id for chunk in months}) == 2


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ({"start": "2026-01-02", "end": "2026-01-01"}, "not before"),
        ({"start": "2026-01-02", "end": "2026-01-02"}, "--on 2026-01-02"),
        ({"start": "2026-01-02", "end": None}, "no window"),
        ({"start": "x", "end": "2026-01-02"}, "is not a date"),
        ({"dates": (date(2026, 1, 1),)}, "not both"),
        ({"exclude": (date(2020, 1, 1),)}, "not in the window"),
        ({"start": "2026-01-01", "end": "2026-01-02", "exclude": (date(2026, 1, 1),)}, "leave nothing"),
    ],
)
def test_a_bad_window_is_refused_with_the_reason(bad: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        requested_windows(Request(**({"pipeline": "p", "start": "2026-01-01", "end": "2026-01-05"} | bad)), "UTC")
    assert says in caught.value.message + caught.value.hint


def test_a_day_that_the_zone_skipped_is_refused_by_name() -> None:
    with pytest.raises(InvalidRequest, match="2011-12-30 does not exist in Pacific/Apia"):
        requested_windows(Request(pipeline="p", dates=(date(2011, 12, 30),)), "Pacific/Apia")


@pytest.mark.parametrize("text", ["dd.MM.yyyy", "MM-yyyy", "yyyy-DD", "epoch_years", "yyyy-MM-dd'T'"])
def test_a_format_that_does_not_sort_like_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        TimeColumn(column="d", kind=TimeKind.STRING, format=text)


@pytest.mark.parametrize(
    ("path", "name", "transform", "column", "value"),
    [
        ("day=2026-01-03/shop=A%2FB", "day", "identity", COLUMNS[0], "2026-01-03"),
        ("ts_day=2026-01-03", "ts_day", "day", COLUMNS[1], "2026-01-03T00:00:00.000000Z"),
        ("ts_hour=2026-01-03-07", "ts_hour", "hour", COLUMNS[1], "2026-01-03T07:00:00.000000Z"),
        ("ts_month=2026-01", "ts_month", "month", COLUMNS[2], "2026-01-01T00:00:00.000000"),
        ("day_year=2026", "day_year", "year", COLUMNS[0], "2026-01-01"),
        ("n=20260103", "n", "identity", COLUMNS[4], "20260103"),
        ("day=null", "day", "identity", COLUMNS[0], None),
    ],
)
def test_a_partition_path_tells_the_first_value(
    path: str, name: str, transform: str, column: TimeColumn, value: str | None
) -> None:
    text = partition_value(path, name)
    assert (text if text is None else first_value(text, transform, column)) == value


def test_rows_of_files_are_counted_into_their_chunks() -> None:
    _, chunks = plan(request("2026-01-01", "2026-01-04"), COLUMNS[0], "identity")
    files = [FileRef(f"f{n}", f"day=2026-01-0{n}", rows=n, size=1) for n in (1, 2, 2, 9)]
    assert rows_by_chunk(files, chunks, sample_identity("lake.db.daily")) == {
        "2026-01-01": 1,
        "2026-01-02": 4,
        "2026-01-03": 0,
    }


@pytest.mark.parametrize(
    ("fields", "column", "window", "least", "most"),
    [
        (["identity"], COLUMNS[0], ("2026-01-02", "2026-01-04"), 6, 6),
        (["identity"], COLUMNS[0], ("2026-01-02T12:00", "2026-01-04T01:00"), 12, 12),
        (["identity"], COLUMNS[0], ("2026-01-03T01:00", "2026-01-03T02:00"), 0, 0),
        (["day"], COLUMNS[1], ("2026-01-02", "2026-01-04"), 6, 6),
        (["day"], COLUMNS[1], ("2026-01-02T12:00", "2026-01-05"), 12, 14),
        (["day"], TOKYO, ("2026-01-02", "2026-01-04"), 6, 6),
        (["day"], COLUMNS[1], ("2026-01-03T01:00", "2026-01-03T02:00"), 0, 4),
        (["month"], COLUMNS[1], ("2026-01-02", "2026-01-04"), 0, 15),
        (["identity"], COLUMNS[4], ("2026-01-02", "2026-01-04"), 6, 6),
        (["bucket[4]"], COLUMNS[1], ("2026-01-02", "2026-01-04"), 0, 15),
        ([], COLUMNS[1], ("2026-01-02", "2026-01-04"), 0, 15),
    ],
)
def test_rows_that_a_window_reads_are_counted_by_partition(
    fields: list[str], column: TimeColumn, window: tuple[str, str], least: int, most: int
) -> None:
    """Exactly where it holds whole partitions; else those of partitions that it cuts are at most read."""
    parts = {"month": "p=2026-01", "bucket[4]": "p={day}"}
    shape = parts.get(fields[0] if fields else "", "p=202601{day:02}" if column.kind is TimeKind.INTEGER else "")
    names = [(shape or "p=2026-01-{day:02}").format(day=day) if fields else "" for day in (1, 2, 3, 4)]
    files = [FileRef(name, name, rows=rows, size=1) for name, rows in zip(names, (1, 2, 4, 8), strict=True)]
    spec = tuple(PartitionField(source=column.column, transform=each, name="p") for each in fields)
    start, end = (parse_instant(each, column.zone) for each in window)
    assert RowFinder(files, spec, column).rows_in(Interval(start=start, end=end)) == RowCount(least=least, most=most)


def test_rows_are_never_certain_under_deletes_and_where_a_partition_only_follows_from_time() -> None:
    zone = TimeColumn(column="at", zone="America/New_York")
    partition = TimeColumn(column="day", kind=TimeKind.DATE)
    fields = (PartitionField(source="day", transform="identity", name="day"),)
    files = tuple(FileRef(f"f{n}", f"day=2026-01-0{n}", rows=n, size=1, deletes=n % 2) for n in (1, 2, 3, 4))
    windows = {"c": Interval(start=midnight(2), end=midnight(3))}
    own = Dataset(name="t", table="c.n.t", time=partition, grain=Grain.DAY)
    follows = Dataset(name="t", table="c.n.t", time=zone, grain=Grain.DAY, partition=partition)
    for dataset, day, found in ((own, 2, (2, True)), (own, 3, (3, False)), (follows, 2, (6, False))):
        windows = {"c": Interval(start=midnight(day), end=midnight(day + 1))}
        read = rows_read(InputSpec("events", dataset), FileList("1", files), fields, windows)
        pin = sample_manifest().inputs[0].model_copy(update={"read": read})
        assert [(each.rows, each.exact) for each in input_counts([pin], "c")] == [found]
    assert rows_read(InputSpec("events", own, windowed=False), FileList("1", files), fields, windows) == {}


def test_days_in_a_row_are_one_window_and_nothing_was_widened() -> None:
    """Joining what was asked for is not widening it: no warning about a cut that nobody made."""
    first, second, third = (midnight(day) for day in (3, 4, 5))
    asked = (Interval(start=first, end=second), Interval(start=second, end=third))
    scope = Scope(windows=joined(asked), predicate=EVERYTHING)
    found = scope_findings(asked, scope, FileList(None, ()), old_specs=False)
    assert [each.code for each in found] == ["scope.empty-now"]
    wider = Scope(windows=(Interval(start=first, end=third + timedelta(days=1)),), predicate=EVERYTHING)
    assert "scope.widened" in [each.code for each in scope_findings(asked, wider, FileList(None, ()), old_specs=False)]


def midnight(day: int) -> datetime:
    return datetime(2026, 1, day, tzinfo=UTC)


def test_a_bound_of_what_was_read_is_never_more_than_the_input_has() -> None:
    """Chunks whose partitions are widened share files, and a sum of their bounds told four times the table's rows."""
    pins = [sample_manifest().inputs[0].model_copy(update={"name": "events", "rows": 40})]

    def told(*counts: InputCount) -> tuple[InputCount, ...]:
        chunk = Chunk(run_id="r", ordinal=0, chunk_id="c", state=ChunkState.STAGED)
        return read_by([chunk.model_copy(update={"inputs": (each,)}) for each in counts], pins)

    bound, exact = InputCount(input="events", rows=30, exact=False), InputCount(input="events", rows=30)
    assert told(bound, bound) == (InputCount(input="events", rows=40, exact=False),)
    assert told(exact, exact) == (InputCount(input="events", rows=60),), "warm-up is read twice"
