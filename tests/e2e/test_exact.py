"""Windows and predicates that cut files: rows around the scope are carried over untouched."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent

import pytest
from pyspark.sql import functions as F

from backcast.control import ControlPlane
from backcast.errors import ScopeChanged, UndoRefused
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.scope import ValueClause
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.shop import Shop
from backcast.testing.target_delta import DeltaTable
from backcast.testing.target_iceberg import IcebergTable
from backcast.testing.target_lab import Writer

CHANGES = (Writer.DELETE, Writer.UPDATE, Writer.MERGE, Writer.OVERWRITE)
INSIDE, OUTSIDE = 3, 5
"""The first sale of a day that is restated, and of one that is not; each tenth is of the same day."""

ON_BOTH = pytest.mark.parametrize("on", TableFormat)


class Copy:
    """A table with the sales' rows and amounts of zero, restated from the sales."""

    def __init__(
        self,
        shop: Shop,
        lake: Path,
        partitioned: str,
        zone: str = "UTC",
        grain: str = "day",
        on: TableFormat = TableFormat.ICEBERG,
    ) -> None:
        self.shop, self.spark = shop, shop.spark
        iceberg = on is TableFormat.ICEBERG
        self.table = f"{shop.namespace}.copy" if iceberg else f"delta.`{shop.root}/lake/copy`"
        place = f"table: {self.table}" if iceberg else "path: lake/copy"
        self.spark.sql(
            f"CREATE TABLE {self.table} USING {on} {partitioned} AS "
            f"SELECT id, shop, sold_at, CAST(0 AS DECIMAL(10,2)) AS amount FROM {shop.sales}"
        )
        (shop.root / "copy.sql").write_text("SELECT id, shop, sold_at, amount FROM sales")
        (shop.root / "backcast.yaml").write_text(
            dedent(
                f"""\
                name: copy
                store: .backcast/store.db
                spark: {{master: "local[2]"}}
                catalogs:
                  lake: {{type: jdbc, uri: "jdbc:sqlite:{lake}/catalog.db", warehouse: "{lake}/warehouse"}}
                datasets:
                  sales: {{table: {shop.sales}, time: {{column: sold_at, zone: {zone}}}, grain: day}}
                  copy: {{{place}, time: {{column: sold_at, zone: {zone}}}, grain: {grain}, key: [id]}}
                pipelines:
                  copy: {{sql: copy.sql, version: 1.0.0, inputs: {{sales: sales}}, output: copy, cut: exact}}
                """
            )
        )
        self.compact = (IcebergTable if iceberg else DeltaTable)(self.spark, self.table).compact
        self.control = ControlPlane(Wiring(load_project(shop.root)))

    def rows(self) -> Counter[tuple[object, ...]]:
        return Counter(tuple(row) for row in self.spark.sql(f"SELECT * FROM {self.table}").collect())

    def expected(self, where: str) -> Counter[tuple[object, ...]]:
        return Counter(
            tuple(row)
            for row in self.spark.sql(
                f"SELECT c.id, c.shop, c.sold_at, CASE WHEN {where} THEN s.amount ELSE c.amount END "
                f"FROM {self.table} c JOIN {self.shop.sales} s USING (id)"
            ).collect()
        )

    def accepted(self, request: Request) -> str:
        plan = self.control.plan(request)
        assert not plan.refused, plan.findings
        assert plan.manifest.scope.exact
        run = self.control.run(plan.run_id)
        assert run.state is RunState.ACCEPTED, run.detail
        return plan.run_id

    def live(self, number: int, day: str) -> tuple[object, ...]:
        """Append a row as somebody else would; it as `rows` shows it. No sale has its number."""
        values = (
            f"{number}L AS id, 'LIVE' AS shop, TIMESTAMP'{day} 12:00:00Z' AS sold_at, CAST(1 AS DECIMAL(10,2)) AS a"
        )
        self.spark.sql(f"INSERT INTO {self.table} SELECT {values}")
        return tuple(self.spark.sql(f"SELECT {values}").collect()[0])

    def changed(self, writer: Writer, number: int) -> None:
        """The row with that number as somebody else changes it; the files that this touches hold rows of all days."""
        row = f"id = {number}"
        match writer:
            case Writer.DELETE:
                self.spark.sql(f"DELETE FROM {self.table} WHERE {row}")
            case Writer.UPDATE:
                self.spark.sql(f"UPDATE {self.table} SET amount = 7 WHERE {row}")
            case Writer.MERGE:
                rows = f"(SELECT {number}L AS id)"
                self.spark.sql(
                    f"MERGE INTO {self.table} t USING {rows} s ON t.id = s.id WHEN MATCHED THEN UPDATE SET amount = 8"
                )
            case _:
                self.spark.table(self.table).where(f"NOT {row}").writeTo(self.table).overwrite(F.lit(True))

    def refused_publish(self, run_id: str, reason: str) -> None:
        before = self.rows()
        with pytest.raises(ScopeChanged, match=reason):
            self.control.publish(run_id)
        assert self.rows() == before

    def restate_and_take_back(self, request: Request, where: str) -> None:
        before, wanted = self.rows(), self.expected(where)
        assert before != wanted
        run_id = self.accepted(request)
        self.control.publish(run_id)
        assert self.rows() == wanted
        self.control.undo(run_id)
        assert self.rows() == before


