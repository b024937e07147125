"""What others do later cannot hurt: expiry in both ways, orphan removal and compaction after publish, undo and gc."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from backcast.errors import UndoRefused
from backcast.model.pipeline import TableFormat
from backcast.testing.shop import Shop
from tests.e2e.test_publish import WINDOW, accepted, compact, owned

CLEANED = pytest.mark.parametrize(
    ("shop", "how"),
    [
        pytest.param(TableFormat.ICEBERG, "expire_snapshots", id="iceberg-procedure"),
        pytest.param(TableFormat.ICEBERG, "the core API", id="iceberg-core"),
        pytest.param(TableFormat.DELTA, "VACUUM LITE", id="delta"),
    ],
    indirect=["shop"],
)


def others_clean_up(shop: Shop, how: str, *, harshly: bool = True) -> None:
    """Everything a table's owner may run at night, with the harshest settings that leave an undo alone."""
    table = owned(shop, shop.revenue)
    if shop.format is TableFormat.DELTA and not harshly:
        table.people.sql(f"VACUUM {shop.revenue} {how.removeprefix('VACUUM')}").collect()
        return
    table.expire(how)


@CLEANED
def test_inside_the_undo_window_nothing_that_others_clean_takes_the_undo_away(shop: Shop, how: str) -> None:
    """Of a Delta table: nothing that its own retention allows."""
    before = shop.rows()
    control, run_id = accepted(shop)
    control.publish(run_id)
    wanted = shop.rows()
    live = shop.live("2026-01-09")
    others_clean_up(shop, how, harshly=False)
    assert shop.rows() == wanted + type(wanted)([live])
    control.undo(run_id)
    others_clean_up(shop, how, harshly=False)
    assert shop.rows() == before + type(before)([live])
    control.publish(run_id)
    others_clean_up(shop, how, harshly=False)
    assert shop.rows() == wanted + type(wanted)([live])


@CLEANED
@pytest.mark.parametrize("undone", [False, True], ids=["published", "published and undone"])
def test_after_gc_every_row_still_reads_whatever_others_clean(
    shop: Shop, lake_root: Path, how: str, undone: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then plans say that nobody runs it, days after it could have."""
    shop.configure(lake_root, undo_window="0s")
    control, run_id = accepted(shop)
    control.publish(run_id)
    if undone:
        control.undo(run_id)
    wanted = shop.rows()
    if not undone:
        monkeypatch.setattr("backcast.collection._LATE", timedelta(0))
        told = control.plan(shop.request(*WINDOW), record=False).findings
        assert "target.gc-overdue" in {each.code for each in told}
    (item,) = control.gc(dry_run=True).items
    assert item.files_deleted is None
    assert shop.refs() > {"main"}
    (item,) = control.gc().items
    assert item.run_id == run_id
    if shop.format is TableFormat.ICEBERG:
        assert shop.refs() == {"main"}, "nothing of ours stays"
    assert control.gc().items == ()
    live = shop.live("2026-01-09")
    others_clean_up(shop, how)
    compact(shop)
    others_clean_up(shop, how)
    assert shop.rows() == wanted + type(wanted)([live])
    if not undone:
        with pytest.raises(UndoRefused, match="window"):
            control.undo(run_id)


def test_files_that_an_undo_brings_back_keep_their_statistics(shop: Shop) -> None:
    query = f"SELECT file_path, record_count, lower_bounds, upper_bounds FROM {shop.revenue}.files"
    before = {row[0]: row for row in shop.spark.sql(query).collect()}
    control = shop.open()
    run_id = control.backfill(shop.request("2026-01-03", "2026-01-05")).run_id
    control.undo(run_id)
    assert {row[0]: row for row in shop.spark.sql(query).collect()} == before
