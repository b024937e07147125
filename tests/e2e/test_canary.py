"""Before all of history is touched: a few chunks first, and some of them twice."""

from __future__ import annotations

from collections import Counter

import pytest

from backcast.errors import Failed, InvalidRequest, StateConflict
from backcast.held import HeldRun
from backcast.model.canary import Canary
from backcast.model.states import RunState
from backcast.model.verdict import Outcome
from backcast.testing.shop import Shop
from tests.e2e.test_publish import ON_BOTH

WEEK = ("2026-01-02", "2026-01-09")


def changed(shop: Shop, old: str, new: str, file: str = "backcast.yaml") -> None:
    path = shop.root / file
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def validation(shop: Shop, settings: str) -> None:
    changed(shop, "    output: revenue\n", f"    output: revenue\n    validation: {settings}\n")


@ON_BOTH
def test_a_canary_is_staged_and_judged_alone_and_the_run_goes_on_when_told(shop: Shop) -> None:
    before, wanted = shop.rows(), shop.expected(*WEEK)
    control = shop.open()
    run_id = control.plan(shop.request(*WEEK)).run_id
    assert control.run(run_id, canary=Canary(number=2)).state is RunState.RUNNING
    status = control.status(run_id)
    assert status.strip == "#:::::#"
    assert status.canary is not None
    assert status.canary.outcome is Outcome.ACCEPTED
    assert status.canary.chunks == ("2026-01-02", "2026-01-08")
    assert "wait for you" in status.because
    assert control.wait(run_id, timeout=5).state is RunState.RUNNING
    diff = control.diff(run_id)
    assert [(each.chunk, each.status) for each in diff.partitions] == [
        ("2026-01-02", "changed"),
        ("2026-01-08", "changed"),
    ]
    assert not diff.publishable
    assert shop.rows() == before
    with pytest.raises(StateConflict, match="had its canary"):
        control.run(run_id, canary=Canary(number=2))
    with pytest.raises(StateConflict):
        control.publish(run_id)

    assert shop.open().run(run_id).state is RunState.ACCEPTED
    control.publish(run_id)
    assert shop.rows() == wanted
    evidence = control.evidence(run_id)
    assert evidence.whole_diff == {}, "only the canary's was looked at"
    days = Counter(str(row[0]) for row in before.elements())
    assert evidence.rows_before == {chunk.id: days[chunk.id] for chunk in evidence.manifest.chunks}


def test_a_canary_that_is_rejected_fails_the_run_and_nothing_more_is_computed(shop: Shop) -> None:
    twice = (
        'sales.unionByName(sales.withColumn("shop", F.lit("S1"))).groupBy("shop", F.to_date("sold_at").alias("day"))'
    )
    doubled = f"{twice}.agg(F.count(F.lit(1)).alias('sales'), F.sum('amount').alias('revenue'))"
    keys = f"{doubled}.unionByName({doubled})"
    changed(
        shop,
        "sales.groupBy(F.to_date",
        f"{keys}\n    )\n    unused = (\n        sales.groupBy(F.to_date",
        "pipelines/revenue.py",
    )
    control = shop.open()
    run_id = control.plan(shop.request(*WEEK)).run_id
    assert control.run(run_id, canary=Canary(names=("2026-01-05",))).state is RunState.FAILED
    status = control.status(run_id)
    assert "the canary was rejected: key unique" in status.because
    assert status.strip == ":::#:::"
    assert status.next_command == f"backcast cancel {run_id}"
    with pytest.raises(StateConflict, match=r"the canary of .* was rejected"):
        control.retry(run_id)
    assert control.status(run_id).strip == ":::#:::"
    assert control.cancel(run_id).state is RunState.CANCELLED


def test_a_row_that_moves_to_another_chunk_is_no_double_of_its_old_copy_there(shop: Shop) -> None:
    shop.spark.sql(f"DELETE FROM {shop.revenue}")
    shop.spark.sql(
        f"""INSERT INTO {shop.revenue} SELECT date_add(to_date(sold_at), 1), concat(shop, ' ', to_date(sold_at)),
        count(*), CAST(sum(amount) AS DECIMAL(30,2)) FROM {shop.sales} GROUP BY 1, 2"""
    )
    changed(
        shop, '"shop")\n', 'F.concat_ws(" ", "shop", F.to_date("sold_at")).alias("shop"))\n', "pipelines/revenue.py"
    )
    changed(shop, "    key: [day, shop]\n", "    key: [day, shop]\n    rules:\n      - unique: [shop]\n")
    control = shop.open()
    run_id = control.plan(shop.request(*WEEK)).run_id
    assert control.run(run_id, canary=Canary(names=("2026-01-05",))).state is RunState.RUNNING
    canary = control.status(run_id).canary
    assert canary is not None
    assert canary.outcome is Outcome.ACCEPTED
    # The old copy of the last day's rows lies a day later, where the run replaces nothing.
    assert control.run(run_id).state is RunState.REJECTED
    assert "again outside the scope" in control.status(run_id).because


