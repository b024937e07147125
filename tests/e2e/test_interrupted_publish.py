"""A publish that broke off and cannot go on leaves a run that a person can still end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from backcast.control import ControlPlane
from backcast.errors import Drifted, Refused, StateConflict, Unavailable
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.faults import at_point
from backcast.testing.shop import Shop
from tests.e2e.test_publish import accepted


def break_off() -> None:
    raise Unavailable("the catalog went away")


def allow_removals(shop: Shop, allowed: bool) -> None:
    shop.spark.sql(f"ALTER TABLE {shop.revenue} SET TBLPROPERTIES ('delta.appendOnly' = '{str(not allowed).lower()}')")


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


def test_a_publish_that_broke_off_is_cancelled_only_if_it_did_not_land(shop: Shop) -> None:
    control, run_id = accepted(shop)
    with pytest.raises(Unavailable), at_point("publish.after-intent", break_off):
        control.publish(run_id)
    assert control.cancel(run_id).state is RunState.CANCELLED
    control, run_id = accepted(shop)
    with pytest.raises(Unavailable), at_point("publish.after-commit", break_off):
        control.publish(run_id)
    published = shop.rows()
    with pytest.raises(StateConflict, match="has landed") as caught:
        control.cancel(run_id)
    assert f"backcast publish {run_id}" in caught.value.hint
    control.publish(run_id)
    assert shop.rows() == published


@pytest.mark.parametrize("shop", [TableFormat.DELTA], indirect=True)
def test_what_delta_refuses_before_it_writes_is_a_refusal_and_no_unknown_outcome(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner forbids removals after the plan. Seen by us, or else by Delta, it puts the run back where it was."""
    control, run_id = accepted(shop)
    before = shop.rows()
    allow_removals(shop, False)
    _refused_twice(control.publish, control, run_id, monkeypatch)
    assert control.status(run_id).run.state is RunState.ACCEPTED
    assert shop.rows() == before
    allow_removals(shop, True)
    control.publish(run_id)
    published = shop.rows()
    allow_removals(shop, False)
    _refused_twice(control.undo, control, run_id, monkeypatch)
    assert control.status(run_id).run.state is RunState.PUBLISHED
    assert shop.rows() == published
    allow_removals(shop, True)
    with pytest.raises(Unavailable), at_point("undo.after-intent", break_off):
        control.undo(run_id)
    assert control.cancel(run_id).state is RunState.PUBLISHED, "the undo alone is given up"
    control.undo(run_id)
    assert shop.rows() == before


def _refused_twice(
    verb: Callable[[str], object], control: ControlPlane, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Refused, match=r"since the plan .* sets delta.appendOnly") as caught:
        verb(run_id)
    assert "UNSET TBLPROPERTIES" in caught.value.hint
    state = control.status(run_id).run.state
    with monkeypatch.context() as blind:
        blind.setattr("backcast.targets.delta.publish.refuse_unfit", lambda *_: None)
        with pytest.raises(Refused, match=r"nothing was written: .DELTA_CANNOT_MODIFY_APPEND_ONLY"):
            verb(run_id)
    assert control.status(run_id).run.state is state
