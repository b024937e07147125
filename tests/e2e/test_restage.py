"""Live policy restage: what live rows reached is staged again from newer inputs, the rest is carried over, or refused.

Chunks of the window are staged two by two, so there are two commits: 3 and 4 January, 5 and 6 January.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from backcast.control import ControlPlane
from backcast.errors import NotApproved, NotValidated, ScopeChanged
from backcast.model.amendment import amendments
from backcast.model.pipeline import TableFormat
from backcast.model.stage import recorded_stage, stages_of
from backcast.model.states import RunState
from backcast.testing.faults import at_point, trace
from backcast.testing.shop import Shop
from tests.e2e.test_approval import with_policy

ON_BOTH = pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
"""For what a format does its own way; the rest is one flow for all."""

FIRST, SECOND = ["2026-01-03", "2026-01-04"], ["2026-01-05", "2026-01-06"]


@pytest.fixture
def restaging(shop: Shop, lake_root: Path) -> Shop:
    shop.configure(lake_root, live="restage", chunks_per_job=2)
    return shop


def accepted(shop: Shop) -> tuple[ControlPlane, str]:
    control = shop.open()
    plan = control.plan(shop.request())
    assert not plan.refused, plan.findings
    assert "policy.amendments" in [each.code for each in plan.findings], "an approval covers what the plan says"
    assert control.run(plan.run_id).state is RunState.ACCEPTED, control.status(plan.run_id).because
    return control, plan.run_id


def sale(shop: Shop, day: str, name: str) -> tuple[object, ...]:
    """A sale of one piece in a shop that is new that day: it arrives as input, and live as output."""
    shop.spark.sql(f"INSERT INTO {shop.sales} VALUES (999, '{name}', TIMESTAMP'{day} 12:00:00Z', 1.00, 1)")
    return shop.live(day, name)


def staged_files(control: ControlPlane, run_id: str, days: list[str]) -> set[str]:
    """Files of these days on the stage that the run works on now."""
    reader = control.world.reader()
    manifest, verdict = reader.manifest(run_id), reader.verdict(run_id)
    assert verdict is not None
    target = control.world.target("revenue")
    plans = [each for each in manifest.chunks if each.id in days]
    return {path for plan in plans for path in target.files(verdict.staged, plan.predicate).paths}


@ON_BOTH
def test_only_what_a_live_row_reached_is_computed_again_and_an_undo_keeps_the_row(restaging: Shop) -> None:
    shop, before = restaging, restaging.rows()
    control, run_id = accepted(shop)
    reader = control.world.reader()
    carried, replaced = staged_files(control, run_id, SECOND), staged_files(control, run_id, FIRST)
    tokens = {chunk.chunk_id: chunk.token for chunk in reader.chunks(run_id)}

    live = sale(shop, "2026-01-04", "NEW")
    wanted = shop.expected()
    assert wanted[live] == 1
    publication = control.publish(run_id)

    assert shop.rows() == wanted
    assert publication.amendment == 1
    assert staged_files(control, run_id, SECOND) == carried, "no file was written for what no live row reached"
    assert staged_files(control, run_id, FIRST).isdisjoint(replaced)
    again = [chunk.chunk_id for chunk in reader.chunks(run_id) if chunk.token != tokens[chunk.chunk_id]]
    assert again == FIRST
    (amendment,) = amendments(reader.events(run_id))
    assert list(amendment.touched) == FIRST
    assert amendment.inputs[0].version != reader.manifest(run_id).inputs[0].version
    verdict = reader.verdict(run_id)
    assert verdict is not None
    assert [each.detail for each in verdict.checks if each.name == "live rows present"] == [
        "1 live row found by day, shop"
    ]
    assert control.diff(run_id).base == amendment.base

    control.undo(run_id)
    assert shop.rows() == before + Counter([live])


@ON_BOTH
def test_a_live_row_that_the_inputs_do_not_explain_is_listed_and_nothing_is_published(restaging: Shop) -> None:
    shop = restaging
    control, run_id = accepted(shop)
    shop.live("2026-01-04", "UNKNOWN")
    before = shop.rows()
    with pytest.raises(NotValidated, match="day=2026-01-04, shop=UNKNOWN"):
        control.publish(run_id)
    assert shop.rows() == before
    assert control.status(run_id).run.state is RunState.REJECTED
    assert not control.validate(run_id).accepted, "judged again, it is still missing"
    control.cancel(run_id)
    assert shop.refs() == {"main"}, "both stages are gone"
    assert shop.rows() == before


@ON_BOTH
def test_a_scope_that_live_rows_reach_all_the_time_ends_in_a_refusal_and_later_in_a_publish(restaging: Shop) -> None:
    """Whenever the run was judged another sale arrives; each is in the result once it is quiet."""
    shop = restaging
    control, run_id = accepted(shop)
    sales: list[tuple[object, ...]] = [sale(shop, "2026-01-03", "N0")]

    def one_more(point: str) -> None:
        if point == "validate.after-state":
            sales.append(sale(shop, "2026-01-06" if len(sales) % 2 else "2026-01-03", f"N{len(sales)}"))

    with trace(one_more), pytest.raises(ScopeChanged, match="3 times"):
        control.publish(run_id)
    assert len(sales) == 4
    assert all(shop.rows()[each] == 1 for each in sales)
    assert control.status(run_id).run.state is RunState.ACCEPTED
    wanted = shop.expected()
    assert control.publish(run_id).amendment == 4
    assert shop.rows() == wanted
    assert all(wanted[each] == 1 for each in sales)


def test_an_amendment_that_writes_more_than_was_approved_needs_who_would_have_been_needed(restaging: Shop) -> None:
    shop, matrix = restaging, "matrix: [{needs: [team-lead]}]\n"
    with_policy(shop, matrix)
    control = shop.open()
    manifest = control.plan(shop.request()).manifest
    run_id = manifest.run_id()
    control.approve(run_id)
    assert control.run(run_id).state is RunState.ACCEPTED
    sale(shop, "2026-01-04", "NEW")
    before, wanted = shop.rows(), shop.expected()
    assert manifest.approval is not None
    assert manifest.approval.reach.rows == 8
    with_policy(shop, matrix.replace("}]", "}, {when: {rows: '> 8'}, needs: [director]}]"))
    with pytest.raises(NotApproved, match="director must agree"):
        shop.open().publish(run_id)
    assert shop.rows() == before
    assert control.status(run_id).run.state is RunState.ACCEPTED
    with_policy(shop, matrix)
    assert shop.open().publish(run_id).amendment == 1, "what was approved stands for it"
    assert shop.rows() == wanted


def test_a_row_that_arrives_at_the_moment_of_the_commit_is_restaged_too(restaging: Shop) -> None:
    shop = restaging
    control, run_id = accepted(shop)
    live: list[tuple[object, ...]] = []
    with at_point("publish.before-commit", lambda: live.append(sale(shop, "2026-01-05", "LATE"))):
        control.publish(run_id)
    assert shop.rows() == shop.expected()
    assert shop.rows()[live[0]] == 1
    assert list(amendments(control.logs(run_id))[0].touched) == SECOND


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM {table} WHERE day = '2026-01-04' AND shop = 'S1'", "UPDATE {table} SET sales = 0 WHERE shop = 'S1'"],
    ids=["deleted", "updated"],
)
def test_rows_that_were_changed_in_scope_are_refused_and_not_restaged(restaging: Shop, change: str) -> None:
    shop = restaging
    control, run_id = accepted(shop)
    shop.spark.sql(change.format(table=shop.revenue))
    sale(shop, "2026-01-04", "NEW")
    before = shop.rows()
    with pytest.raises(ScopeChanged, match="left"):
        control.publish(run_id)
    assert shop.rows() == before
    assert amendments(control.logs(run_id)) == ()
    assert control.status(run_id).run.state is RunState.ACCEPTED


def test_after_an_undo_the_run_is_not_restaged_but_refused(restaging: Shop) -> None:
    """What the first publish left in the table must stay findable by its own run."""
    shop = restaging
    control, run_id = accepted(shop)
    control.publish(run_id)
    control.undo(run_id)
    sale(shop, "2026-01-04", "NEW")
    before = shop.rows()
    with pytest.raises(ScopeChanged):
        control.publish(run_id)
    assert shop.rows() == before
    assert control.status(run_id).run.state is RunState.UNDONE


@ON_BOTH
def test_gc_lets_go_of_every_stage_and_every_row_still_reads(restaging: Shop, lake_root: Path) -> None:
    """Published files may lie where an earlier stage wrote them."""
    shop = restaging
    shop.configure(lake_root, live="restage", chunks_per_job=2, undo_window="0s")
    control, run_id = accepted(shop)
    sale(shop, "2026-01-04", "NEW")
    wanted = shop.expected()
    control.publish(run_id)
    first, second = (each.branch for each in stages_of(run_id, control.logs(run_id)))
    assert {first, second} <= shop.refs()
    assert recorded_stage(run_id, control.logs(run_id)).branch == second
    (item,) = control.gc().items
    assert {first, second} <= set(item.refs)
    shop.spark.catalog.clearCache()
    assert shop.rows() == wanted
