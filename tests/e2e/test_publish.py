"""Publish and undo beside other writers: nothing lost, nothing doubled, or refused with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from backcast.control import ControlPlane
from backcast.errors import Drifted, NotValidated, Refused, ScopeChanged, UndoRefused
from backcast.model.pipeline import TableFormat
from backcast.model.scope import Predicate
from backcast.model.states import RunState
from backcast.spark.delta.handle import DataFile, Version
from backcast.testing.shop import Shop
from backcast.testing.target_delta import DeltaTable
from backcast.testing.target_iceberg import IcebergTable
from backcast.testing.target_lab import LabTable

ON_BOTH = pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
"""For what a format does its own way; the rest is one flow for all."""
WINDOW = ("2026-01-03", "2026-01-05")


def accepted(shop: Shop, window: tuple[str, str] = WINDOW) -> tuple[ControlPlane, str]:
    """A run that waits for its publish."""
    control = shop.open()
    plan = control.plan(shop.request(*window))
    assert not plan.refused, plan.findings
    assert control.run(plan.run_id).state is RunState.ACCEPTED, control.status(plan.run_id).because
    return control, plan.run_id


def compact(shop: Shop) -> None:
    if shop.format is TableFormat.DELTA:
        shop.spark.sql(f"OPTIMIZE {shop.revenue} ZORDER BY (shop)")
        return
    shop.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{shop.revenue}', options => map('rewrite-all', 'true'))"
    ).collect()


def owned(shop: Shop, name: str) -> LabTable:
    """The table in the hands of its owner."""
    return {TableFormat.DELTA: DeltaTable, TableFormat.ICEBERG: IcebergTable}[shop.format](shop.spark, name)


def test_live_rows_in_scope_stop_a_publish_and_nothing_changes(shop: Shop) -> None:
    control, run_id = accepted(shop)
    shop.live("2026-01-04")
    before = shop.rows()
    with pytest.raises(ScopeChanged) as caught:
        control.publish(run_id)
    assert "1 file (1 row) arrived" in caught.value.message
    assert f"backcast cancel {run_id}" in caught.value.hint
    assert shop.rows() == before
    assert control.status(run_id).run.state is RunState.ACCEPTED


@ON_BOTH
def test_keep_leaves_live_rows_beside_restated_ones_unless_their_keys_meet(shop: Shop, lake_root: Path) -> None:
    shop.configure(lake_root, live="keep")
    control, run_id = accepted(shop)
    restated = shop.expected(*WINDOW)
    live = shop.live("2026-01-04", shop="NEW")
    control.publish(run_id)
    assert shop.rows() == restated + Counter([live])

    control, second = accepted(shop)
    shop.live("2026-01-04", shop="S1")
    before = shop.rows()
    with pytest.raises(ScopeChanged, match="S1"):
        control.publish(second)
    assert shop.rows() == before


def test_a_scope_that_restates_to_nothing_becomes_empty_and_comes_back(shop: Shop) -> None:
    shop.spark.sql(f"DELETE FROM {shop.sales} WHERE to_date(sold_at) = '2026-01-03'")
    before = shop.rows()
    control, run_id = accepted(shop)
    assert control.diff(run_id).count("removed") == 1
    control.publish(run_id)
    assert shop.spark.sql(f"SELECT * FROM {shop.revenue} WHERE day = '2026-01-03'").isEmpty()
    assert shop.rows() == shop.expected(*WINDOW)
    control.undo(run_id)
    assert shop.rows() == before


@ON_BOTH
def test_a_run_is_published_once_undone_once_and_can_be_published_again(shop: Shop) -> None:
    before = shop.rows()
    control, run_id = accepted(shop)
    wanted = shop.expected(*WINDOW)
    published = control.publish(run_id)
    assert control.publish(run_id) == published, "who repeats it because an answer was lost gets that answer"
    assert shop.rows() == wanted
    undone = control.undo(run_id)
    assert control.undo(run_id) == undone
    assert shop.rows() == before
    assert control.publish(run_id).generation == 2
    assert shop.rows() == wanted
    control.undo(run_id)
    assert shop.rows() == before


def test_a_compaction_before_publish_is_no_conflict_and_the_undo_restores_its_files(shop: Shop) -> None:
    for shop_name in ("X", "Y"):
        shop.live("2026-01-03", shop_name)
    before = shop.rows()
    control, run_id = accepted(shop)
    compact(shop)
    wanted = shop.expected(*WINDOW)
    control.publish(run_id)
    assert shop.rows() == wanted
    control.undo(run_id)
    assert shop.rows() == before


@ON_BOTH
def test_undo_after_a_compaction_is_refused_unless_it_may_rewrite(shop: Shop) -> None:
    before = shop.rows()
    control, run_id = accepted(shop)
    control.publish(run_id)
    live = [shop.live("2026-01-03", "LATE"), shop.live("2026-01-09", "LATE")]
    compact(shop)
    published = shop.rows()
    with pytest.raises(UndoRefused, match="compacted") as caught:
        control.undo(run_id)
    assert "--rewrite" in caught.value.hint
    assert shop.rows() == published
    assert control.status(run_id).run.state is RunState.PUBLISHED
    control.undo(run_id, rewrite=True)
    assert shop.rows() == before + Counter(live)


@pytest.mark.parametrize("shop", [TableFormat.DELTA], indirect=True)
def test_an_undo_lists_the_files_of_a_table_with_a_history_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each listing is a Spark job over the whole log; what came since the base is read from its commits."""
    for _ in range(10):
        shop.live("2026-01-08")
    control, run_id = accepted(shop)
    control.publish(run_id)
    shop.live("2026-01-08")
    listed: list[int] = []
    whole = Version._listed

    def counted(version: Version, predicate: Predicate) -> Iterable[DataFile]:
        listed.append(version.number)
        return whole(version, predicate)

    monkeypatch.setattr(Version, "_listed", counted)
    shop.open().undo(run_id)
    assert len(listed) == 1, listed


