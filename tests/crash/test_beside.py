"""A stream and a restatement of its table side by side, both killed. `make beside` goes on for as long as one likes."""

from __future__ import annotations

from collections.abc import Callable

from backcast.model.pipeline import TableFormat
from backcast.testing.orders import Orders
from tests.crash.beside_soak import soak

_FREEZES_AND_LOSES_ITS_JVM = 23
"""What these dice give: a run under `freeze` whose JVM dies behind the commit of its publish."""


def test_every_record_is_in_the_table_once_whatever_dies_of_a_stream_and_of_a_run_beside_it(
    new_orders: Callable[..., Orders],
) -> None:
    orders = new_orders(table_format=TableFormat.DELTA)
    told = soak(orders, minutes=0.01, seed=_FREEZES_AND_LOSES_ITS_JVM)
    assert told.split("; ")[2].endswith("(1 freeze published)"), told
