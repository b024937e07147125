"""Which windows that lack lost records count as restated."""

from __future__ import annotations

from datetime import timedelta

from backcast.model.time import Interval
from backcast.testing.samples import FIRST_DAY
from backcast.verbs.restoring import _Restated

_DAY = timedelta(days=1)
_DAYS = [Interval(start=FIRST_DAY + n * _DAY, end=FIRST_DAY + (n + 1) * _DAY) for n in range(3)]


def test_a_window_counts_as_restated_only_by_a_run_that_read_its_lost_records() -> None:
    """A run goes by the time that records carry: one that came days late is in the window, and was not read."""
    both = Interval(start=_DAYS[0].start, end=_DAYS[1].end)
    assert [_Restated((both,), ()).has(day) for day in _DAYS] == [True, True, False]
    assert [_Restated((both,), (_DAYS[1],)).has(day) for day in _DAYS] == [True, False, False]
