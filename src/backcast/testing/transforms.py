"""Try a transform on a few rows, from a user's own tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from backcast.model.states import Execution
from backcast.model.time import Interval
from backcast.project.transform import Context, Inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = 5
Rows = Sequence[Mapping[str, Any]]
ALL_TIME = Interval(start=datetime(1970, 1, 1, tzinfo=UTC), end=datetime(2100, 1, 1, tzinfo=UTC))
CLOCK = datetime(2026, 1, 1, tzinfo=UTC)
"""What `ctx.clock()` returns here."""


def check_transform(
    transform: Callable[[Inputs, Context], DataFrame],
    inputs: Mapping[str, Rows | DataFrame],
    expected: Rows | DataFrame | None = None,
    window: Interval | None = None,
    spark: SparkSession | None = None,
) -> DataFrame:
    """Call the transform on small inputs, compare the rows in any order, and call it again: both results must be equal.

    Rows are mappings from column to value; types follow from the values, so give a DataFrame where that is not enough,
    and where there is no row at all. Without `spark` the active session is used, or a small local one. Raises
    AssertionError.
    """
    from pyspark.sql import DataFrame

    session = spark or _session()
    frames = {name: _frame(session, name, rows) for name, rows in inputs.items()}
    context = Context("check-transform", Execution.DRY_RUN, window or ALL_TIME, CLOCK, session)
    result = transform(Inputs(frames), context)
    assert isinstance(result, DataFrame), f"the transform must return a DataFrame, got {type(result).__name__}"
    if expected is not None:
        wanted = (
            expected if isinstance(expected, DataFrame) else session.createDataFrame(_rows(expected), result.schema)
        )
        _assert_same(result, wanted, "expected")
    _assert_same(transform(Inputs(frames), context), result, "of the first call, which the second one lacks")
    return result


def _assert_same(result: DataFrame, wanted: DataFrame, which: str) -> None:
    """Equal columns and equal multisets of rows; values compare exactly, also floats."""
    columns, others = (
        [(each.name, each.dataType.simpleString()) for each in frame.schema] for frame in (result, wanted)
    )
    assert columns == others, f"columns differ: got {columns}, {which}: {others}"
    got, wished = (Counter(str(_plain(row)) for row in frame.collect()) for frame in (result, wanted))
    surplus, lacking = (list(rows.elements())[:_SHOWN] for rows in (got - wished, wished - got))
    assert got == wished, "rows differ" + "".join(
        [*(f"\n  unexpected: {row}" for row in surplus), *(f"\n  {which}: {row}" for row in lacking)]
    )


def _plain(value: Any) -> Any:
    """A value whose text is the same for equal values: rows by column, maps in the order of their keys."""
    from pyspark.sql import Row

    match value:
        case Row():
            return {name: _plain(value[name]) for name in value.__fields__}
        case dict():
            return sorted((str(_plain(key)), _plain(item)) for key, item in value.items())
        case list():
            return [_plain(item) for item in value]
        case _:
            return value


def _frame(session: SparkSession, name: str, rows: Rows | DataFrame) -> DataFrame:
    from pyspark.sql import DataFrame

    if isinstance(rows, DataFrame):
        return rows
    if not rows:
        raise ValueError(f"input {name!r} has no rows, so its columns are unknown: give a DataFrame with a schema")
    return session.createDataFrame(_rows(rows))


def _rows(rows: Rows) -> list[dict[str, Any]]:
    return [dict(row) for row in rows]


def _session() -> SparkSession:
    from backcast.spark.session import active_session, open_session
    from backcast.spark.settings import SessionSettings

    settings = SessionSettings(
        app_name="backcast check", master="local[2]", driver_memory="1g", conf={"spark.sql.shuffle.partitions": "2"}
    )
    return active_session() or open_session(settings)
