"""What is under way on a stream, a full replay or a backfill: who may start it meanwhile, what its status says."""

from __future__ import annotations

from contextlib import closing

import pytest

from backcast.control import ControlPlane
from backcast.errors import Failed, LeaseHeld, Refused, StateConflict
from backcast.model import full_replay, stream_backfill
from backcast.model.live import LiveState, LiveStep, StreamStatus, backfill_lease
from backcast.model.run import Holder, Lease
from backcast.model.under_way import refuse_between, refuse_replayed, under_way
from backcast.run.lease import acquire
from backcast.testing.samples import FIRST_DAY
from backcast.testing.store_stream_contract import sample_stream
from tests.unit.desk import Desk, desk
from tests.unit.test_backfill_command import BEGUN, TYPED, interrupted, left
from tests.unit.test_full_replay import BEGUN as REPLAY

__all__ = ["desk"]

_AGAIN = "backcast stream backfill live --from 2025-01-01 --to 2025-01-04"


def told(*names: str) -> list[LiveStep]:
    """Steps of a replay and of a backfill, each begun with its first."""
    begun = {full_replay.BEGUN: REPLAY.as_json(), stream_backfill.BEGUN: BEGUN.as_json()}
    steps = enumerate(names)
    return [LiveStep(stream="live", number=n, at=FIRST_DAY, name=name, data=begun.get(name, {})) for n, name in steps]


def test_a_stream_is_not_started_in_the_middle_of_a_paused_backfill() -> None:
    begun = [stream_backfill.BEGUN]
    refuse_between("live", told())
    refuse_between("live", told(*begun))
    stands = [*begun, stream_backfill.STOPPED, stream_backfill.PUBLISHED]
    with pytest.raises(Refused, match="a backfill of 2025-01-01 to 2025-01-04 has stopped stream live") as error:
        refuse_between("live", told(*stands))
    assert error.value.hint.startswith(f"{_AGAIN} goes on with it, and with --give-up ends it")
    for then in (stream_backfill.VERIFIED, stream_backfill.GIVING_UP, stream_backfill.GIVEN_UP, stream_backfill.DONE):
        refuse_between("live", told(*stands, then))
    refuse_replayed("live", told(*stands))
    with pytest.raises(Refused, match="a full replay has stopped stream live"):
        refuse_replayed("live", told(full_replay.BEGUN, full_replay.STOPPED))


def test_what_has_stopped_the_stream_is_told_before_what_waits_for_it() -> None:
    replay, backfill = [full_replay.BEGUN], [stream_backfill.BEGUN]
    assert under_way(told()) is None
    for names, what, stands in (
        (replay, "a full replay", False),
        (backfill, "a backfill of 2025-01-01 to 2025-01-04", False),
        ([*backfill, *replay], "a full replay", False),
        ([*replay, *backfill, stream_backfill.STOPPED], "a backfill of 2025-01-01 to 2025-01-04", True),
        ([*backfill, *replay, full_replay.STOPPED], "a full replay", True),
    ):
        found = under_way(told(*names))
        assert found is not None, names
        assert (found.what, found.stands) == (what, stands), names


def test_the_status_of_a_stream_says_what_has_stopped_it_and_how_to_go_on(desk: Desk) -> None:
    interrupted(desk, 2)
    code, screen = desk.type("status", "live")
    assert code == 0
    assert "  under way   a backfill of 2025-01-01 to 2025-01-04, which has stopped it\n" in screen
    assert "nobody works on it now\n" in screen
    assert screen.strip().endswith(f"Next  {_AGAIN}")
    world = desk.control.world
    with acquire(world.store().leases, backfill_lease("live"), world.holder(), world.clock, world.ended):
        code, screen = desk.type("status", "live")
    assert "which has stopped it\n" in screen
    assert "nobody works" not in screen
    assert "Next" not in screen, "whoever works on it goes on by himself"
    code, screen = desk.type("start", "live")
    assert (code, desk.starts) == (Refused.exit_code, 0)
    assert "has stopped stream live, and is not over" in screen


def test_one_command_at_a_time_backfills_a_stream(desk: Desk) -> None:
    interrupted(desk, 2)
    other = ControlPlane(desk.control.world)
    with other.stream_backfill_alone("live"):
        code, screen = desk.type(*TYPED, "--give-up")
        assert (code, desk.starts) == (LeaseHeld.exit_code, 0), screen
    assert left(desk) is not None


def test_one_that_is_being_given_up_is_not_gone_on_with(desk: Desk) -> None:
    """Its stream may run again: what is left of it would be done beside a stream that it takes for stopped."""
    interrupted(desk, 2)

    def fails(*_: object, **__: object) -> None:
        raise Failed("the stream did not start")

    with desk.monkeypatch.context() as patch:
        patch.setattr("backcast.cli.stream_steps.started_in_background", fails)
        desk.type(*TYPED, "--give-up")
    with closing(desk.control.world):
        desk.control.refuse_start("live")
        code, screen = desk.type(*TYPED, "--yes")
        assert code == StateConflict.exit_code
        assert f"{_AGAIN} --give-up ends it" in screen
        assert (desk.type(*TYPED, "--give-up")[0], left(desk), desk.starts) == (0, None, 1)


@pytest.mark.parametrize(
    ("recorded", "of", "alive", "state"),
    [
        (LiveState.STARTING, 7, True, "starting"),
        (LiveState.STARTING, 7, False, "died"),
        (LiveState.RUNNING, 7, True, "running"),
        (LiveState.RUNNING, 6, True, "starting"),
        (LiveState.STOPPED, 7, True, "stopping"),
        (LiveState.STOPPED, 6, True, "starting"),
        (LiveState.FAILED, 7, False, "failed"),
    ],
)
def test_what_is_on_record_about_a_process_that_is_gone_tells_nothing_about_the_one_that_has_begun(
    recorded: LiveState, of: int, alive: bool, state: str
) -> None:
    live = sample_stream(recorded).model_copy(update={"token": of})
    holder = Holder(owner="ann", host="here", pid=1, started="1")
    lease = Lease(name="stream/live", token=7, holder=holder, expires_at=FIRST_DAY)
    found = StreamStatus(
        name="live",
        pipeline="daily",
        topic="orders",
        dataset="daily",
        table="t",
        checkpoint="c",
        external=False,
        live=live,
        lease=lease,
        alive=alive,
    )
    assert found.state == state
