"""Streams that are run here: where they stand, their batches, and the steps of commands on them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_INSTANT = sa.BigInteger()


def upgrade() -> None:
    op.create_table(
        "streams",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("asked", sa.Text, nullable=False),
    )
    op.create_table(
        "stream_batches",
        sa.Column("stream", _NAME, primary_key=True),
        sa.Column("query_id", sa.Text, primary_key=True),
        sa.Column("batch", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_index("stream_batches_by_time", "stream_batches", ["stream", "at"])
    op.create_table(
        "stream_steps",
        sa.Column("stream", _NAME, primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
    )
