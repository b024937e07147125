"""Gaps and doubles of any dataset, found without a run; and the table after a publish."""

from __future__ import annotations

from collections import Counter

import pytest

from backcast.cli.dispatch import dispatch
from backcast.demo.shell import in_process
from backcast.errors import InvalidRequest, StateConflict, UnknownName
from backcast.model.time import Grain
from backcast.testing.shop import Shop
from tests.e2e.test_canary import changed
from tests.e2e.test_publish import ON_BOTH, accepted


@ON_BOTH
def test_gaps_and_doubles_of_a_dataset_are_found(shop: Shop) -> None:
    assert shop.open().check("revenue").sound
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day IN ('2026-01-04', '2026-01-05', '2026-01-08')")
    shop.live("2026-01-02", shop="S1")
    found = shop.open().check("revenue")
    assert not found.sound
    assert [(f"{gap.window.start:%m-%d}", gap.pieces) for gap in found.gaps] == [("01-04", 2), ("01-08", 1)]
    assert found.keys is not None
    assert (found.keys.doubles, found.keys.nulls) == (1, 0)
    assert found.keys.example == "day=2026-01-02, shop=S1"
    assert [f"{each.start:%m-%d} {each.end:%m-%d}" for each in found.keys.where] == ["01-02 01-03"]
    assert (found.rows, found.pieces, found.usual) == (15, 10, 2)
    assert found.pipelines == found.restated_by == ("revenue",)
    later = shop.open().check("revenue", start="2026-01-09", end="2026-01-12")
    assert [(f"{gap.window.start:%m-%d}", gap.pieces) for gap in later.gaps] == [("01-11", 1)]


def test_a_masked_key_is_not_shown_and_half_a_window_is_refused(shop: Shop) -> None:
    changed(shop, "    key: [day, shop]\n", "    key: [day, shop]\n    masked: [Shop]\n")
    shop.live("2026-01-02", shop="S1")
    control = shop.open()
    found = control.check("revenue")
    assert found.keys is not None
    assert (found.keys.doubles, found.keys.example) == (1, "***")
    for window in ({"start": "2026-01-02"}, {"end": "2026-01-02"}, {"start": "2026-01-03", "end": "2026-01-02"}):
        with pytest.raises(InvalidRequest):
            control.check("revenue", **window)
    changed(shop, "masked: [Shop]", "masked: [shops]")
    with pytest.raises(UnknownName, match="`masked` of dataset revenue names column 'shops'"):
        shop.open().check("revenue")


def test_hours_of_a_zone_are_counted_by_its_own_clock(shop: Shop) -> None:
    """Sales lie in the first four hours of a UTC day: in New York that is the evening before."""
    changed(shop, "kind: timestamp}, grain: day}", "kind: timestamp, zone: America/New_York}, grain: hour, key: [id]}")
    found = shop.open().check("sales", start="2025-12-31T19:00", end="2026-01-01T00:00")
    assert found.grain is Grain.HOUR
    assert found.rows == 40
    assert [gap.pieces for gap in found.gaps] == [4]


@ON_BOTH
def test_the_table_is_watched_after_a_publish_and_a_failure_proposes_the_undo(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(shop, "undo_window: 7d}", "undo_window: 7d, watch: 2s}")
    control, run_id = accepted(shop)
    with pytest.raises(StateConflict, match="only what is published"):
        control.watch(run_id)
    before = shop.rows()
    control.publish(run_id)
    status = control.status(run_id)
    assert status.watch is not None
    assert status.because == "published; readers see the new rows"
    seen = control.watch(run_id, every=0.5)
    assert not seen.failed
    assert seen.looks >= 1
    live = shop.live("2026-01-04", shop="S1")
    assert control.status(run_id).because == "published; readers see the new rows"
    with in_process(control):
        assert dispatch(["watch", run_id, "--once", "--project", str(shop.root)]) == 3
    assert "FAILED" in capsys.readouterr().out
    seen = control.watch(run_id, once=True)
    assert seen.failed
    assert seen.newest is not None
    assert [check.name for check in seen.newest.checks if not check.passed] == ["key unique"]
    status = control.status(run_id)
    assert status.watch is not None
    assert status.watch.failed
    assert status.because == "published, and the newest look at the table failed: key unique"
    assert status.next_command == f"backcast undo {run_id}"
    control.undo(run_id)
    assert shop.rows() == before + Counter([live])
    assert control.status(run_id).watch is None
