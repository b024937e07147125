"""A project's declarations become what the flow works with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backcast.errors import ConfigError, InvalidRequest, UnknownName
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.manifest import LivePolicy, Semantics
from backcast.model.pipeline import Cut, Dataset, Relation
from backcast.model.time import Grain
from backcast.project.config import load_project
from backcast.project.session import session_settings
from tests.unit.projects import GOOD, project, write

FULL = """\
name: shop
store: state/store.db
spark: {master: "local[3]", driver_memory: 4g, conf: {spark.sql.shuffle.partitions: 8}}
catalogs:
  lake: {type: jdbc, uri: "jdbc:sqlite:.lake/catalog.db", warehouse: .lake/warehouse, jdbc.user: "${LAKE_USER}"}
  far: {type: rest, uri: "https://catalog.example/api", warehouse: "s3://bucket/lake", token: "${file:token.txt}"}
datasets:
  raw: {table: far.a.b.raw, time: {column: at, kind: integer, format: epoch_millis}, grain: hour}
  out:
    table: lake.shop.out
    time: {column: at, kind: timestamp, zone: UTC}
    partition: {column: day, kind: date, zone: Asia/Tokyo}
    grain: month
    key: [id]
    version: updated_at
    streaming_readers: [fraud-alerts]
    tolerance: 0.1%
    refresh: dbt run -s daily
pipelines:
  p:
    sql: models/p.sql
    version: 1.10
    inputs: {raw: raw}
    output: out
    warm_up: {before: 1d, after: 90m}
    publish: {mode: replace, live: keep, undo_window: 2w}
    cut: exact
    chunks_per_job: 5
    nondeterministic: [rand]
    lineage_columns: true
