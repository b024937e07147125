"""Approval, budget and estimate over real tables: what is refused before, what stops during, what goes through."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from backcast.attest.archive import unpacked
from backcast.attest.bundle import bundle
from backcast.cli.dispatch import dispatch
from backcast.demo.shell import in_process
from backcast.errors import NotApproved, OverBudget, PlanRefused
from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.project.account import os_user
from backcast.testing.shop import Shop

REASON = "revenue forgot the quantity"


def with_policy(shop: Shop, more: str = "") -> None:
    me = os_user()
    roles = ", ".join(f"{role}: ['{me}']" for role in ("team-lead", "data-lead", "manager", "director"))
    (shop.root / "policy.yaml").write_text(f"roles: {{{roles}}}\n{more}")
    config = shop.root / "backcast.yaml"
    if "policy:" not in config.read_text():
        config.write_text(config.read_text() + "policy: policy.yaml\n")


def test_from_plan_to_publish_at_the_terminal_with_an_approval(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_policy(shop, "prices: {per_million_rows: 0.5..2, currency: EUR}\n")
    monkeypatch.setenv("LOGNAME", "mallory")
    before, expected = shop.rows(), shop.expected()
    control = shop.open()

    def typed(code: int, *arguments: str) -> str:
        with in_process(control):
            assert dispatch([*arguments, "--project", str(shop.root)]) == code
        captured = capsys.readouterr()
        return " ".join((captured.out + captured.err).split())

    window = ("--from", "2026-01-03", "--to", "2026-01-07")
    page = typed(0, "plan", "revenue", *window, "--reason", REASON)
    run_id = control.list()[0].run_id
    assert "approval team-lead, 1 person for 4 days, replace an approval counts for 7 days" in page
    assert "EUR" in page
    assert f"Next backcast approve {run_id} --as team-lead" in page
    need = control.status(run_id).manifest.approval
    assert need is not None
    assert os_user() in need.planned_by, "not what a variable says"

    refused = typed(3, "run", run_id)
    assert "error[run.not-approved]" in refused
    assert f"backcast approve {run_id} --as team-lead" in refused
    assert control.status(run_id).run.state is RunState.PLANNED
    page = typed(0, "approve", run_id, "--as", "team-lead", "--comment", "the fix is right")
    assert f"✓ {os_user()} as team-lead: the fix is right" in page
    assert "APPROVED" in page
    typed(0, "run", run_id)
    assert shop.rows() == before
    typed(0, "publish", run_id)
    assert shop.rows() == expected
    (agreed,) = json.loads(unpacked(bundle(control.evidence(run_id)))["approvals.json"])
    assert {name: agreed["data"][name] for name in ("role", "by", "how", "account", "comment")} == {
        "role": "team-lead",
        "by": os_user(),
        "how": "os-user",
        "account": os_user(),
        "comment": "the fix is right",
    }

    page = typed(0, "estimate", "revenue", *window)
    assert "1 finished run took" in page
    planned = json.loads(typed(0, "estimate", "revenue", *window, "--json"))
    assert planned["rows_low"] <= planned["output_rows"] == 8 <= planned["rows_high"]
    assert planned["cost_high"] >= planned["cost_low"]


@pytest.mark.parametrize("shop", [TableFormat.ICEBERG, TableFormat.DELTA], indirect=True)
def test_all_rows_of_the_table_need_the_director_and_a_backfill_stops_there(shop: Shop) -> None:
    with_policy(shop)
    control, before = shop.open(), shop.rows()
    with pytest.raises(NotApproved, match="director must agree") as caught:
        control.backfill(shop.request("2026-01-01", "2026-01-11"), yes=True)
    run = control.list()[0]
    assert caught.value.hint == f"backcast approve {run.run_id} --as director"
    assert run.state is RunState.PLANNED
    need = control.status(run.run_id).manifest.approval
    assert need is not None
    assert (need.roles, need.confirm, need.reach.whole_table) == (("director",), True, True)
    nine = control.plan(shop.request("2026-01-01", "2026-01-10"), record=False).manifest.approval
    assert nine is not None
    assert (nine.roles, nine.reach.whole_table) == (("data-lead",), False)
    assert shop.rows() == before


def test_a_budget_refuses_before_and_stops_during(shop: Shop) -> None:
    control, before = shop.open(), shop.rows()
    request = shop.request()
    small = control.plan(request.model_copy(update={"max_rows": 7}))
    assert small.refused
    with pytest.raises(PlanRefused, match="at least 8 rows are expected, 7 rows are allowed"):
        control.backfill(request.model_copy(update={"max_rows": 7}))

    shop.spark.sql(
        f"""INSERT INTO {shop.sales} SELECT 1000 + id, concat('N', id), TIMESTAMP'2026-01-03 01:00:00Z', 1.00, 1
        FROM range(30)"""
    )
    run_id = control.plan(request.model_copy(update={"max_rows": 20})).run_id
    with pytest.raises(OverBudget, match="rows are staged, 20 are allowed"):
        control.run(run_id)
    status = control.status(run_id)
    assert status.run.state is RunState.FAILED
    assert status.next_command == f"backcast cancel {run_id}"
    with pytest.raises(OverBudget):
        control.retry(run_id)
    assert control.cancel(run_id).state is RunState.CANCELLED
    assert shop.rows() == before
    enough = control.plan(request.model_copy(update={"max_rows": 38}))
    assert control.run(enough.run_id).state is RunState.ACCEPTED


@pytest.mark.parametrize(
    ("seconds", "then", "limit", "told"),
    [
        (120, "shop", {"max_seconds": 10}, r"jobs took \d+ s, 10 s are allowed"),
        (4, "1 // 0", {"max_cost": 10.0}, r"it cost \d+\.\d+ EUR so far, 10.00 are allowed"),
    ],
    ids=["slow", "failing"],
)
def test_a_budget_ends_a_job_that_takes_too_long_and_counts_those_that_fail(
    shop: Shop, seconds: int, then: str, limit: dict[str, float], told: str
) -> None:
    """The slow one is a single job; of the other, each attempt takes less than the limit. A second costs a euro."""
    with_policy(shop, "matrix: []\nprices: {per_executor_hour: 3600, currency: EUR}\n")
    code, before = shop.root / "pipelines" / "revenue.py", shop.rows()
    asleep = f"F.udf(lambda shop: __import__('time').sleep({seconds}) or str({then}))"
    code.write_text(
        code.read_text().replace('= inputs["sales"]', f'= inputs["sales"].withColumn("shop", {asleep}("shop"))')
    )
    control = shop.open()
    run_id = control.plan(shop.request().model_copy(update=limit)).run_id
    began = time.monotonic()
    with pytest.raises(OverBudget, match=told):
        control.run(run_id)
    assert time.monotonic() < began + 100
    status = control.status(run_id)
    assert (status.run.state, status.counts.staged) == (RunState.FAILED, 0)
    assert "plan again with a larger budget" in status.run.detail
    assert status.next_command == f"backcast cancel {run_id}"
    attempts = [event.data for event in control.logs(run_id) if event.name == "chunks.failed"]
    assert sum(each["seconds"] for each in attempts) > 10
    with pytest.raises(OverBudget):
        control.retry(run_id)
    assert control.cancel(run_id).state is RunState.CANCELLED
    assert shop.rows() == before


def test_a_disk_that_is_too_small_is_told_before(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    control = shop.open()
    monkeypatch.setattr(control.world, "free_space", lambda dataset: (10, None))
    plan = control.plan(shop.request())
    assert plan.refused
    assert "capacity.disk" in {each.code for each in plan.findings}


def test_a_request_file_is_planned_and_then_known(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    file = Path(shop.root, "requests", "january.yaml")
    file.parent.mkdir()
    file.write_text(f"pipeline: revenue\nfrom: 2026-01-03\nto: 2026-01-07\nreason: {REASON}\nmax_rows: 100\n")
    control = shop.open()
    project = ["--project", str(shop.root)]
    with in_process(control):
        assert dispatch(["request", "validate", str(file), "--deep", *project]) == 0
        assert control.list() == []
        assert dispatch(["plan", "--request", str(file), *project]) == 0
        assert dispatch(["request", "validate", str(file), *project]) == 3
    assert "request.planned" in capsys.readouterr().out
    (run,) = control.list()
    manifest = control.status(run.run_id).manifest
    assert (manifest.request.reason, manifest.budget and manifest.budget.rows) == (REASON, 100)
    assert os.environ.get("BACKCAST_TOKEN") is None
