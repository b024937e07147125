"""What the adapter says about a table, its files and its rows."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Drifted, InvalidRequest, Unavailable, UnknownName
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.scope import Predicate, TimeClause, ValueClause
from backcast.sources.tables import IcebergSource
from backcast.targets.iceberg.target import IcebergTarget
from tests.spark.iceberg_kit import ALL, day_table, days, instants, live, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def where(column: str, *values: str) -> Predicate:
    return Predicate(clauses=(ValueClause(column=column, values=values),))


def between(column: TimeColumn, low: str, high: str) -> Predicate:
    return Predicate(clauses=(TimeClause(time=column, ranges=((low, high),)),))


def test_facts_show_identity_version_and_until_when_it_lives(spark: SparkSession, namespace: str) -> None:
    """Schema changes and partition evolution show; so does whether a ref keeps a version, or that it is gone."""
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id bigint NOT NULL, ts timestamp, amount decimal(10,2)) USING iceberg "
        "PARTITIONED BY (days(ts), bucket(4, id)) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '60000')"
    )
    source = IcebergSource(spark, name)
    empty = source.facts()
    assert (empty.version, empty.committed_at, empty.survives_until, empty.referenced) == (None, None, None, False)
    assert [(c.name, c.type, c.nullable) for c in empty.identity.columns] == [
        ("id", "bigint", False),
        ("ts", "timestamp", True),
        ("amount", "decimal(10,2)", True),
    ]
    fields = [(f.source, f.transform, f.name) for f in empty.identity.partition_fields]
    assert fields == [("ts", "day", "ts_day"), ("id", "bucket[4]", "id_bucket")]
    assert (empty.identity.format, empty.identity.format_version) == ("iceberg", 2)

    spark.sql(f"INSERT INTO {name} VALUES (1, TIMESTAMP'2026-01-01 00:00:00', 1.5)")
    first = source.facts()
    assert first.identity == empty.identity
    assert first.version is not None
    assert first.committed_at is not None
    assert first.survives_until == first.committed_at + timedelta(minutes=1)

    spark.sql(f"ALTER TABLE {name} CREATE TAG keep")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN note string")
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD ts_day WITH months(ts)")
    moved = source.facts(first.version)
    assert moved.referenced
    assert moved.identity.uuid == first.identity.uuid
    assert moved.identity.columns[-1].name == "note"
    assert "month" in {f.transform for f in moved.identity.partition_fields}
    assert moved.identity.spec_id != first.identity.spec_id
    for gone in ("123", "not-a-version"):
        with pytest.raises(Drifted):
            source.facts(gone)


def test_missing_tables_and_catalogs_are_named(spark: SparkSession, namespace: str) -> None:
    """A wrong name is the user's to mend, a catalog that does not answer is not."""
    with pytest.raises(UnknownName, match="nowhere"):
        IcebergSource(spark, f"{namespace}.nowhere").facts()
    with pytest.raises(UnknownName, match="no_catalog"):
        IcebergSource(spark, "no_catalog.db.t").facts()
    with pytest.raises(InvalidRequest):
        IcebergSource(spark, "t")
    spark.conf.set("spark.sql.catalog.broken", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.broken.type", "jdbc")
    spark.conf.set("spark.sql.catalog.broken.uri", "jdbc:sqlite:/no/such/folder/catalog.db")
    spark.conf.set("spark.sql.catalog.broken.warehouse", "/no/such/folder")
    with pytest.raises(Unavailable):
        IcebergSource(spark, "broken.db.t").facts()


def test_files_are_narrowed_by_partition_and_by_column_bounds(spark: SparkSession, namespace: str) -> None:
    """Only files that can hold matching rows are listed, with partition, rows and size from metadata."""
    name = day_table(spark, namespace)
    source = IcebergSource(spark, name)
    version = source.facts().version
    two = source.files(version, days(2, 3))
    assert sorted((f.partition, f.rows, f.deletes) for f in two.files) == [
        ("day=2026-01-02", 4, 0),
        ("day=2026-01-03", 4, 0),
    ]
    assert two.size > 0
    assert source.files(None, ALL).files == ()
    assert source.files(version, days(9, 9)).files == ()
    live(spark, name, (900, 1, 900.0))
    assert len(source.files(version, days(1, 1)).files) == 1
    by_bounds = source.files(source.facts().version, where("v", "900"))
    assert [f.rows for f in by_bounds.files] == [1]


def test_merge_on_read_deletes_are_counted(spark: SparkSession, namespace: str) -> None:
    """A file with a delete file on top says so, and the delete is movement since the base."""
    properties = "TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')"
    name = day_table(spark, namespace, properties=properties)
    target = IcebergTarget(spark, name)
    base = target.facts().version
    spark.sql(f"DELETE FROM {name} WHERE id = 0")
    found = target.files(target.facts().version, ALL)
    assert found.has_deletes
    assert sorted(f.deletes for f in found.files) == [0, 0, 1]
    moved = target.movement(base, days(1, 1))
    assert moved.moved
    assert not moved.only_compaction
    assert len(moved.commits) == 1
    assert not target.movement(base, days(2, 3)).moved


def test_rows_are_read_at_a_version_and_only_those_that_match(spark: SparkSession, namespace: str) -> None:
    """An older version does not see later rows; an empty table has its schema; unknown columns are named."""
    name = day_table(spark, namespace)
    source = IcebergSource(spark, name)
    version = source.facts().version
    live(spark, name, (900, 1, 1.0))
    assert sorted(row.id for row in source.read(version, days(1, 1)).collect()) == [0, 3, 6, 9]
    assert source.read(None, days(1, 1)).schema == spark.table(name).schema
    assert source.read(None, ALL).count() == 0
    with pytest.raises(UnknownName, match="nothing"):
        source.read(version, where("nothing", "1"))
    with pytest.raises(InvalidRequest, match="bigint"):
        source.read(version, where("id", "one"))
    assert len(rows_of(spark, name)) == 13


def test_every_kind_of_column_can_bound_a_scope(spark: SparkSession, namespace: str) -> None:
    """Spark's filter and Iceberg's agree for each type, for quotes and backslashes in values, for odd names."""
    name = f"{namespace}.kinds"
    text = 'it\'s a \\ "back`slash" \n'
    spark.sql(
        f"CREATE TABLE {name} (ts timestamp, wall timestamp_ntz, `the day` string, ymd int, ms bigint, "
        "who string, amount decimal(10,2), ratio float, ok boolean) USING iceberg"
    )
    spark.sql(
        f"INSERT INTO {name} SELECT TIMESTAMP'2026-01-01 00:00:00Z', TIMESTAMP_NTZ'2026-01-01 00:00:00', '2026-01-01', "
        "20260101, 1767225600000, :who, 1.50, 0.5, true",
        args={"who": text},
    )
    source = IcebergSource(spark, name)
    version = source.facts().version
    wall = TimeColumn(column="wall", kind=TimeKind.TIMESTAMP_NTZ)
    inside = {
        "ts": instants("ts", "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000001Z"),
        "wall": between(wall, "2026-01-01T00:00:00.000000", "2026-01-01T01:00:00.000000"),
        "the day": between(
            TimeColumn(column="the day", kind=TimeKind.STRING, format="yyyy-MM-dd"), "2026-01-01", "2026-01-02"
        ),
        "ymd": between(TimeColumn(column="ymd", kind=TimeKind.INTEGER, format="yyyyMMdd"), "20260101", "20260102"),
        "ms": between(
            TimeColumn(column="ms", kind=TimeKind.INTEGER, format="epoch_millis"), "1767225600000", "1767225600001"
        ),
        "who": where("who", "x", text),
        "amount": where("amount", "1.5"),
        "ratio": where("ratio", "0.5"),
        "ok": where("ok", "true"),
    }
    outside = (
        instants("ts", "2026-01-01T00:00:00.000001Z", "2026-01-02T00:00:00.000000Z"),
        where("who", "x", text.upper()),
        where("amount", "1.51"),
        Predicate(clauses=(TimeClause(time=TimeColumn(column="ts"), ranges=()),)),
    )
    everything = Predicate(clauses=tuple(clause for each in inside.values() for clause in each.clauses))
    assert source.read(version, everything).count() == 1
    for each in inside.values():
        assert len(source.files(version, each).files) == 1
    for each in outside:
        assert source.read(version, each).count() == 0
        assert source.files(version, each).files == ()
