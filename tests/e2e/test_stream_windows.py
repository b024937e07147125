"""A live stream that keeps state: windows that its watermark closes, beside a run, and through a death."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import pytest

from backcast.control import ControlPlane
from backcast.errors import Refused
from backcast.model.finding import Severity
from backcast.model.pipeline import TableFormat
from backcast.model.recovery import Way
from backcast.model.states import RunState
from backcast.store import streams
from backcast.testing.faults import at_point
from backcast.testing.orders import FIRST, Order, Orders
from tests.e2e.test_stream import BOTH, DELTA, SENT, Died, caught_up, die

DAILY = """\
SELECT count(*) AS id, shop, window.start AS at, CAST(sum(amount) AS DECIMAL(10,2)) AS amount,
       to_date(window.start) AS day
FROM orders GROUP BY shop, window(at, '1 day')
"""


@BOTH
def test_windows_close_as_the_watermark_passes_and_state_survives_a_crash(
    new_orders: Callable[..., Orders], table_format: TableFormat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a restatement beside it ends where windows are open, however it is computed: the stream will write those."""
    orders = new_orders(partitions=1, table_format=table_format)
    orders.configure(source="to_end: true", stream="watermark: {column: at, delay: 1h}\nmost_per_trigger: 11")
    config = orders.root / "backcast.yaml"
    config.write_text(config.read_text().replace("key: [id]", "key: [day, shop]"))
    (orders.root / "models" / "orders.sql").write_text(DAILY)
    days = {day: [each for each in SENT if each.at.day == day] for day in (1, 2, 3)}
    orders.send(days[1])
    caught_up(orders)
    in_time = Order(899, FIRST + timedelta(hours=21), "5.00")
    orders.send([in_time, *days[2], *days[3][:4]])
    with at_point("stream.after-commit", die), pytest.raises(Died):
        caught_up(orders)
    assert _by_day(orders) == {"2026-01-01": 11}, "it died in the batch that closes a day, and late in time counts"
    caught_up(orders)
    assert _by_day(orders) == {"2026-01-01": 11, "2026-01-02": 10}, "that batch has moved the watermark all the same"
    # The store forgets batches, as it does after some hundreds, and those behind the second day have no rows.
    monkeypatch.setattr(streams, "KEPT_BATCHES", 2)
    orders.send([*days[3][4:7], Order(900, FIRST, "5.00")])
    status = caught_up(orders)
    assert status.batches[0].watermark is not None
    assert status.batches[0].operators == 1
    assert [each.late_rows for each in status.batches if each.late_rows] == [1], "beyond the watermark is counted"
    orders.send(days[3][7:])
    caught_up(orders)
    assert _by_day(orders) == {"2026-01-01": 11, "2026-01-02": 10}
    with closing(orders.open().world) as world:
        assert ControlPlane(world).stream_recovery("live").way is Way.START, "it stands where its table does"
    if table_format is DELTA:
        # The rest is the same on both.
        return
    _restate_what_is_closed(orders)
    orders.send([Order(901, FIRST + timedelta(days=4))])
    caught_up(orders)
    assert _by_day(orders) == {"2026-01-01": 11, "2026-01-02": 10, "2026-01-03": 10}
    (orders.root / "models" / "orders.sql").write_text(DAILY.replace("GROUP BY shop,", "GROUP BY shop, id % 2,"))
    orders.send([Order(902, FIRST + timedelta(days=5))])
    with pytest.raises(Refused, match="the state of stream live does not fit its query any more"):
        caught_up(orders)


def _restate_what_is_closed(orders: Orders) -> None:
    """The third day is open. Of the second the stream has a record still to read, and will drop it."""
    orders.send([Order(903, FIRST + timedelta(days=1, hours=12))])
    control = orders.open()
    with closing(control.world):
        for how in ({}, {"stream": "live", "as_stream": True}):
            wide = control.plan(orders.request("2026-01-02", "2026-01-04").model_copy(update=how), record=False)
            (told,) = (each for each in wide.findings if each.severity is Severity.BLOCK)
            assert told.code == "stream.still-open"
            assert "stream live has still to write rows from 2026-01-03 00:00 UTC on" in told.reason
            assert told.remedy.startswith("end the window at 2026-01-03, or ")
            plan = control.plan(orders.request("2026-01-02", "2026-01-03").model_copy(update=how))
            assert not plan.refused, plan.findings
            left = next(each.reason for each in plan.findings if each.code == "log.left-to-stream")
            assert left.startswith("stream live has not read offsets 0=32..33 of ")
        assert control.run(plan.run_id).state is RunState.ACCEPTED
        control.publish(plan.run_id)
        assert _by_day(orders) == {"2026-01-01": 11, "2026-01-02": 10}


def _by_day(orders: Orders) -> dict[str, int]:
    found = orders.spark.sql(f"SELECT CAST(day AS STRING), sum(id) FROM {orders.table} GROUP BY day").collect()
    return {row[0]: row[1] for row in found}
