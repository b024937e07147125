"""What may be asked of a topic: nothing is read, appended or merged that the request leaves out."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from backcast.errors import InvalidRequest
from backcast.model.request import Request
from backcast.model.scope import ValueClause
from backcast.model.table import PublishMode
from backcast.plan.log_shape import asked_window, refuse_log_options

ONE_DAY = {"start": "2026-01-02", "end": "2026-01-03"}
SHOP = (ValueClause(column="shop", values=("S1",)),)


@pytest.mark.parametrize(
    ("mode", "asked", "complaint"),
    [
        (PublishMode.REPLACE, {"offsets": "0=1..2"}, "--offsets says what to read"),
        (PublishMode.REPLACE, {"record_time": "2026-01-01..2026-01-02"}, "--record-time says what to read"),
        (PublishMode.APPEND, {"offsets": "earliest", "checkpoint": "ck"}, "give one of"),
        (PublishMode.APPEND, {"offsets": "earliest", **ONE_DAY}, "give one of"),
        (PublishMode.APPEND, {**ONE_DAY, "where": SHOP}, "--where"),
        (PublishMode.MERGE, {"offsets": "earliest", "where": SHOP}, "--where"),
    ],
)
def test_what_a_mode_cannot_honour_is_refused(mode: PublishMode, asked: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=complaint):
        refuse_log_options(Request(pipeline="orders", **asked), mode)


@pytest.mark.parametrize(
    "asked",
    [
        {"dates": (date(2026, 1, 2), date(2026, 1, 5))},
        {"start": "2026-01-02", "end": "2026-01-05", "exclude": (date(2026, 1, 3),)},
    ],
)
def test_days_with_others_in_between_are_no_window_to_append(asked: dict[str, Any]) -> None:
    """Everything from the first to the last would be appended, also what was left out."""
    with pytest.raises(InvalidRequest, match="one window"):
        asked_window(Request(pipeline="orders", **asked), "UTC")


def test_a_window_is_asked_for_unless_offsets_say_what_to_read() -> None:
    assert asked_window(Request(pipeline="orders", offsets="earliest"), "UTC") is None
    window = asked_window(Request(pipeline="orders", dates=(date(2026, 1, 2), date(2026, 1, 3))), "UTC")
    assert window is not None
    assert (str(window.start.date()), str(window.end.date())) == ("2026-01-02", "2026-01-04")
    with pytest.raises(InvalidRequest, match="no window given"):
        asked_window(Request(pipeline="orders"), "UTC")


def test_records_of_a_window_that_are_retried_by_their_offsets_must_lie_in_it() -> None:
    """Nobody knew their event time when they were set aside."""
    retry = Request(pipeline="orders", offsets="0=5..6", retries="orders-1", **ONE_DAY)
    refuse_log_options(retry, PublishMode.APPEND)
    window = asked_window(retry, "UTC")
    assert window is not None
    assert (str(window.start.date()), str(window.end.date())) == ("2026-01-02", "2026-01-03")
    assert asked_window(Request(pipeline="orders", offsets="0=5..6", retries="orders-1"), "UTC") is None
