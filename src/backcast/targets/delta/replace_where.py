"""Delta's own `replaceWhere`: all of a condition's rows replaced in one commit, by its public interface."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter


def replace_where(rows: DataFrame, condition: str, note: str, fence: tuple[str, int]) -> DataFrameWriter:
    """A write that leaves a commit with that note also when nothing changes, and none when its fence has landed."""
    app, version = fence
    return (
        rows.write.format("delta")
        .mode("overwrite")
        .option("replaceWhere", condition)
        .option("userMetadata", note)
        # Without it a write that changes nothing leaves no commit; and a repeat of the same fence leaves no second one.
        .option("txnAppId", app)
        .option("txnVersion", str(version))
    )
