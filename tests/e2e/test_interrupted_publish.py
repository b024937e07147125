"""A publish that broke off and cannot go on leaves a run that a person can still end."""

from __future__ import annotations

import pytest

from backcast.errors import Drifted, Unavailable
from backcast.model.states import RunState
from backcast.testing.faults import at_point
from backcast.testing.shop import Shop
from tests.e2e.test_publish import accepted


def break_off() -> None:
    raise Unavailable("the catalog went away")


def test_a_schema_that_moved_after_a_publish_broke_off_lets_the_run_be_cancelled(shop: Shop) -> None:
    control, run_id = accepted(shop)
    with pytest.raises(Unavailable), at_point("publish.after-intent", break_off):
        control.publish(run_id)
    assert control.status(run_id).run.state is RunState.PUBLISHING
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMN note STRING")
    with pytest.raises(Drifted, match="columns"):
        control.publish(run_id)
    assert control.status(run_id).run.state is RunState.ACCEPTED
    assert control.cancel(run_id).state is RunState.CANCELLED
