"""Files that are in a table and in nobody's way: metadata alone, for nothing here ever opens them."""

from __future__ import annotations

from datetime import timedelta

from backcast.spark.iceberg.handle import TableHandle
from bench.lake import FIRST_DAY, Restatement

_A_DAY = 100
_A_COMMIT = 1_000


def append_other_files(restatement: Restatement, count: int) -> None:
    """So many files on days before the first one, in commits of a thousand, as years of a live writer leave them."""
    handle = TableHandle(restatement.spark, restatement.facts)
    table = handle.load()
    for start in range(0, count, _A_COMMIT):
        append = table.newFastAppend()
        for number in range(start, min(start + _A_COMMIT, count)):
            if number % _A_DAY == 0 or number == start:
                day = FIRST_DAY - timedelta(days=1 + number // _A_DAY)
                builder = handle.java("DataFiles").builder(table.spec()).withPartitionPath(f"day={day}/shard=0")
                builder = builder.withFormat("parquet").withFileSizeInBytes(1_000_000).withRecordCount(1_000)
            append.appendFile(builder.withPath(f"{table.location()}/data/day={day}/other-{number}.parquet").build())
        append.commit()
    table.refresh()
    total = int(table.currentSnapshot().summary().get("total-data-files"))
    assert total > count, f"{total} files in the table, among them {count} others"
