"""A batch of a stream on its way into a table: what its commit says, and what the table's newest batch means for it."""

from __future__ import annotations

from backcast.errors import OutcomeUnknown, StateConflict
from backcast.ports.streams import LiveCommit, LiveWrite

STREAM, QUERY, BATCH, OFFSETS = "backcast.stream", "backcast.query", "backcast.batch", "backcast.offsets"
"""Properties of every commit that a stream of ours makes."""


def live_properties(write: LiveWrite) -> dict[str, str]:
    own = {STREAM: write.stream, QUERY: write.query_id, BATCH: str(write.batch), OFFSETS: write.offsets}
    return {"backcast.change": "stream", **own, **write.properties}


def refuse_repeat(write: LiveWrite, newest: LiveCommit | None) -> None:
    """Raises StateConflict when the table has this batch or a later one."""
    if newest is not None and newest.batch >= write.batch:
        raise StateConflict(
            f"the table has batch {newest.batch} of stream {write.stream} already, and this is batch {write.batch}",
            hint=f"backcast stream status {write.stream}",
        )


def unknown(stream: str, table: str, why: str) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"whether the last batch of stream {stream} is in {table} cannot be told: {why}",
        hint=f"compare the offsets of the table's rows with those of the batch: backcast stream status {stream}",
        stream=stream,
    )
