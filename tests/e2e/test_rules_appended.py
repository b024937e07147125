"""Rules of runs that add rows: they judge what the run adds, and look at the rest only for uniqueness."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from backcast.model.canary import Canary, judged
from backcast.model.pipeline import TableFormat
from backcast.model.request import Request
from backcast.model.states import RunState
from backcast.model.verdict import Outcome
from backcast.testing.orders import FIRST, Order, Orders, spread

RULES = """\
rules:
  - range: {column: amount, min: 2}
  - unique: [id]
  - rows: {input: orders}
"""


@pytest.mark.parametrize("table_format", TableFormat)
def test_rows_that_were_there_break_no_rule_but_uniqueness(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(pipeline=f"publish: {{mode: append}}\n{RULES}")
    # Too small, and there already: nobody's business but that of number 1.
    rows = ", ".join(f"({number}, 'old', TIMESTAMP'{FIRST.isoformat()}', 1.00, DATE'2026-01-01')" for number in (1, 9))
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES {rows}")
    orders.send([Order(number, FIRST + timedelta(hours=number), "5.00") for number in (1, 2, 3)], partition=0)
    control = orders.open()
    plan = control.plan(Request(pipeline="orders", offsets="earliest", requested_by="tests"))
    assert not plan.refused, plan.findings
    control.run(plan.run_id)
    verdict = control.validate(plan.run_id)
    told = {each.kind: (each.passed, each.detail) for each in verdict.results}
    assert told["range"] == (True, "3 rows")
    assert told["rows"] == (True, "3 rows, input orders has 3")
    assert told["unique"] == (False, "1 key of id more than once (1 row, 1 of the rows again outside the scope)")
    assert [each["id"] for each in next(each for each in verdict.results if each.kind == "unique").samples] == ["1"]
    assert verdict.outcome is Outcome.REJECTED
    assert all(each.passed for each in verdict.checks if each.name != "unique id"), verdict.checks


@pytest.mark.parametrize("table_format", TableFormat)
def test_appended_rows_are_held_to_the_rules_after_their_publish(
    new_orders: Callable[..., Orders], table_format: TableFormat
) -> None:
    """Whatever else is in the table, but for uniqueness."""
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(pipeline=f"publish: {{mode: append}}\n{RULES}")
    orders.send([Order(number, FIRST + timedelta(hours=number), "5.00") for number in (1, 2, 3)], partition=0)
    control = orders.open()
    run_id = control.plan(Request(pipeline="orders", offsets="earliest", requested_by="tests")).run_id
    control.run(run_id)
    control.publish(run_id)

    def failing() -> set[str]:
        seen = control.watch(run_id, once=True).newest
        assert seen is not None
        assert seen.rows == 3
        assert {"range amount", "unique id", "rows orders", "key unique"} < {each.name for each in seen.checks}
        return {each.name for each in seen.checks if not each.passed}

    assert failing() == set()
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES (9, 'old', TIMESTAMP'2026-01-01', 1.00, DATE'2026-01-01')")
    assert failing() == set()
    orders.spark.sql(f"INSERT INTO {orders.table} VALUES (2, 'old', TIMESTAMP'2026-01-01', 9.00, DATE'2026-01-01')")
    assert failing() == {"unique id"}


def test_a_merge_is_held_to_rules_and_gates_and_watched_without_those_that_see_the_base(
    new_orders: Callable[..., Orders],
) -> None:
    orders = new_orders(partitions=1)
    rules = """\
rules:
  - range: {column: amount, min: 1}
  - sum: {column: amount, tolerance: 10%, severity: warn}
  - sql: {query: SELECT id FROM stage WHERE id < 5 EXCEPT SELECT id FROM base, name: no small number is new}
  - sql: SELECT id FROM stage WHERE shop IS NULL
gates: {changed_rows: 60%}
"""
    orders.configure(pipeline=f"publish: {{mode: merge}}\n{rules}")
    rows = ", ".join(f"({number}, 'old', TIMESTAMP'{FIRST.isoformat()}', 1.00, DATE'2026-01-01')" for number in (1, 4))
    orders.spark.sql(f"INSERT INTO {orders.table} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    orders.send([Order(number, FIRST + timedelta(hours=1), "5.00") for number in (1, 6)], partition=0)
    control = orders.open()
    run_id = control.plan(Request(pipeline="orders", offsets="earliest", requested_by="tests")).run_id
    assert control.run(run_id).state is RunState.REVIEW
    verdict = control.validate(run_id)
    told = {each.name: (each.passed, each.detail) for each in verdict.results}
    assert told["range amount"] == (True, "3 rows")
    assert told["sum amount"][0] is False
    assert told["no small number is new"] == (True, "no row")
    assert told["changed rows"][0] is False
    control.approve(run_id, comment="the first orders of the day")
    control.publish(run_id)
    seen = control.watch(run_id, once=True).newest
    assert seen is not None
    assert seen.passed, seen.checks
    looked = {each.name for each in seen.checks}
    assert looked >= {"range amount", "key unique"}
    assert not looked & {"sum amount", "no small number is new", "changed rows"}


def test_a_canary_counts_the_records_of_its_own_chunks(new_orders: Callable[..., Orders]) -> None:
    orders = new_orders(partitions=1)
    orders.configure(
        pipeline="rules:\n  - rows: {input: orders}\n  - rows: {input: orders, per: partition, name: by day}\n"
        "  - sql: SELECT id FROM orders EXCEPT SELECT id FROM stage"
    )
    orders.send(spread(3, 5), partition=0)
    control = orders.open()
    run_id = control.plan(orders.request("2026-01-01", "2026-01-04")).run_id
    control.run(run_id, canary=Canary(number=1))
    seen = judged(control.world.reader().events(run_id))
    assert seen is not None
    assert seen.outcome is Outcome.ACCEPTED
    assert next(each.detail for each in seen.checks if each.name == "rows orders") == "5 rows, input orders has 5"
    assert control.run(run_id).state is RunState.ACCEPTED
    verdict = control.world.reader().verdict(run_id)
    assert verdict is not None
    assert next(each.detail for each in verdict.results if each.name == "by day") == "in each of 3 partitions"
