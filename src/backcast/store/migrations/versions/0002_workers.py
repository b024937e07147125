"""Chunks know the lease under which they were claimed: a run has workers beside its driver."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("chunks", sa.Column("lease", sa.BigInteger))
