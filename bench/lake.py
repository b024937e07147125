"""A sample lake for measuring: events in, facts out, and a project that restates the facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

from backcast.control import ControlPlane
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.spark.session import open_session
from backcast.spark.settings import SessionSettings, embedded_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FIRST_DAY = date(2026, 1, 1)
COLUMNS = (
    "id BIGINT, day DATE, shard INT, customer STRING, at TIMESTAMP, amount DECIMAL(12,2), quantity INT,"
    " revenue DECIMAL(14,2)"
)
TRANSFORM = (
    "id",
    "day",
    "shard",
    "customer",
    "at",
    "amount",
    "quantity",
    "CAST(amount * quantity * 1.2 AS DECIMAL(14,2)) AS revenue",
)
"""What both sides compute: the job by hand and the pipeline."""


@dataclass(frozen=True, slots=True)
class Restatement:
    """Tables `events`, `facts` and `by_hand` (as `facts`, for the other side) in one namespace, and their project."""

    spark: SparkSession
    root: Path
    namespace: str
    days: int

    @property
    def events(self) -> str:
        return f"{self.namespace}.events"

    @property
    def facts(self) -> str:
        return f"{self.namespace}.facts"

    @property
    def by_hand(self) -> str:
        return f"{self.namespace}.by_hand"

    @property
    def window(self) -> tuple[str, str]:
        return FIRST_DAY.isoformat(), (FIRST_DAY + timedelta(days=self.days)).isoformat()

    def control(self) -> ControlPlane:
        return ControlPlane(Wiring(load_project(self.root)))

    def planned(self, control: ControlPlane, pipeline: str = "facts") -> str:
        """The id of a fresh run over all days."""
        start, end = self.window
        request = Request(pipeline=pipeline, start=start, end=end, reason="measuring", requested_by="bench")
        plan = control.plan(request)
        assert plan.recorded, plan.findings
        return plan.run_id

    def accepted(self, control: ControlPlane) -> str:
        """The id of a run that can be published."""
        run = control.run(self.planned(control))
        assert run.state is RunState.ACCEPTED, run.detail
        return run.run_id

    def data_files(self) -> int:
        """Data files of `facts` in storage, whether or not the table knows them."""
        location = self.spark.sql(f"DESCRIBE EXTENDED {self.facts}").where("col_name = 'Location'").collect()[0][1]
        return sum(1 for _ in Path(str(location).removeprefix("file:"), "data").rglob("*.parquet"))

    def job_by_hand(self, snapshot: str) -> None:
        """The same pinned read, the same transform, the same partitions replaced; and nothing else."""
        from pyspark.sql import functions as F

        start, end = self.window
        where = f"day >= DATE '{start}' AND day < DATE '{end}'"
        rows = self.spark.read.option("snapshot-id", snapshot).table(self.events).where(where).selectExpr(*TRANSFORM)
        rows.writeTo(self.by_hand).overwrite(F.expr(where))

    def checksum(self, table: str, ref: str = "") -> tuple[object, ...]:
        """Enough of a table's rows, or of a branch's, to see that two jobs did the same work."""
        name = f"{table}.{ref}" if ref else table
        return tuple(self.spark.sql(f"SELECT count(*), sum(id), sum(revenue) FROM {name}").collect()[0])

    def head(self, table: str) -> str:
        newest = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
        return str(self.spark.sql(newest).collect()[0][0])


class Lake:
    """One session and one catalog called `lake`; makes each restatement once."""

    def __init__(self, root: Path, spark: SparkSession, catalog: Path) -> None:
        self.root, self.spark, self._catalog = root, spark, catalog
        self._made: dict[tuple[int, int, int, str], Restatement] = {}

    @classmethod
    def open(cls, root: Path) -> Lake:
        settings = SessionSettings(
            app_name="backcast-bench",
            master="local[2]",
            catalogs={"lake": embedded_catalog(root)},
            driver_memory="2g",
            log_file=root / "spark.log",
        )
        return cls(root, open_session(settings), root)

    def restatement(self, rows: int, days: int, shards: int = 0, name: str = "") -> Restatement:
        """So many rows over so many days; with shards, so many files a day."""
        key = (rows, days, shards, name)
        if key not in self._made:
            self._made[key] = self._make(rows, days, shards, f"lake.r{rows}_{days}_{shards}{name}")
        return self._made[key]

    def _make(self, rows: int, days: int, shards: int, namespace: str) -> Restatement:
        made = Restatement(self.spark, self.root / namespace, namespace, days)
        self._write_project(made)
        self.spark.sql(f"CREATE NAMESPACE {namespace}")
        layout = "PARTITIONED BY (day)"
        if shards:
            # A fanout writer keeps a buffer for every partition, which is too much for a thousand. Tables by day keep
            # the default: sorting would make both sides dearer and the ratio between them look better.
            layout = "PARTITIONED BY (day, shard) TBLPROPERTIES ('write.spark.fanout.enabled' = 'false')"
        for table in (made.events, made.facts, made.by_hand):
            self.spark.sql(f"CREATE TABLE {table} ({COLUMNS}) USING iceberg {layout}")
        _events(self.spark, rows, days, max(shards, 1)).writeTo(made.events).append()
        for table in (made.facts, made.by_hand):
            self.spark.table(made.events).writeTo(table).append()
        return made

    def _write_project(self, made: Restatement) -> None:
        (made.root / "pipelines").mkdir(parents=True)
        (made.root / "pipelines" / "facts.py").write_text(
            dedent(
                f"""\
                import backcast


                @backcast.transform(name="facts", version="2")
                def facts(inputs, ctx):
                    return inputs["events"].selectExpr(*{TRANSFORM!r})
                """
            )
        )
        catalog, time = self._catalog, "time: {column: day, kind: date}, grain: day"
        pipeline = 'transform: "pipelines.facts:facts", version: "2", inputs: {events: events}'
        (made.root / "backcast.yaml").write_text(
            dedent(
                f"""\
                name: bench
                spark: {{master: "local[2]"}}
                catalogs:
                  lake: {{type: jdbc, uri: "jdbc:sqlite:{catalog}/catalog.db", warehouse: "{catalog}/warehouse"}}
                datasets:
                  events: {{table: {made.events}, {time}}}
                  facts: {{table: {made.facts}, {time}}}
                  keyed_facts: {{table: {made.facts}, {time}, key: [id]}}
                pipelines:
                  facts: {{{pipeline}, output: facts}}
                  keyed_facts: {{{pipeline}, output: keyed_facts}}
                """
            )
        )


def _events(spark: SparkSession, rows: int, days: int, shards: int) -> DataFrame:
    """Values are spread like real ones: neither constant nor in order, so that files do not shrink to nothing."""
    return spark.range(rows).selectExpr(
        "id",
        f"date_add(DATE '{FIRST_DAY}', CAST(id % {days} AS INT)) AS day",
        f"CAST(id DIV {days} % {shards} AS INT) AS shard",
        "concat('customer-', pmod(xxhash64(id), 100000)) AS customer",
        f"timestamp_micros(1767225600000000 + id % {days} * 86400000000 + pmod(xxhash64(id, 1), 86400000000)) AS at",
        "CAST(pmod(xxhash64(id, 2), 100000) / 100 AS DECIMAL(12,2)) AS amount",
        "CAST(1 + pmod(xxhash64(id, 3), 9) AS INT) AS quantity",
        "CAST(0 AS DECIMAL(14,2)) AS revenue",
    )
