"""What must be true before and after a publish: keys without nulls, and the table holding what was validated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date

import pytest

from backcast.errors import OutcomeUnknown
from backcast.model.run import lease_name
from backcast.model.states import RunState
from backcast.model.table import Change
from backcast.targets.iceberg.target import IcebergTarget
from backcast.testing.shop import Shop
from tests.e2e.test_publish import WINDOW, accepted


def test_a_null_in_the_key_rejects_the_stage(shop: Shop) -> None:
    transform = shop.root / "pipelines" / "revenue.py"
    nulls = 'sales.withColumn("shop", F.when(F.col("shop") != "S1", F.col("shop"))).groupBy'
    transform.write_text(transform.read_text().replace("sales.groupBy", nulls))
    control = shop.open()
    run = control.run(control.plan(shop.request(*WINDOW)).run_id)
    assert run.state is RunState.REJECTED
    assert "key not null: 1 row with a null in day, shop" in run.detail


def test_a_commit_that_misses_a_file_is_found_when_the_table_is_read_back(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that puts in one file less than it was told stands for any defect behind the port."""
    before = shop.rows()
    control, run_id = accepted(shop)
    commit = IcebergTarget.commit

    def careless(self: IcebergTarget, change: Change) -> str:
        return commit(self, replace(change, add=change.add - {min(change.add)}))

    with monkeypatch.context() as patched:
        patched.setattr(IcebergTarget, "commit", careless)
        with pytest.raises(OutcomeUnknown, match="does not hold what was validated"):
            control.publish(run_id)
    assert [each.name for each in control.logs(run_id)].count("publish.read-back-differs") == 1
    assert "does not hold what was validated" in control.status(run_id).because
    with pytest.raises(OutcomeUnknown, match="does not hold what was validated"):
        control.publish(run_id)
    # The lease is kept for as long as a commit could still be under way.
    held = control.world.reader().holder(lease_name(run_id))
    assert held is not None
    control.world.store().leases.release(held)
    shop.open().undo(run_id)
    assert shop.rows() == before


def test_listed_days_without_the_excluded_ones_are_restated_and_nothing_else(shop: Shop) -> None:
    asked = tuple(date(2026, 1, day) for day in (3, 5, 6))
    restated = {asked[0], asked[2]}
    old, new = shop.rows(), shop.expected("2026-01-01", "2026-01-11")
    control = shop.open()
    request = shop.request().model_copy(update={"start": None, "end": None, "dates": asked, "exclude": (asked[1],)})
    plan = control.plan(request)
    assert [chunk.id for chunk in plan.manifest.chunks] == sorted(map(str, restated))
    assert control.run(plan.run_id).state is RunState.ACCEPTED
    control.publish(plan.run_id)
    wanted = [row for row in old.elements() if row[0] not in restated]
    assert shop.rows() == Counter([*wanted, *(row for row in new.elements() if row[0] in restated)])
