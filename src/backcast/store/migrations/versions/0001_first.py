"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_COUNTER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_INSTANT = sa.BigInteger()


def upgrade() -> None:
    _runs()
    _ledger()
    _history()
    _results()
    tokens = op.create_table(
        "tokens",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
    op.bulk_insert(tokens, [{"name": "fencing", "value": 0}])


def _run() -> sa.Column[str]:
    return sa.Column("run_id", _NAME, sa.ForeignKey("runs.run_id"), primary_key=True)


def _runs() -> None:
    op.create_table(
        "manifests",
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("document", sa.Text, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("run_id", _NAME, primary_key=True),
        sa.Column("manifest_sha256", sa.Text, sa.ForeignKey("manifests.sha256"), nullable=False, unique=True),
        sa.Column("pipeline", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("table", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("ticket", sa.Text, nullable=False),
        sa.Column("requested_by", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("created_at", _INSTANT, nullable=False),
        sa.Column("updated_at", _INSTANT, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("superseded_by", _NAME),
        sa.Column("last_event", sa.Integer, nullable=False),
        sa.Column("last_event_sha256", sa.Text, nullable=False),
    )
    op.create_index("runs_by_age", "runs", ["created_at", "run_id"])
    op.create_index("runs_by_dataset", "runs", ["dataset", "created_at", "run_id"])
    op.create_index("runs_by_state", "runs", ["state", "created_at", "run_id"])


def _ledger() -> None:
    op.create_table(
        "chunks",
        _run(),
        sa.Column("chunk_id", sa.Text, primary_key=True),
        sa.Column("ordinal", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("token", sa.BigInteger),
        sa.Column("version", sa.Text),
        sa.Column("output_rows", sa.BigInteger),
        sa.Column("started_at", _INSTANT),
        sa.Column("finished_at", _INSTANT),
        sa.Column("error", sa.Text, nullable=False),
        sa.UniqueConstraint("run_id", "ordinal", name="chunks_in_order"),
    )
    op.create_index("chunks_by_state", "chunks", ["run_id", "state", "ordinal"])
    op.create_table(
        "stage_records",
        _run(),
        sa.Column("token", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("version", sa.Text, primary_key=True),
        sa.Column("chunk_ids", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("name", _NAME, primary_key=True),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("expires_at", _INSTANT, nullable=False),
    )


def _history() -> None:
    op.create_table(
        "events",
        _run(),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("previous", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text, nullable=False),
    )
    op.create_table(
        "effects",
        sa.Column("effect_id", _COUNTER, primary_key=True),
        sa.Column("run_id", _NAME, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("data", sa.Text, nullable=False),
        sa.Column("at", _INSTANT, nullable=False),
        sa.Column("ended_at", _INSTANT),
        sqlite_autoincrement=True,
    )
    op.create_index("effects_by_state", "effects", ["run_id", "state", "effect_id"])


def _results() -> None:
    op.create_table(
        "verdicts",
        sa.Column("verdict_id", _COUNTER, primary_key=True),
        sa.Column("run_id", _NAME, sa.ForeignKey("runs.run_id"), nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("verdicts_by_run", "verdicts", ["run_id", "verdict_id"])
    op.create_table(
        "publications",
        _run(),
        sa.Column("generation", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("document", sa.Text, nullable=False),
    )
