"""Try a transform on a few rows, from a user's own tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from backcast.model.states import Execution
from backcast.model.time import Interval
from backcast.project.transform import Context, Inputs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    from pyspark.testing import assertDataFrameEqual

    session = spark or _session()
    frames = {name: _frame(session, name, rows) for name, rows in inputs.items()}
    context = Context("check-transform", Execution.DRY_RUN, window or ALL_TIME, CLOCK, session)
    result = transform(Inputs(frames), context)
    assert isinstance(result, DataFrame), f"the transform must return a DataFrame, got {type(result).__name__}"
    if expected is not None:
        wanted = (
            expected if isinstance(expected, DataFrame) else session.createDataFrame(_rows(expected), result.schema)
        )
        assertDataFrameEqual(result, wanted, checkRowOrder=False)
    assertDataFrameEqual(transform(Inputs(frames), context), result, checkRowOrder=False)
    return result


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
