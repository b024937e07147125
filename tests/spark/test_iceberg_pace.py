"""Commits to a stage leave a live writer of the table room."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from backcast.model.table import PublishMode, Stage, StageWrite
from backcast.targets.iceberg.pace import BURST, SPAN_SECONDS, seconds_to_wait
from backcast.targets.iceberg.target import IcebergTarget
from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import MERGING, days, frame, open_stage, write
from tests.spark.iceberg_kit import iceberg

if TYPE_CHECKING:
    import pytest
    from pyspark.sql import SparkSession


_WAYS = (
    (PublishMode.REPLACE, False),
    (PublishMode.REPLACE, True),
    (PublishMode.APPEND, False),
    (PublishMode.MERGE, False),
)


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
    assert len(asked := _asked(target, stages[0])) == len(_WAYS)
    assert min(asked) > 0.0, "each way to write takes its pause"
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


def _asked(target: IcebergTarget, stage: Stage) -> list[float]:
    """How long each way to write would rest before it commits."""
    asked: list[float] = []
    rows = target.read(stage.base, days(1, 1))
    for token, (mode, exact) in enumerate(_WAYS, start=BURST + 2):
        write = StageWrite(("c2",), token, days(1, 1), exact, mode=mode, merging=MERGING)
        target.write(
            stage,
            write,
            rows.selectExpr("*", "false AS gone") if mode is PublishMode.MERGE else rows,
            lambda: nullcontext(asked.append),
        )
    return asked
