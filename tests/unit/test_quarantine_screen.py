"""What people see of records that were set aside."""

from __future__ import annotations

from datetime import UTC, datetime

from backcast.cli.render.quarantine import render_quarantined, render_records
from backcast.cli.render.status import render_status
from backcast.model.quarantine import QuarantinedRecord, QuarantinedRun
from backcast.model.states import RunState
from tests.unit.cli_screens import sample_status, shown


def run(name: str, **more: object) -> QuarantinedRun:
    values = {"run_id": name, "state": "published", "input": "orders", "records": 3, "chunks": ("slice-1",)}
    return QuarantinedRun.model_validate(values | more)


def test_the_next_run_to_look_at_is_one_that_nobody_has_taken_up() -> None:
    screen = shown(render_quarantined([run("b", retried_by="c"), run("a", rejected=2)]), 100)
    assert screen.splitlines() == [
        "RUN  STATE      RECORDS  REJECTED  INPUT   RETRIED BY",
        "b    published        3            orders  c",
        "a    published        3         2  orders",
        "",
        "  Next  backcast quarantine show a",
    ]
    undone = shown(render_quarantined([run("d", state="undone"), run("a")]), 100)
    assert undone.endswith("quarantine show a")
    assert shown(render_quarantined([])) == "no run has set a record aside"


def test_records_come_with_the_command_that_takes_them_up_again() -> None:
    record = QuarantinedRecord(
        topic="orders", partition=1, offset=1234, record_time=None, reason="no JSON", key=None, value="{"
    )
    screen = shown(render_records([record], 1, "orders-1")).splitlines()
    assert screen[2:4] == ["PARTITION  OFFSET  REASON   VALUE", "        1   1,234  no JSON  {"]
    assert screen[4] == "the first 1; --limit shows more"
    assert screen[-1] == "  Once mended  backcast quarantine retry orders-1"


def test_the_status_says_how_many_records_are_not_in_the_result() -> None:
    now = datetime(2026, 3, 1, 15, tzinfo=UTC)
    status = sample_status(RunState.PUBLISHED, "###", quarantined=2)
    line = next(line for line in shown(render_status(status, now), 120).splitlines() if "set aside" in line)
    assert line.split() == ["set", "aside", "2", "records", "backcast", "quarantine", "show", status.run.run_id]
    assert "set aside" not in shown(render_status(sample_status(RunState.PUBLISHED, "###"), now), 120)
