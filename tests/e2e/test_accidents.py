"""Accidents that happened to others, rebuilt from their facts: what would have stopped each of them here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING

import pytest

from backcast.control import ControlPlane
from backcast.errors import NotValidated
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SYMBOLS, DAYS = 87, 7
ROWS = SYMBOLS * DAYS
"""609, as in the accident with the timestamps."""
_BASE = f"""
    SELECT date_add(DATE'2026-01-01', CAST(id % {DAYS} AS INT)) AS day, concat('S', id DIV {DAYS}) AS symbol,
           CAST(10 + id % 13 AS DECIMAL(10,2)) AS close,
           concat(CAST(date_add(DATE'2026-01-01', CAST(id % {DAYS} AS INT)) AS STRING), 'T17:30:00') AS quoted,
           timestampadd(HOUR, 18, CAST(date_add(DATE'2026-01-01', CAST(id % {DAYS} AS INT)) AS TIMESTAMP)) AS updated_at
    FROM range({ROWS})"""


@dataclass(frozen=True, slots=True)
class Feed:
    """A table of prices that is restated from files which somebody else lands."""

    root: Path
    spark: SparkSession
    namespace: str
    format: TableFormat

    def table(self, name: str) -> str:
        iceberg = self.format is TableFormat.ICEBERG
        return f"{self.namespace}.{name}" if iceberg else f"delta.`{self.root}/lake/{name}`"

    def made(self, name: str, select: str, partitioned: str = "") -> None:
        """The table as it is then, whatever it was before."""
        self.spark.sql(f"CREATE OR REPLACE TABLE {self.table(name)} USING {self.format} {partitioned} AS {select}")

    def land(self, select: str) -> None:
        """What the file held, as the loader made a table of it."""
        self.made("landed", select)

    def declare(self, lake: Path, *, sql: str, rules: str = "", gates: str = "") -> None:
        places = {
            name: f"table: {self.table(name)}" if self.format is TableFormat.ICEBERG else f"path: lake/{name}"
            for name in ("landed", "prices")
        }
        (self.root / "models").mkdir(exist_ok=True)
        (self.root / "models" / "prices.sql").write_text(sql)
        declared = dedent(
            f"""\
            name: feed
            spark: {{master: "local[2]"}}
            catalogs:
              lake: {{type: jdbc, uri: "jdbc:sqlite:{lake}/catalog.db", warehouse: "{lake}/warehouse"}}
            datasets:
              landed: {{{places["landed"]}, time: {{column: day, kind: date}}}}
              prices:
                {places["prices"]}
                time: {{column: day, kind: date}}
                key: [day, symbol]
            """
        )
        declared += indent(dedent(f"rules: [{rules}]\ngates: {{{gates}}}\n"), "    ")
        declared += dedent(
            """\
            pipelines:
              prices: {sql: models/prices.sql, version: 1.0.0, inputs: {landed: landed}, output: prices}
            """
        )
        (self.root / "backcast.yaml").write_text(declared)

    def open(self) -> ControlPlane:
        return ControlPlane(Wiring(load_project(self.root)))

    def request(self) -> Request:
        return Request(pipeline="prices", start="2026-01-01", end="2026-01-08", reason="the vendor sent corrections")

    def staged(self) -> tuple[ControlPlane, str]:
        control = self.open()
        plan = control.plan(self.request())
        assert not plan.refused, plan.findings
        control.run(plan.run_id)
        return control, plan.run_id


ON_BOTH = pytest.mark.parametrize("feed", list(TableFormat), indirect=True)


@pytest.fixture
def feed(tmp_path: Path, spark: SparkSession, namespace: str, request: pytest.FixtureRequest) -> Feed:
    """On Iceberg, unless the test asks for both."""
    made = Feed(tmp_path, spark, namespace, getattr(request, "param", TableFormat.ICEBERG))
    if made.format is TableFormat.ICEBERG:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    made.made("prices", _BASE, "PARTITIONED BY (day)")
    return made


SAME = "SELECT day, symbol, close, quoted, updated_at FROM landed"


@ON_BOTH
def test_a_file_cut_to_one_row_of_seven_columns_is_refused_by_its_shape_and_held_by_its_size(
    feed: Feed, lake_root: Path
) -> None:
    """Three columns were expected. Taken as it is, the file has four more. Taken by name, one row is left of 609."""
    feed.made("prices", f"SELECT day, symbol, close FROM ({_BASE})", "PARTITIONED BY (day)")
    extra = [f"extra_{number}" for number in (1, 2, 3, 4)]
    feed.land(f"SELECT day, symbol, close, {', '.join(f'0 AS {name}' for name in extra)} FROM ({_BASE}) LIMIT 1")
    feed.declare(lake_root, sql="SELECT * FROM landed")
    plan = feed.open().plan(feed.request())
    assert plan.refused
    reasons = " ".join(each.reason for each in plan.findings if each.severity == "block")
    assert [name for name in extra if name in reasons] == extra
    by_name = "SELECT day, symbol, close FROM landed"
    feed.declare(lake_root, sql=by_name, gates="metrics: {rows: {sql: 'count(*)', falls: 50%}}")
    control, run_id = feed.staged()
    status = control.status(run_id)
    assert status.run.state is RunState.REVIEW
    assert "metric rows" in status.run.detail
    with pytest.raises(NotValidated, match="waits for a person"):
        control.publish(run_id)


@ON_BOTH
def test_a_file_that_is_ten_days_old_does_not_replace_newer_rows(feed: Feed, lake_root: Path) -> None:
    old = "timestampadd(DAY, -10, updated_at)"
    feed.land(f"SELECT day, symbol, close - 1 AS close, quoted, {old} AS updated_at FROM ({_BASE})")
    newer = "SELECT s.symbol FROM stage s JOIN base b USING (day, symbol) WHERE s.updated_at < b.updated_at"
    feed.declare(lake_root, sql=SAME, rules="{fresh: {column: updated_at, within: 2d}}")
    control, run_id = feed.staged()
    assert control.status(run_id).run.state is RunState.REJECTED
    assert "fresh updated_at" in control.status(run_id).run.detail
    control.cancel(run_id)
    feed.declare(lake_root, sql=SAME, rules=f"{{sql: {{name: never older, query: '{newer}'}}}}")
    control, run_id = feed.staged()
    assert "never older: 609 rows" in control.status(run_id).run.detail
    with pytest.raises(NotValidated):
        control.publish(run_id)


@ON_BOTH
def test_seven_keys_that_are_there_twice_are_counted_and_shown(feed: Feed, lake_root: Path) -> None:
    feed.land(f"{_BASE} UNION ALL SELECT * FROM ({_BASE}) WHERE symbol = 'S5'")
    feed.declare(lake_root, sql=SAME, rules="{unique: [day, symbol]}")
    control, run_id = feed.staged()
    status = control.status(run_id)
    assert status.run.state is RunState.REJECTED
    assert "key unique: 7 keys more than once" in status.run.detail
    assert status.verdict is not None
    result = next(each for each in status.verdict.results if each.kind == "unique")
    assert not result.passed
    assert result.failing_rows == 14
    assert {sample["symbol"] for sample in result.samples} == {"S5"}


@ON_BOTH
def test_a_renamed_column_is_refused_before_anything_is_computed(feed: Feed, lake_root: Path) -> None:
    feed.land(f"SELECT day, symbol, close AS closing_price, quoted, updated_at FROM ({_BASE})")
    feed.declare(lake_root, sql="SELECT * FROM landed")
    plan = feed.open().plan(feed.request())
    assert plan.refused
    reasons = " ".join(each.reason for each in plan.findings if each.severity == "block")
    assert "close" in reasons
    assert "closing_price" in reasons


@ON_BOTH
def test_timestamps_that_are_only_spelled_otherwise_are_no_609_changes(feed: Feed, lake_root: Path) -> None:
    feed.land(f"SELECT day, symbol, close, replace(quoted, 'T', ' ') AS quoted, updated_at FROM ({_BASE})")
    feed.declare(lake_root, sql=SAME, gates="changed_rows: 1%")
    control, run_id = feed.staged()
    assert control.status(run_id).run.state is RunState.ACCEPTED, control.status(run_id).run.detail
    found = control.diff(run_id)
    assert found.rows is not None
    assert (found.rows.differing, found.rows.format_only) == (0, ROWS)
    assert found.summary() == "609 in format only"
    column = next(each for each in found.columns if each.name == "quoted")
    assert (column.changed, column.format_only) == (0, ROWS)


def test_609_changes_that_are_real_are_held_by_the_same_gate(feed: Feed, lake_root: Path) -> None:
    feed.land(f"SELECT day, symbol, close, replace(quoted, '17:30', '16:30') AS quoted, updated_at FROM ({_BASE})")
    feed.declare(lake_root, sql=SAME, gates="changed_rows: 1%")
    control, run_id = feed.staged()
    assert control.status(run_id).run.state is RunState.REVIEW
    assert "609 of 609 rows (100%)" in control.status(run_id).run.detail