def test_rewriting_refuses_when_a_published_row_was_changed_since(shop: Shop) -> None:
    control, run_id = accepted(shop)
    control.publish(run_id)
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day = '2026-01-03' AND shop = 'S0'")
    after = shop.rows()
    for rewrite in (False, True):
        with pytest.raises(UndoRefused):
            control.undo(run_id, rewrite=rewrite)
    assert shop.rows() == after, "a deleted row does not come back"


@ON_BOTH
def test_a_row_of_a_published_file_that_is_only_masked_does_not_come_back(shop: Shop) -> None:
    """By a deletion vector or a delete file: the published file itself is still live."""
    control, run_id = accepted(shop)
    control.publish(run_id)
    masking = {TableFormat.DELTA: "'delta.enableDeletionVectors' = 'true'"}
    properties = masking.get(shop.format, "'write.delete.mode' = 'merge-on-read'")
    shop.spark.sql(f"ALTER TABLE {shop.revenue} SET TBLPROPERTIES ({properties})")
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day = '2026-01-03' AND shop = 'S0'")
    after = shop.rows()
    with pytest.raises(UndoRefused, match="by delete files"):
        control.undo(run_id)
    with pytest.raises(UndoRefused, match="changed or deleted"):
        control.undo(run_id, rewrite=True)
    assert shop.rows() == after
    assert control.status(run_id).run.state is RunState.PUBLISHED


@ON_BOTH
def test_undo_is_refused_for_good_once_a_replaced_file_is_gone_from_storage(shop: Shop) -> None:
    """Also where a compaction alone would ask for a rewrite: that reads the same files."""
    control, run_id = accepted(shop)
    publication = control.publish(run_id)
    Path(publication.removed[0].removeprefix("file:")).unlink()
    published = shop.rows()
    for meanwhile in (lambda: None, lambda: compact(shop)):
        meanwhile()
        for rewrite in (False, True):
            with pytest.raises(UndoRefused, match="gone from storage"):
                control.undo(run_id, rewrite=rewrite)
    assert shop.rows() == published
    assert control.status(run_id).run.state is RunState.PUBLISHED


def test_a_changed_schema_stops_publish_and_new_runs_of_the_old_plan(shop: Shop) -> None:
    control, run_id = accepted(shop)
    before = shop.rows()
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMN note STRING")
    with pytest.raises(Drifted, match="columns"):
        control.publish(run_id)
    verdict = control.validate(run_id)
    # Rows have a column more where they are read than where they were written.
    assert [each.name for each in verdict.checks if not each.passed] == ["schema", "digests"]
    assert control.status(run_id).run.state is RunState.REJECTED
    assert Counter(row[:4] for row in shop.rows()) == before


def test_a_rejected_stage_cannot_be_published_by_any_door(shop: Shop) -> None:
    transform = shop.root / "pipelines" / "revenue.py"
    doubled = transform.read_text().replace("return (", "return sales.transform(lambda rows: rows) and (")
    doubled = doubled.replace(
        '.alias("revenue"))', '.alias("revenue"))\n        .crossJoin(ctx.spark.range(2)).drop("id")'
    )
    transform.write_text(doubled.replace("sales.transform(lambda rows: rows) and ", ""))
    before = shop.rows()
    control = shop.open()
    run_id = control.plan(shop.request(*WINDOW)).run_id
    run = control.run(run_id)
    assert run.state is RunState.REJECTED
    assert "key unique" in run.detail
    with pytest.raises(NotValidated, match="key unique"):
        control.publish(run_id)
    assert not control.validate(run_id).accepted
    with pytest.raises(NotValidated, match="key unique"):
        shop.open().publish(run_id)
    with pytest.raises(Refused):
        shop.open().backfill(shop.request("2026-01-07", "2026-01-08"))
    assert shop.rows() == before


@ON_BOTH
def test_a_newer_run_supersedes_also_after_a_compaction_and_its_undo_hands_back(shop: Shop) -> None:
    """To whom it belongs then: a third run may have taken over meanwhile."""
    control, first = accepted(shop)
    control.publish(first)
    compact(shop)
    published = shop.rows()
    control, second = accepted(shop, ("2026-01-04", "2026-01-06"))
    control.publish(second)
    for rewrite in (False, True):
        with pytest.raises(UndoRefused, match=second):
            control.undo(first, rewrite=rewrite)
    control, third = accepted(shop, ("2026-01-03", "2026-01-04"))
    control.publish(third)
    control.undo(second)
    assert control.status(second).run.state is RunState.UNDONE
    with pytest.raises(UndoRefused, match=third):
        control.undo(first)
    control.undo(third)
    assert control.status(first).run.state is RunState.PUBLISHED
    assert shop.rows() == published