@pytest.mark.parametrize("partitioned", ["", "PARTITIONED BY (days(sold_at))"], ids=["unpartitioned", "by UTC day"])
def test_a_new_york_day_is_restated_exactly(shop: Shop, lake_root: Path, partitioned: str) -> None:
    copy = Copy(shop, lake_root, partitioned, zone="America/New_York")
    shop.spark.sql(f"INSERT INTO {shop.sales} VALUES (-9, 'S0', TIMESTAMP'2026-01-05 04:59:59Z', 5.00, 1)")
    shop.spark.sql(f"INSERT INTO {copy.table} VALUES (-9, 'S0', TIMESTAMP'2026-01-05 04:59:59Z', 0)")
    copy.restate_and_take_back(
        Request(pipeline="copy", start="2026-01-04", end="2026-01-05"),
        "s.sold_at >= TIMESTAMP'2026-01-04 05:00:00Z' AND s.sold_at < TIMESTAMP'2026-01-05 05:00:00Z'",
    )


def test_hours_of_a_day_partition_are_restated_exactly(shop: Shop, lake_root: Path) -> None:
    shop.spark.sql(f"UPDATE {shop.sales} SET sold_at = timestampadd(HOUR, 2, sold_at) WHERE id % 2 = 0")
    copy = Copy(shop, lake_root, "PARTITIONED BY (days(sold_at))", grain="hour")
    copy.restate_and_take_back(
        Request(pipeline="copy", start="2026-01-05T02:00", end="2026-01-05T04:00"),
        "s.sold_at >= TIMESTAMP'2026-01-05 02:00:00Z' AND s.sold_at < TIMESTAMP'2026-01-05 04:00:00Z'",
    )


@ON_BOTH
def test_one_shop_of_a_window_is_restated_and_the_others_stay(shop: Shop, lake_root: Path, on: TableFormat) -> None:
    partitioned = {TableFormat.ICEBERG: "PARTITIONED BY (days(sold_at))", TableFormat.DELTA: "CLUSTER BY (shop)"}
    copy = Copy(shop, lake_root, partitioned[on], on=on)
    where = (ValueClause(column="shop", values=("S1", "S2")),)
    copy.restate_and_take_back(
        Request(pipeline="copy", start="2026-01-04", end="2026-01-06", where=where),
        "s.shop IN ('S1', 'S2') AND to_date(s.sold_at) IN ('2026-01-04', '2026-01-05')",
    )
    shop.spark.sql(f"ALTER TABLE {copy.table} ADD COLUMNS (day DATE)")
    config = shop.root / "backcast.yaml"
    config.write_text(config.read_text().replace("key: [id]", "partition: {column: day, kind: date}, key: [id]"))
    plan = shop.open().plan(Request(pipeline="copy", start="2026-01-01", end="2026-02-01", where=where))
    told = {each.code for each in plan.findings}
    assert ("stage.many-commits" in told) is (on is TableFormat.ICEBERG), "31 days of two commits each, in its metadata"


def test_an_empty_text_in_a_delta_partition_column_is_the_null_that_delta_stores(shop: Shop, lake_root: Path) -> None:
    """Observed as computed, it would not be the row that is read back."""
    shop.spark.sql(f"UPDATE {shop.sales} SET shop = IF(id % 8 = 1, '', '__HIVE_DEFAULT_PARTITION__') WHERE shop = 'S1'")
    copy = Copy(shop, lake_root, "PARTITIONED BY (shop)", on=TableFormat.DELTA)
    assert shop.spark.sql(f"SELECT * FROM {copy.table} WHERE shop IS NULL").count() > 0
    copy.restate_and_take_back(
        Request(pipeline="copy", start="2026-01-04", end="2026-01-06"),
        "to_date(s.sold_at) IN ('2026-01-04', '2026-01-05')",
    )


