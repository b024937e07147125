"""A comparison on the screen and as a page: what moved is told, what is masked or hostile stays harmless."""

from __future__ import annotations

from html.parser import HTMLParser

from backcast.cli.render.diff import render_compared, render_diff
from backcast.model.diff import (
    Cell,
    ColumnDiff,
    Compared,
    ComparedSide,
    Diff,
    DiffLate,
    NamedType,
    PartitionDiff,
    RowCounts,
    RowDiff,
    RowSample,
    SchemaDiff,
    Values,
)
from backcast.model.digest import Digest
from backcast.page.charts import Bar, bars, sparkline, stacked
from backcast.page.diff import compared_page, diff_page
from backcast.page.markup import escape, table, tag
from tests.unit.cli_screens import shown

HOSTILE = "<script>alert('x')</script>\x1b[31m"


def digest(rows: int, low: int) -> Digest:
    return Digest(rows=rows, high="1", low=str(low))


PARTS = (
    PartitionDiff(chunk="2026-01-01", base=digest(9, 1), stage=digest(9, 1)),
    PartitionDiff(
        chunk="2026-01-02", base=digest(9, 1), stage=digest(10, 2), rows=RowCounts(added=2, removed=1, changed=3)
    ),
)
ROWS = RowDiff(added=2, removed=1, changed=3, format_only=4, tolerated=5, by="key", key=("id",))
COLUMNS = (
    ColumnDiff(
        name="amount",
        type="decimal(10,2)",
        changed=3,
        base=Values(nulls=0, sum="1000.00", mean="100", min="1", max="5"),
        stage=Values(nulls=7, sum="900.50", mean="90.05", min="1", max="5"),
    ),
)
SAMPLES = (
    RowSample(
        change="changed", chunk="2026-01-02", key={"id": "7"}, cells=(Cell(column="x", before=HOSTILE, after=None),)
    ),
    RowSample(change="added", chunk="2026-01-02", key={"id": "8"}, cells=(Cell(column="x", after=""),), times=3),
)
DIFF = Diff(
    run_id="r",
    base="1",
    staged="2",
    partitions=PARTS,
    columns_changed=SchemaDiff(added=(NamedType(name="new", type="int"),)),
    rows=ROWS,
    columns=COLUMNS,
    samples=SAMPLES,
    notes=("a sentence to know",),
)


class Tags(HTMLParser):
    """Every element of a page, closed in the right order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert not {"src", "href"} & {name for name, _ in attrs}, "a page loads nothing"
        if tag not in ("meta", "br", "line", "polyline", "circle"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)


def test_the_screen_tells_rows_columns_and_samples() -> None:
    page = " ".join(shown(render_diff(DIFF)).split())
    for sentence in (
        "column new (int) was added",
        "CHUNK BASE STAGE DELTA ADDED REMOVED CHANGED FORMAT NEAR",
        "2026-01-02 9 10 +1 2 1 3 0 0 changed",
        "rows: 2 added, 1 removed, 3 changed, 4 in format only, 5 within tolerance by key id",
        "amount 3 0 → 7 sum 1,000 900.50 -99.50 (-10.0%)",
        "mean 100 90.05 -9.95 (-10.0%)",
        "~ changed id=7 x <script>alert('x')</script>�[31m → null",
        "+ added 3 times id=8 x=''",
        "a sentence to know",
    ):
        assert sentence in page, page


def test_what_a_live_stream_dropped_as_late_is_told_beside_the_chunks_that_differ() -> None:
    late = DiffLate(stream="live", records=2, taken=2, chunks={"2026-01-02": 2})
    diff = DIFF.model_copy(update={"late": late})
    screen = " ".join(shown(render_diff(diff), 120).split())
    assert "CHANGED FORMAT NEAR LATE" in screen
    assert "2026-01-02 9 10 +1 2 1 3 0 0 2 changed" in screen
    assert "late: 2 records that stream live dropped are in 1 chunk that differs" in screen
    page = diff_page(diff)
    assert Tags(page).open == []
    assert "Late: 2 records that stream live dropped are in 1 chunk that differs." in page
    assert diff.as_json()["late"]["chunks"] == {"2026-01-02": 2}
    assert "late" not in DIFF.as_json(), "other runs are told as before"

    def told(**more: object) -> str:
        return late.model_copy(update=more).sentence()

    assert told(taken=1).endswith("in 1 chunk that differs; this replay took 1 of them")
    assert told(taken=0).endswith("in 1 chunk that differs; this replay dropped them too")
    assert told(taken=None).endswith("; whether this replay took them nobody can tell any more")
    assert told(unknown=1) == (
        "2 records that stream live dropped and 1 that it may have dropped, which its checkpoint no longer tells,"
        " are in 1 chunk that differs"
    )
    assert told(records=0, unknown=1, taken=0).startswith("1 record that stream live may have dropped, which its")
    assert (
        told(records=0, chunks={}) == "no record that stream live is known to have dropped is in a chunk that differs"
    )
    assert told(because="it is gone") == "what stream live dropped as late cannot be told: it is gone"


def test_a_column_keeps_its_name_beside_wide_values() -> None:
    """Moments give way first; numbers and deltas stay whole."""
    moments = Values(nulls=0, min="2026-01-31 00:00:00", max="2026-02-01 00:00:00")
    later = Values(nulls=1, min="2026-01-30 00:00:00")
    at = ColumnDiff(name="updated_at", type="timestamp", changed=600, tolerated=1, base=moments, stage=later)
    page = shown(render_diff(DIFF.model_copy(update={"columns": (*COLUMNS, at)})), width=80)
    assert "updated_at" in page
    assert "-99.50 (-10.0%)" in page


def test_two_parts_are_named_on_the_screen() -> None:
    sides = [
        ComparedSide(dataset=name, table=f"lake.db.{name}", version="7", where=(f"dt={number}",))
        for number, name in enumerate(("orders", "kept"))
    ]
    found = Compared(partitions=PARTS, left=sides[0], right=sides[1])
    page = " ".join(shown(render_compared(found)).split())
    assert "orders against kept from orders, version 7, dt=0 to kept, version 7, dt=1" in page
    assert "DIGEST" in page, "without counts of rows the digests are told"
    assert Tags(compared_page(found)).open == []


def test_a_page_is_whole_loads_nothing_and_runs_nothing() -> None:
    page = diff_page(DIFF)
    tags = Tags(page)
    assert tags.open == []
    assert {"svg", "table", "style"} <= set(tags.seen)
    assert "script" not in tags.seen
    assert "\x1b" not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_pieces_escape_what_is_not_theirs() -> None:
    assert escape("<b>") == "&lt;b&gt;"
    assert escape(tag("b", "<")) == "<b>&lt;</b>"
    assert tag("p", "x", class_='"><script>') == '<p class="&quot;&gt;&lt;script&gt;">x</p>'
    assert escape(1234567) == "1,234,567"
    assert '<td class="n">1,000</td>' in table(("a", "b"), [("x", 1000)])


def test_charts_of_nothing_are_no_error() -> None:
    assert sparkline([]) == ""
    for chart in (sparkline([1.0]), bars([]), stacked([]), bars([Bar("none", 0)]), stacked([Bar("a", 0)])):
        assert Tags(chart).open == []
