"""Windows and predicates that cut files: rows around the scope are carried over untouched."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from backcast.control import ControlPlane
from backcast.errors import ScopeChanged
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.scope import ValueClause
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring

if TYPE_CHECKING:
    from backcast.testing.shop import Shop


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


@pytest.mark.parametrize("on", TableFormat)
def test_one_shop_of_a_window_is_restated_and_the_others_stay(shop: Shop, lake_root: Path, on: TableFormat) -> None:
    partitioned = {TableFormat.ICEBERG: "PARTITIONED BY (days(sold_at))", TableFormat.DELTA: "CLUSTER BY (shop)"}
    copy = Copy(shop, lake_root, partitioned[on], on=on)
    where = (ValueClause(column="shop", values=("S1", "S2")),)
    copy.restate_and_take_back(
        Request(pipeline="copy", start="2026-01-04", end="2026-01-06", where=where),
        "s.shop IN ('S1', 'S2') AND to_date(s.sold_at) IN ('2026-01-04', '2026-01-05')",
    )


def test_an_empty_text_in_a_delta_partition_column_is_the_null_that_delta_stores(shop: Shop, lake_root: Path) -> None:
    """Observed as computed, it would not be the row that is read back."""
    shop.spark.sql(f"UPDATE {shop.sales} SET shop = IF(id % 8 = 1, '', '__HIVE_DEFAULT_PARTITION__') WHERE shop = 'S1'")
    copy = Copy(shop, lake_root, "PARTITIONED BY (shop)", on=TableFormat.DELTA)
    assert shop.spark.sql(f"SELECT * FROM {copy.table} WHERE shop IS NULL").count() > 0
    copy.restate_and_take_back(
        Request(pipeline="copy", start="2026-01-04", end="2026-01-06"),
        "to_date(s.sold_at) IN ('2026-01-04', '2026-01-05')",
    )


def test_live_rows_beside_an_exact_scope_are_kept_and_inside_it_stop_the_publish(shop: Shop, lake_root: Path) -> None:
    """The table has no partitions: only column bounds tell a live file in scope from one out of it."""
    copy = Copy(shop, lake_root, "")
    run_id = copy.accepted(Request(pipeline="copy", start="2026-01-04", end="2026-01-05"))
    shop.spark.sql(f"INSERT INTO {copy.table} VALUES (-1, 'LIVE', TIMESTAMP'2026-02-01 00:00:00Z', 1)")
    copy.control.publish(run_id)
    assert shop.spark.sql(f"SELECT * FROM {copy.table} WHERE id = -1").count() == 1

    second = copy.accepted(Request(pipeline="copy", start="2026-01-06", end="2026-01-07"))
    shop.spark.sql(f"INSERT INTO {copy.table} VALUES (-2, 'LIVE', TIMESTAMP'2026-01-06 12:00:00Z', 1)")
    before = copy.rows()
    with pytest.raises(ScopeChanged):
        copy.control.publish(second)
    assert copy.rows() == before


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
