"""One restatement to measure: events in, facts out, the project that restates the facts, and the same job by hand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

from backcast.control import ControlPlane
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from bench.tables import Shape, Tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
    """Tables `events` and `facts`, and `by_hand` (as `facts`, for the other side) once someone asks for it.

    Pipelines `facts`, `keyed_facts` and `facts_by_year` write the same table; the last one in chunks of a year.
    """

    spark: SparkSession
    tables: Tables
    root: Path
    shape: Shape

    @classmethod
    def create(cls, spark: SparkSession, tables: Tables, root: Path, shape: Shape, catalog: Path) -> Restatement:
        made = cls(spark, tables, root, shape)
        made._write_project(catalog)
        tables.create("events", shape, shape.events(spark))
        tables.create("facts", shape, spark.table(tables.name("events")))
        return made

    def control(self) -> ControlPlane:
        return ControlPlane(Wiring(load_project(self.root)))

    def planned(self, control: ControlPlane, pipeline: str = "facts") -> str:
        """The id of a fresh run over all days."""
        days = self.shape.dates()
        request = Request(pipeline=pipeline, reason="measuring", requested_by="bench")
        if self.shape.years == 1:
            asked: dict[str, Any] = {"start": str(days[0]), "end": str(days[-1] + timedelta(days=1))}
        else:
            asked = {"dates": days}
        plan = control.plan(request.model_copy(update=asked))
        assert plan.recorded, plan.findings
        return plan.run_id

    def accepted(self, control: ControlPlane) -> str:
        """The id of a run that can be published."""
        run = control.run(self.planned(control))
        assert run.state is RunState.ACCEPTED, run.detail
        return run.run_id

    def prepare_by_hand(self) -> str:
        """The table for the job by hand, and the version of the input that the job is to read."""
        self.tables.create("by_hand", self.shape, self.spark.table(self.tables.name("events")))
        return self.tables.head("events")

    def job_by_hand(self, version: str) -> None:
        """The same pinned read, the same transform, the same partitions replaced; and nothing else."""
        days = self.shape.dates()
        where = f"day >= DATE '{days[0]}' AND day < DATE '{days[-1] + timedelta(days=1)}'"
        rows = self.tables.read("events", version).where(where).selectExpr(*TRANSFORM)
        self.tables.replace("by_hand", where, rows)

    def checksum(self, name: str) -> tuple[object, ...]:
        """Enough of a table's or a stage's rows to see that two jobs did the same work."""
        return tuple(self.spark.sql(f"SELECT count(*), sum(id), sum(revenue) FROM {name}").collect()[0])

    def expected(self) -> tuple[object, ...]:
        """The checksum of what any job over these events must write."""
        return self.checksum(f"(SELECT {', '.join(TRANSFORM)} FROM {self.tables.name('events')})")

    def _write_project(self, catalog: Path) -> None:
        (self.root / "pipelines").mkdir(parents=True)
        (self.root / "pipelines" / "facts.py").write_text(
            dedent(
                f"""\
                import backcast


                @backcast.transform(name="facts", version="2")
                def facts(inputs, ctx):
                    return inputs["events"].selectExpr(*{TRANSFORM!r})
                """
            )
        )
        events, facts = self.tables.place("events"), self.tables.place("facts")
        time = "time: {column: day, kind: date}"
        pipeline = 'transform: "pipelines.facts:facts", version: "2", inputs: {events: events}'
        (self.root / "backcast.yaml").write_text(
            dedent(
                f"""\
                name: bench
                spark: {{master: "local[2]"}}
                catalogs:
                  lake: {{type: jdbc, uri: "jdbc:sqlite:{catalog}/catalog.db", warehouse: "{catalog}/warehouse"}}
                datasets:
                  events: {{{events}, {time}, grain: day}}
                  facts: {{{facts}, {time}, grain: day}}
                  keyed_facts: {{{facts}, {time}, grain: day, key: [id]}}
                  facts_by_year: {{{facts}, {time}, grain: year}}
                pipelines:
                  facts: {{{pipeline}, output: facts}}
                  keyed_facts: {{{pipeline}, output: keyed_facts}}
                  facts_by_year: {{{pipeline}, output: facts_by_year}}
                """
            )
        )
