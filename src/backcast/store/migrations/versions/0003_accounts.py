"""Events know on whose account they were written. Lines from before do not, and keep their hash."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("events", sa.Column("account", sa.Text, nullable=False, server_default=""))
