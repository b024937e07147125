"""The digest that is taken while rows are written may get lost in Spark; then the commit is read once instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from backcast.model.digest import Digest
from backcast.model.states import RunState
from backcast.spark.engine import SparkEngine
from backcast.testing.shop import Shop

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OBSERVED: dict[str, Callable[[], Digest | None]] = {
    "never told": lambda: None,
    "told twice": lambda: Digest(rows=10_000, high="1", low="1"),
}


@pytest.mark.parametrize("told", OBSERVED)
def test_a_digest_that_was_lost_or_counts_other_rows_is_taken_from_the_commit(shop: Shop, told: str) -> None:
    class Forgetful(SparkEngine):
        def observed(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], Digest | None]]:
            return super().observed(rows)[0], OBSERVED[told]

    control = shop.open()
    engine = Forgetful()
    control.world.engine = lambda: engine  # type: ignore[method-assign]  # the rest of the world is the real one
    plan = control.plan(shop.request("2026-01-03", "2026-01-06"))
    assert control.run(plan.run_id).state is RunState.ACCEPTED
    (record,) = control.world.reader().stage_records(plan.run_id)
    assert record.digest.rows == 6
    checks = {check.name: check.passed for check in shop.open().validate(plan.run_id).checks}
    assert checks["digests"], "what was read from the commit is what the stage holds"