"""


def test_every_setting_arrives_in_the_pipeline(tmp_path: Path) -> None:
    spec = project(tmp_path, FULL).pipeline("p")
    assert spec.version == "1.10", "a version is text and not a number"
    assert (spec.warm_up_before, spec.warm_up_after) == (timedelta(days=1), timedelta(minutes=90))
    assert spec.cut is Cut.EXACT
    assert spec.settings.live_policy is LivePolicy.KEEP
    assert spec.settings.undo_window_seconds == 14 * 86_400
    assert spec.settings.chunks_per_job == 5
    assert spec.settings.key == ("id",)
    assert spec.settings.allow_nondeterministic == ("rand",)
    assert spec.settings.lineage_columns is True
    assert spec.output == Dataset(
        name="out",
        table="lake.shop.out",
        time=TimeColumn(column="at", kind=TimeKind.TIMESTAMP, zone="UTC"),
        partition=TimeColumn(column="day", kind=TimeKind.DATE, zone="Asia/Tokyo"),
        grain=Grain.MONTH,
        key=("id",),
        version="updated_at",
        streaming_readers=("fraud-alerts",),
        tolerance=0.001,
        refresh="dbt run -s daily",
    )


def test_an_input_is_windowed_unless_it_is_read_whole(tmp_path: Path) -> None:
    events, shops = project(tmp_path).pipeline("daily").inputs
    assert (events.name, events.windowed, events.dataset.time_columns) == (
        "events",
        True,
        (TimeColumn(column="event_time"),),
    )
    assert (shops.name, shops.windowed, shops.dataset) == ("shops", False, Relation("shops", "lake.shop.shops"))


def test_a_partition_column_takes_the_zone_of_the_time_column(tmp_path: Path) -> None:
    yaml = GOOD.replace("    key: [day, shop]", "    partition: {column: month, kind: string, format: yyyy-MM}")
    partition = project(tmp_path, yaml).dataset("daily").partition
    assert partition == TimeColumn(column="month", kind=TimeKind.STRING, zone="Europe/Berlin", format="yyyy-MM")


def test_relative_paths_belong_to_the_project_wherever_the_command_runs(tmp_path: Path) -> None:
    loaded = project(tmp_path, FULL, environ={"LAKE_USER": "me"})
    (tmp_path / "token.txt").write_text("ttt\n")
    settings = session_settings(loaded)
    assert loaded.store_path == tmp_path / "state/store.db"
    lake, far = settings.catalogs["lake"], settings.catalogs["far"]
    assert lake["uri"].startswith(f"jdbc:sqlite:{tmp_path}/.lake/catalog.db?")
    assert "busy_timeout=" in lake["uri"]
    assert lake["warehouse"] == f"{tmp_path}/.lake/warehouse"
    assert lake["jdbc.user"] == "me"
    assert lake["jdbc.schema-version"] == "V1"
    assert (far["uri"], far["warehouse"]) == ("https://catalog.example/api", "s3://bucket/lake")
    assert far["token"] == "t" * 3, "the line end of a secret's file is not part of it"
    assert settings.master == "local[3]"
    assert settings.conf["spark.sql.shuffle.partitions"] == "8"


def test_secrets_are_needed_only_when_spark_is(tmp_path: Path) -> None:
    loaded = project(tmp_path, FULL)
    assert loaded.pipeline("p").name == "p"
    with pytest.raises(
        ConfigError, match=r"backcast.yaml:5: catalogs.lake.jdbc.user: .*LAKE_USER is not set"
    ) as caught:
        session_settings(loaded)
    assert "token.txt' cannot be read" in caught.value.message, "both problems are told at once"


def test_secrets_are_in_no_representation(tmp_path: Path) -> None:
    yaml = FULL.replace("${LAKE_USER}", "hunter2").replace("${file:token.txt}", "hunter2")
    yaml = yaml.replace("https://catalog", "https://me:hunter2@catalog").replace(
        "spark.sql.shuffle.partitions: 8", "spark.hadoop.fs.s3a.secret.key: hunter2"
    )
    loaded = project(tmp_path, yaml)
    shown = f"{loaded!r} {loaded.config.model_dump_json()} {loaded.config.as_json()} {loaded.config.canonical()!r}"
    assert "hunter2" not in shown
    assert "hunter2" in session_settings(loaded).catalogs["far"].values(), "Spark gets it"


def test_a_secret_is_not_repeated_by_the_error_about_it(tmp_path: Path) -> None:
    yaml = FULL.replace('"${LAKE_USER}"', "[hunter2]").replace("master", "mastre")
    with pytest.raises(ConfigError) as caught:
        project(tmp_path, yaml)
    assert "catalogs.lake.jdbc.user" in caught.value.message
    assert (
        "hunter2"
        not in f"{caught.value.as_dict()}{caught.value.__cause__}{caught.value.__suppress_context__ or 'hunter2'}"
    )


def test_the_project_is_found_from_a_folder_below_it(tmp_path: Path) -> None:
    project(tmp_path)
    assert load_project(tmp_path / "pipelines", environ={}).root == tmp_path
    assert load_project(tmp_path / "backcast.yaml", environ={}).root == tmp_path


def test_a_missing_project_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no backcast\.yaml") as caught:
        load_project(tmp_path, environ={})
    assert "backcast init" in caught.value.hint
    with pytest.raises(ConfigError, match="there is no folder"):
        load_project(tmp_path / "nowhere", environ={})


def test_unknown_names_come_with_the_nearest_known_one(tmp_path: Path) -> None:
    loaded = project(tmp_path)
    with pytest.raises(UnknownName, match="no pipeline is called 'dialy'") as caught:
        loaded.pipeline("dialy")
    assert caught.value.hint == "did you mean daily?"
    with pytest.raises(UnknownName, match="no dataset is called 'x'"):
        loaded.dataset("x")
    with pytest.raises(InvalidRequest, match="'shops' has no time column"):
        loaded.dataset("shops")


def test_yaml_is_read_as_1_2_where_no_is_a_word(tmp_path: Path) -> None:
    yaml = GOOD.replace("[day, shop]", "[no, on]").replace("version: 1.0.0", "version: 1.0")
    loaded = project(tmp_path, yaml)
    assert loaded.dataset("daily").key == ("no", "on")
    assert loaded.pipeline("daily").version == "1.0"


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path, {})
    (tmp_path / "backcast.yaml").write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert load_project(tmp_path, environ={}).name == "shop"


def test_an_input_can_be_read_at_an_older_version_and_says_what_that_is_meant_to_be(tmp_path: Path) -> None:
    given = "{dataset: shops, window: all, as_of: 2025-01-31, semantics: as-recorded}"
    _, shops = project(tmp_path, GOOD.replace("{dataset: shops, window: all}", given)).pipeline("daily").inputs
    assert shops.as_of == datetime(2025, 1, 30, 23, tzinfo=UTC), "in the zone of the output"
    assert shops.semantics is Semantics.AS_RECORDED


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("version: 1, as_of: 2025-01-31", "not both"),
        ("version: v1", "neither a snapshot id"),
        ("as_of: yesterday", "not a date or time"),
        ("semantics: as-recorded", "say which with version or as_of"),
        ("semantics: current, version: 1", "leave version and as_of out"),
    ],
)
def test_a_version_of_an_input_that_makes_no_sense_is_told(tmp_path: Path, given: str, told: str) -> None:
    text = GOOD.replace("{dataset: shops, window: all}", f"{{dataset: shops, window: all, {given}}}")
    with pytest.raises(ConfigError, match=told):
        project(tmp_path, text)