def test_no_worker_goes_on_where_a_canary_waits_for_a_person(shop: Shop) -> None:
    control = shop.open()
    run_id = control.plan(shop.request(*WEEK)).run_id
    control.run(run_id, canary=Canary(number=2))
    assert control.work(run_id, patience=0).state is RunState.RUNNING
    with control._held(run_id) as lease, pytest.raises(StateConflict, match="waits for a person"):
        HeldRun(control.world, run_id, lease).run(release=False)
    assert control.status(run_id).strip == "#:::::#"
    assert control.run(run_id).state is RunState.ACCEPTED


def test_a_canary_that_was_interrupted_is_finished_first(shop: Shop) -> None:
    changed(
        shop,
        "    return (",
        '    if ctx.execution == "BACKFILL":\n        raise ValueError("not yet")\n    return (',
        "pipelines/revenue.py",
    )
    control = shop.open()
    run_id = control.plan(shop.request(*WEEK)).run_id
    with pytest.raises(Failed, match="not yet"):
        control.run(run_id, canary=Canary(number=1))
    assert control.status(run_id).strip == ":::x:::"
    with pytest.raises(Failed, match="not yet"):
        control.retry(run_id)
    assert control.status(run_id).strip == ":::x:::"


@pytest.mark.parametrize(
    ("canary", "told"),
    [
        (Canary(number=7), "all of the run"),
        (Canary(number=0), "1 to 100 chunks"),
        (Canary(names=("2026-02-01",)), "no chunk 2026-02-01"),
    ],
)
def test_a_canary_that_cannot_be_is_refused_before_anything_begins(shop: Shop, canary: Canary, told: str) -> None:
    control = shop.open()
    run_id = control.plan(shop.request(*WEEK)).run_id
    with pytest.raises(InvalidRequest, match=told):
        control.run(run_id, canary=canary)
    assert control.status(run_id).run.state is RunState.PLANNED


@ON_BOTH
def test_what_comes_out_the_same_twice_is_accepted(shop: Shop) -> None:
    validation(shop, "{recompute: 2}")
    control = shop.open()
    run_id = control.plan(shop.request()).run_id
    assert control.run(run_id).state is RunState.ACCEPTED
    verdict = control.status(run_id).verdict
    assert verdict is not None
    check = next(each for each in verdict.checks if each.name == "computed twice")
    assert check.detail == "2 chunks with 4 rows came out the same"


def test_what_depends_on_the_order_of_rows_is_rejected(shop: Shop) -> None:
    """`first` takes whatever comes first: allowed by name in the plan, and found by computing twice."""
    changed(
        shop,
        'F.sum(F.col("amount") * F.col("quantity"))',
        'F.first(F.col("amount").cast("decimal(30,2)"))',
        "pipelines/revenue.py",
    )
    validation(shop, "{recompute: 3}\n    nondeterministic: [first]")
    control = shop.open()
    plan = control.plan(shop.request())
    assert not plan.refused, plan.findings
    assert control.run(plan.run_id).state is RunState.REJECTED
    assert "the second time" in control.status(plan.run_id).because


@ON_BOTH
def test_a_rejected_stage_is_kept_or_goes_at_once(shop: Shop) -> None:
    changed(shop, '"shop")', 'F.lit(None).cast("string").alias("shop"))', "pipelines/revenue.py")
    untouched = shop.refs()
    control = shop.open()
    halted = control.run(control.plan(shop.request()).run_id)
    assert halted.state is RunState.REJECTED
    assert shop.refs() > untouched
    control.cancel(halted.run_id)
    validation(shop, "{on_failure: discard}")
    control = shop.open()
    gone = control.run(control.plan(shop.request()).run_id)
    assert gone.state is RunState.CANCELLED
    assert "rejected, and discarded: key not null" in gone.detail
    assert shop.refs() == untouched
    # A worker finishes what a process began that died, and does the same.
    run_id, runs = control.plan(shop.request()).run_id, control.world.store().runs
    approved = runs.transition(runs.run(run_id), RunState.APPROVED)
    runs.transition(approved, RunState.RUNNING, base=control.world.target("revenue").facts().version)
    assert control.work(run_id).state is RunState.CANCELLED
    assert shop.refs() == untouched
