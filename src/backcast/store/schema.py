"""The store's tables. Documents are canonical JSON text, moments are microseconds, versions of tables are text."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from backcast.store.dialect import Counts, Instant

REVISIONS = ("0001", "0002", "0003", "0004", "0005", "0006")
"""Every schema this code can upgrade from, oldest first; the last is what it works with."""

VERSION_TABLE = "store_version"

NO_EVENT = ""
"""What the first event of a run carries as the hash of the event before it."""

metadata = MetaData()

Name = Text().with_variant(Text(collation="C"), "postgresql")
"""Names sort by their bytes, so that a prefix is a range of the index."""

Counter = BigInteger().with_variant(Integer(), "sqlite")


def _run() -> Column[str]:
    return Column("run_id", Name, ForeignKey("runs.run_id"), primary_key=True)


manifests = Table(
    "manifests",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("document", Text, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("run_id", Name, primary_key=True),
    Column("manifest_sha256", Text, ForeignKey("manifests.sha256"), nullable=False, unique=True),
    Column("pipeline", Text, nullable=False),
    Column("dataset", Text, nullable=False),
    Column("table", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("ticket", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("detail", Text, nullable=False),
    Column("superseded_by", Name),
    Column("last_event", Integer, nullable=False),
    Column("last_event_sha256", Text, nullable=False),
    Index("runs_by_age", "created_at", "run_id"),
    Index("runs_by_dataset", "dataset", "created_at", "run_id"),
    Index("runs_by_state", "state", "created_at", "run_id"),
)

chunks = Table(
    "chunks",
    metadata,
    _run(),
    Column("chunk_id", Text, primary_key=True),
    Column("ordinal", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("token", BigInteger),
    Column("lease", BigInteger),
    Column("version", Text),
    Column("output_rows", BigInteger),
    Column("inputs", Counts, nullable=False, server_default="[]"),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    Column("error", Text, nullable=False),
    UniqueConstraint("run_id", "ordinal", name="chunks_in_order"),
    Index("chunks_by_state", "run_id", "state", "ordinal"),
)

stage_records = Table(
    "stage_records",
    metadata,
    _run(),
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("version", Text, primary_key=True),
    Column("chunk_ids", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("seconds", Float, nullable=False),
)

events = Table(
    "events",
    metadata,
    _run(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("name", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("previous", Text, nullable=False),
    Column("sha256", Text, nullable=False),
    Column("account", Text, nullable=False, server_default=""),
)

effects = Table(
    "effects",
    metadata,
    Column("effect_id", Counter, primary_key=True),
    Column("run_id", Name, ForeignKey("runs.run_id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("data", Text, nullable=False),
    Column("at", Instant, nullable=False),
    Column("ended_at", Instant),
    Index("effects_by_state", "run_id", "state", "effect_id"),
    sqlite_autoincrement=True,
)

leases = Table(
    "leases",
    metadata,
    Column("name", Name, primary_key=True),
    Column("token", BigInteger, nullable=False),
    Column("holder", Text, nullable=False),
    Column("expires_at", Instant, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("verdict_id", Counter, primary_key=True),
    Column("run_id", Name, ForeignKey("runs.run_id"), nullable=False),
    Column("document", Text, nullable=False),
    Index("verdicts_by_run", "run_id", "verdict_id"),
    sqlite_autoincrement=True,
)

publications = Table(
    "publications",
    metadata,
    _run(),
    Column("generation", Integer, primary_key=True, autoincrement=False),
    Column("document", Text, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)

streams = Table(
    "streams",
    metadata,
    Column("name", Name, primary_key=True),
    Column("document", Text, nullable=False),
    Column("asked", Text, nullable=False),
)
"""`document` is empty for a stream that was asked something before it was ever started."""

stream_batches = Table(
    "stream_batches",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("query_id", Text, primary_key=True),
    Column("batch", BigInteger, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("document", Text, nullable=False),
    Column("number", BigInteger, nullable=False, server_default="0"),
    Index("stream_batches_in_order", "stream", "number"),
)
"""`number` is the order in which they were begun; `at` is what the host that ran them took for the time."""

stream_steps = Table(
    "stream_steps",
    metadata,
    Column("stream", Name, primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", Instant, nullable=False),
    Column("name", Text, nullable=False),
    Column("data", Text, nullable=False),
)
