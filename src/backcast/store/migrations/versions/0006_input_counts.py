"""Chunks know what they have read. Of those that were staged before nobody does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("chunks", sa.Column("inputs", sa.Text, nullable=False, server_default="[]"))
