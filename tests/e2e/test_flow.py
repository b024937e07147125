"""The whole flow, in-process: plan, run, diff, publish beside a live writer, undo, gc."""

from __future__ import annotations

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.shop import Shop


@pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
def test_a_restatement_from_plan_to_undo_keeps_every_live_row(shop: Shop) -> None:
    control = shop.open()
    before = shop.rows()
    plan = control.plan(shop.request())
    assert not plan.refused, plan.findings
    assert [chunk.id for chunk in plan.manifest.chunks] == ["2026-01-03", "2026-01-04", "2026-01-05", "2026-01-06"]
    assert shop.rows() == before

    run = control.run(plan.run_id)
    assert run.state is RunState.ACCEPTED, control.status(plan.run_id)
    assert shop.rows() == before, "readers see nothing before publish"
    read = {(each.inputs[0].rows, each.inputs[0].exact) for each in control.world.reader().chunks(plan.run_id)}
    assert read == ({(40, True)} if shop.format is TableFormat.ICEBERG else {(400, False)}), "of days, of no partitions"
    diff = control.diff(plan.run_id)
    assert diff.count("changed") == 4

    live = shop.live("2026-01-09")
    wanted = shop.expected()
    publication = control.publish(plan.run_id)
    assert shop.rows() == wanted
    assert wanted[live] == 1
    assert control.status(plan.run_id).run.state is RunState.PUBLISHED

    in_scope = shop.live("2026-01-04")
    control.undo(plan.run_id)
    after = shop.rows()
    assert after == before + type(before)([live, in_scope])
    assert publication.version != control.status(plan.run_id).publication.undo_version  # type: ignore[union-attr]
