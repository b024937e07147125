"""Gates ask a person, and nothing leads around what a rule or a person decides."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from backcast.attest.archive import unpacked
from backcast.attest.bundle import bundle
from backcast.attest.verify import verify
from backcast.cli.dispatch import dispatch
from backcast.demo.shell import in_process
from backcast.errors import InvalidRequest, NotValidated, StateConflict
from backcast.model.layer import Layer
from backcast.model.stage import recorded_staged
from backcast.model.states import RunState
from backcast.model.verdict import Outcome
from backcast.testing.shop import Shop
from tests.e2e.test_restage import sale
from tests.e2e.test_rules import HOLD, both, declare, verdict_of
from tests.spark.test_rules import jobs

GATES = """
    gates:
      changed_rows: 20%
      changed_partitions: 50%
      metrics:
        big: {sql: "count_if(revenue > 100)", rises: 100%}
        revenue: {sql: sum(revenue), falls: 10%, per: partition}
        middle: {sql: median(sales), falls: 1%, rises: 1%}
        shops: {sql: sum(sales), by: [shop], falls: 1%, rises: 1%}
"""


@both
def test_a_gate_that_trips_asks_for_a_review_and_so_does_every_stage_after_it(shop: Shop, lake_root: Path) -> None:
    shop.configure(lake_root, live="restage")
    declare(shop, GATES)
    control, run_id, verdict = verdict_of(shop)
    told = {each.name: (each.passed, each.detail) for each in verdict.results}
    assert told["changed rows"] == (False, "8 of 8 rows (100%), 20% pass without a look")
    assert told["changed partitions"] == (False, "4 of 4 partitions (100%), 50% pass without a look")
    assert not told["metric big"][0]
    assert told["metric revenue"] == (True, "in each of 4 partitions")
    assert told["metric middle"] == (True, "20 became 20 (+0.0%)")
    assert told["metric shops"] == (True, "in each of 4 groups")
    assert {each.layer for each in verdict.results} == {Layer.REASONABLENESS}
    assert verdict.outcome is Outcome.REVIEW
    assert control.world.reader().run(run_id).state is RunState.REVIEW

    def reviewed(comment: str) -> None:
        with pytest.raises(NotValidated, match="waits for a person: changed rows"):
            control.publish(run_id)
        with pytest.raises(InvalidRequest, match="it goes on record"):
            control.approve(run_id)
        assert control.approve(run_id, comment=comment).state is RunState.ACCEPTED

    reviewed("the quantity was forgotten")
    # A live row makes it another stage, of which nobody has seen anything.
    sale(shop, "2026-01-04", "NEW")
    before, wanted = shop.rows(), shop.expected()
    reviewed("one more sale")
    assert shop.rows() == before
    made = control.publish(run_id)
    assert shop.rows() == wanted
    evidence = bundle(control.evidence(run_id))
    assert verify(evidence).published == (made.version,)
    reviews = [each.get("review") for each in json.loads(unpacked(evidence)["verdicts.json"])]
    assert "one more sale" in json.dumps(reviews)


def test_all_of_it_is_one_job_over_the_stage_and_one_over_the_base(shop: Shop) -> None:
    """Rules by row and against the base, gates, counts and digests; and one job for the dataset's key."""
    scanned = [line for line in HOLD.splitlines() if any(f"- {kind}:" in line for kind in SCANNED)]
    assert len(scanned) == 11
    gates = dedent(GATES).replace("  changed_rows: 20%\n", "")
    declare(shop, "\n".join(["rules:", *(line.strip() for line in scanned)]) + gates)
    control, run_id, verdict = verdict_of(shop)
    assert (verdict.outcome, len(verdict.results)) == (Outcome.REVIEW, 16)
    assert jobs(shop.spark, lambda: control.validate(run_id)) == 3


SCANNED = ("not_null", "range", "accepted", "pattern", "length", "fresh", "monotonic", "sum", "mean", "drift")


def test_the_first_fill_of_a_window_has_nothing_to_be_compared_with(shop: Shop) -> None:
    declare(
        shop, f"{dedent(GATES).strip()}\nrules:\n  - sum: {{column: sales, tolerance: 0%}}\n  - unique: [day, shop]"
    )
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day >= '2026-01-03' AND day < '2026-01-07'")
    _, _, verdict = verdict_of(shop)
    assert verdict.outcome is Outcome.ACCEPTED
    assert "nothing to compare with" in next(each.detail for each in verdict.results if each.name == "changed rows")


@both
def test_no_door_leads_around_a_failed_rule(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    declare(shop, "rules:\n  - range: {column: sales, max: 9}")
    control, before = shop.open(), shop.rows()
    window = ["--from", "2026-01-03", "--to", "2026-01-04", "--reason", "revenue forgot the quantity"]

    def typed(*arguments: str) -> int:
        with in_process(control):
            return dispatch([*arguments, "--project", str(shop.root)])

    assert typed("backfill", "revenue", *window, "--yes") == NotValidated.exit_code
    (run,) = control.list()
    assert "range sales" in capsys.readouterr().out
    doors = {
        NotValidated: (["publish", run.run_id, "--yes"],),
        StateConflict: (["run", run.run_id], ["retry", run.run_id], ["approve", run.run_id, "--comment", "fine"]),
    }
    for error, commands in doors.items():
        assert [typed(*command) for command in commands] == [error.exit_code] * len(commands)
    assert control.work(run.run_id).state is RunState.REJECTED
    # As if a process had died in the middle of a publish that it should never have begun.
    for state in (RunState.STAGED, RunState.ACCEPTED, RunState.PUBLISHING):
        staged = {"staged": recorded_staged(control.logs(run.run_id))} if state is RunState.STAGED else {}
        control.world.store().runs.transition(control.status(run.run_id).run, state, **staged)
    with pytest.raises(NotValidated):
        control.publish(run.run_id)
    assert control.cancel(run.run_id).state is RunState.CANCELLED
    assert shop.rows() == before
