"""Scopes as sets of rows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backcast.model.scope import Predicate, Scope, ValueClause
from backcast.model.time import Interval


def scope(*days: int, **values: str) -> Scope:
    clauses = tuple(ValueClause(column=name, values=tuple(text.split())) for name, text in values.items())
    ends = [datetime(2026, 1, day, tzinfo=UTC) for day in days]
    windows = (Interval(start=ends[0], end=ends[1]),) if ends else ()
    return Scope(windows=windows, predicate=Predicate(clauses=clauses))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (scope(1, 3), scope(2, 4), True),
        (scope(1, 3), scope(3, 4), False),
        (scope(), scope(3, 4), True),
        (scope(1, 3, tenant="T-1 T-2"), scope(1, 3, tenant="T-2"), True),
        (scope(1, 3, tenant="T-1"), scope(1, 3, tenant="T-2"), False),
        (scope(1, 3, tenant="T-1"), scope(1, 3, shop="S1"), True),
        (scope(1, 3, tenant="T-1"), scope(1, 3), True),
    ],
)
def test_scopes_meet_unless_their_times_or_the_values_of_a_column_lie_apart(
    one: Scope, other: Scope, expected: bool
) -> None:
    assert one.meets(other) is expected
    assert other.meets(one) is expected
