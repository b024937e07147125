"""Batches of a stream are in the order in which the store learned of them, not in that of their hosts' clocks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_IN_ORDER = """
UPDATE stream_batches SET number = (
    SELECT count(*) FROM stream_batches AS earlier
    WHERE earlier.stream = stream_batches.stream
      AND (earlier.at < stream_batches.at OR (earlier.at = stream_batches.at AND earlier.batch <= stream_batches.batch))
)
"""


def upgrade() -> None:
    op.add_column("stream_batches", sa.Column("number", sa.BigInteger, nullable=False, server_default="0"))
    op.execute(_IN_ORDER)
    op.drop_index("stream_batches_by_time", "stream_batches")
    op.create_index("stream_batches_in_order", "stream_batches", ["stream", "number"])
