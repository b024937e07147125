"""Commits to a stage leave a live writer of the table room."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from backcast.targets.iceberg.pace import BURST, SPAN_SECONDS, seconds_to_wait
from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import days, frame, open_stage, write
from tests.spark.iceberg_kit import iceberg

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


def test_beside_a_live_writer_no_more_than_a_burst_lands_within_a_span(
    spark: SparkSession, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits of all stages count together; a table that nobody else writes to is written almost as fast as it goes."""
    table = IcebergLab(spark, namespace).three_days()
    target = table.target()
    stages = [open_stage(target, run) for run in ("r1", "r2")]
    table.append((900, 3, 1.0))
    waits = []
    for token in range(1, BURST + 2):
        stage = stages[token % 2]
        waits.append(seconds_to_wait(iceberg(spark, table.name), stage))
        write(target, stage, days(1, 1), frame(spark, [(token, 1, 5.0)]), token=token)
    assert waits[:BURST] == [0.0] * BURST
    assert 0.0 < waits[BURST] <= SPAN_SECONDS
    later = time.time() + SPAN_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    assert seconds_to_wait(iceberg(spark, table.name), stages[0]) == 0.0
    monkeypatch.undo()

    alone = IcebergLab(spark, namespace).three_days()
    stage = open_stage(alone.target())
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    for token in range(1, BURST + 1):
        write(alone.target(), stage, days(1, 1), frame(spark, [(token, 1, 5.0)]), token=token)
    assert seconds_to_wait(iceberg(spark, alone.name), stage) > 0.0
