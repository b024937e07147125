"""What the adapter says about an Iceberg table, beyond the contract of targets."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backcast.errors import Drifted, InvalidRequest, Unavailable, UnknownName
from backcast.spark.iceberg.reader import IcebergReader
from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import ALL, days

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_facts_show_identity_version_and_until_when_it_lives(spark: SparkSession, namespace: str) -> None:
    """Schema changes and partition evolution show; so does whether a ref keeps a version, or that it is gone."""
    name = f"{namespace}.t"
    spark.sql(
        f"CREATE TABLE {name} (id bigint NOT NULL, ts timestamp, amount decimal(10,2)) USING iceberg "
        "PARTITIONED BY (days(ts), bucket(4, id)) TBLPROPERTIES ('history.expire.max-snapshot-age-ms' = '60000')"
    )
    source = IcebergReader(spark, name)
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
        IcebergReader(spark, f"{namespace}.nowhere").facts()
    with pytest.raises(UnknownName, match="no_catalog"):
        IcebergReader(spark, "no_catalog.db.t").facts()
    with pytest.raises(InvalidRequest):
        IcebergReader(spark, "t")
    spark.conf.set("spark.sql.catalog.broken", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.broken.type", "jdbc")
    spark.conf.set("spark.sql.catalog.broken.uri", "jdbc:sqlite:/no/such/folder/catalog.db")
    spark.conf.set("spark.sql.catalog.broken.warehouse", "/no/such/folder")
    with pytest.raises(Unavailable):
        IcebergReader(spark, "broken.db.t").facts()


def test_merge_on_read_deletes_are_counted(spark: SparkSession, namespace: str) -> None:
    """A file with a delete file on top says so, and the delete is movement since the base."""
    table = IcebergLab(spark, namespace).three_days()
    table.set_property("write.delete.mode", "merge-on-read")
    target = table.target()
    base = target.facts().version
    table.delete("id = 0")
    found = target.files(target.facts().version, ALL)
    assert found.has_deletes
    assert sorted(f.deletes for f in found.files) == [0, 0, 1]
    moved = target.movement(base, days(1, 1))
    assert moved.moved
    assert not moved.only_compaction
    assert len(moved.commits) == 1
    assert not target.movement(base, days(2, 3)).moved