@ON_BOTH
def test_writers_of_a_table_without_partitions_lose_nothing(shop: Shop, lake_root: Path, on: TableFormat) -> None:
    """Only column bounds tell a live file in scope from one out of it, and one file holds rows of many days. So rows
    outside pass, before publish and before undo; a compaction and any change of a row are a change of the scope."""
    copy = Copy(shop, lake_root, "", on=on)
    request = Request(pipeline="copy", start="2026-01-04", end="2026-01-05")
    run_id = copy.accepted(request)
    copy.live(-1, "2026-01-04")
    copy.refused_publish(run_id, "1 file .1 row. arrived")
    copy.control.cancel(run_id)

    run_id = copy.accepted(request)
    before, wanted = copy.rows(), copy.expected("to_date(s.sold_at) = '2026-01-04'")
    ours = [copy.live(-2, "2026-02-01")]
    copy.control.publish(run_id)
    assert copy.rows() == wanted + Counter(ours)
    ours += [copy.live(-3, "2026-02-01"), copy.live(-4, "2026-01-04")]
    copy.control.undo(run_id)
    assert copy.rows() == before + Counter(ours)

    run_id = copy.accepted(request)
    copy.compact()
    copy.refused_publish(run_id, "arrived and . files? left")
    scope, target = copy.control.status(run_id).manifest.scope.predicate, copy.control.world.target("copy")
    for place in (INSIDE, OUTSIDE):
        for writer, number in zip(CHANGES, range(place, 400, 10), strict=False):
            head = target.facts().version
            copy.changed(writer, number)
            moved = target.movement(head, scope)
            assert moved.removed, (writer, number)
            assert not moved.only_compaction, (writer, number)
    copy.refused_publish(run_id, "arrived and . files? left")
    copy.control.cancel(run_id)

    run_id = copy.accepted(request)
    before = copy.rows()
    copy.control.publish(run_id)
    ours = [copy.live(-5, "2026-01-04")]
    copy.compact()
    rows = copy.rows()
    with pytest.raises(UndoRefused, match="compacted"):
        copy.control.undo(run_id)
    assert copy.rows() == rows
    for writer, number in zip(CHANGES, range(OUTSIDE + 100, 400, 10), strict=False):
        copy.changed(writer, number)
    came, went = copy.rows() - rows, rows - copy.rows()
    assert (came.total(), went.total()) == (2, 4)
    copy.control.undo(run_id, rewrite=True)
    assert copy.rows() == before + Counter(ours) + came - went


def test_every_commit_of_an_exact_stage_names_its_chunks_and_token(shop: Shop, lake_root: Path) -> None:
    """A late DELETE without a token could empty a chunk unseen. Chunks share the two commits, each with its count."""
    copy = Copy(shop, lake_root, "PARTITIONED BY (days(sold_at))")
    where = (ValueClause(column="shop", values=("S1",)),)
    shop.spark.sql(f"DELETE FROM {shop.sales} WHERE shop = 'S1' AND to_date(sold_at) = '2026-01-05' AND id % 2 = 0")
    run_id = copy.accepted(Request(pipeline="copy", start="2026-01-04", end="2026-01-07", where=where))
    summaries = shop.spark.sql(f"SELECT summary FROM {copy.table}.snapshots ORDER BY committed_at").collect()
    staged = [row[0] for row in summaries[1:]]
    assert [each["backcast.chunks"] for each in staged] == ['["2026-01-04", "2026-01-05", "2026-01-06"]'] * 2
    assert {each["backcast.run"] for each in staged} == {run_id}
    assert len({each["backcast.token"] for each in staged}) == 1
    asked = f"SELECT to_date(sold_at), count(*) FROM {shop.sales} WHERE shop = 'S1' GROUP BY 1"
    wanted = {str(day): rows for day, rows in shop.spark.sql(asked).collect()}
    counted = {chunk.chunk_id: chunk.output_rows for chunk in copy.control.world.store().runs.chunks(run_id)}
    assert counted == {day: wanted.get(day, 0) for day in ("2026-01-04", "2026-01-05", "2026-01-06")}
    assert len(set(counted.values())) > 1
