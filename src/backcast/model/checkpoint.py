"""What can be told about the checkpoint of a stream, and what was done to it."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum

from backcast.model.document import Document

BACKUP_VERSION = 1


class StoreKind(StrEnum):
    """Who keeps the state of an operator."""

    HDFS = "hdfs"
    ROCKSDB = "rocksdb"
    CHANGELOG = "rocksdb with changelog"
    UNKNOWN = "unknown"


class SourcePosition(Document):
    """Where a source goes on: by topic and partition for Kafka, else as Spark wrote it."""

    source: str
    topics: dict[str, dict[int, int]] | None = None
    """Next offset of each partition."""
    text: str = ""


class Batch(Document):
    """One batch, as the log tells it."""

    number: int
    planned: bool
    committed: bool
    at: datetime | None = None
    """When it was planned."""
    watermark: datetime | None = None
    """In force for it; None before any data, and in a query without one."""
    next_watermark: datetime | None = None
    records: int | None = None
    """Offsets between the end of the batch before and its own; None when that cannot be told."""
    sources: tuple[SourcePosition, ...] = ()
    problem: str = ""
    """Why its file cannot be read."""


class StateVersions(Document):
    """State of one operator."""

    operator: int
    name: str = ""
    """As Spark calls it; empty when its metadata is not there."""
    kind: StoreKind
    partitions: int
    stores: tuple[str, ...] = ()
    first: int | None = None
    last: int | None = None
    """State versions that every partition can load. Version V is the state before batch V."""


class Inspection(Document):
    """A checkpoint at a glance."""

    path: str
    stream: str | None = None
    query_id: str | None
    planned: int | None
    committed: int | None
    next_batch: int
    """The one that a restart runs first."""
    repeats: bool
    """Whether a restart runs a batch again that was planned and not committed."""
    sources: tuple[SourcePosition, ...]
    """Where the first batch of a restart begins."""
    watermark: datetime | None
    operators: tuple[StateVersions, ...]
    settings: dict[str, str]
    formats: dict[str, str]
    """Versions of the log formats that are in use."""
    last_written: datetime | None
    unreadable: tuple[str, ...] = ()
    """Why files cannot be read that would tell position or watermark: what is missing above is not known."""
    damages: int


class History(Document):
    """Batch by batch, oldest first."""

    path: str
    batches: tuple[Batch, ...]


class Severity(StrEnum):
    """What damage does at a restart."""

    FAILS = "fails"
    """Spark refuses to start, or the first batch fails."""
    SILENT = "silent"
    """It starts, and goes on with something wrong: rows doubled, lost or counted wrongly."""
    HARMLESS = "harmless"
    """It starts and goes on as if nothing had been."""
    UNKNOWN = "unknown"
    """Nobody can tell: a format that is newer than what is known here."""


class Damage(Document):
    """One thing that is wrong with the files of a checkpoint."""

    kind: str
    file: str
    """Relative to the checkpoint."""
    severity: Severity
    what: str
    at_restart: str
    """What Spark does, as it was measured."""
    remedy: str = ""


class Verification(Document):
    """What is wrong with a checkpoint, and where it could go back to."""

    path: str
    damages: tuple[Damage, ...]
    files: int
    recoverable: int | None
    """The newest batch after which the stream can go on: its logs and its state are whole."""
    loaded: tuple[str, ...] = ()
    """What Spark was seen to load, when it was asked."""

    @property
    def sound(self) -> bool:
        return all(each.severity is Severity.HARMLESS for each in self.damages)


class BackedUpFile(Document):
    sha256: str
    size: int


class BackupManifest(Document):
    """`backup.json`, beside the copy that it describes."""

    version: int = BACKUP_VERSION
    source: str
    query_id: str | None
    batch: int | None
    """The newest committed batch in it."""
    planned: int | None
    made_at: datetime
    running: bool
    """Whether the checkpoint was being written to."""
    files: dict[str, BackedUpFile]


class Backup(Document):
    """A backup that was made."""

    path: str
    checkpoint: str
    batch: int | None
    planned: int | None
    files: int
    size: int
    running: bool
    attempts: int
    sha256: str
    """Of the manifest."""
    damages: tuple[Damage, ...] = ()
    """What was wrong with the checkpoint, and so is with its copy."""


class SinkOutcome(StrEnum):
    """What a table does with the batches that come."""

    APPLY = "apply"
    SKIP = "skip"
    DUPLICATE = "duplicate"
    REFUSE = "refuse"
    """A stream that Backcast runs does not start: its batches are in the table."""


class SinkPrediction(Document):
    """What the sink will do with the first batches after a change of the checkpoint, and why."""

    table: str
    outcome: SinkOutcome
    reason: str
    remedy: str = ""
    next_batch: int
    last_epoch: int | None = None
    """The newest batch of that query that the table remembers."""


class Change(Document):
    """A checkpoint that was made, or put in the place of another."""

    action: str
    path: str
    stream: str | None = None
    query_id: str
    batch: int | None
    """The newest batch of it; None when it begins anew."""
    sources: tuple[SourcePosition, ...] = ()
    kept: str | None = None
    """Where the checkpoint lies that was there before."""
    proven: tuple[str, ...] = ()
    """State that Spark was seen to load."""
    removed: int = 0
    """Files that were left out: batches and state that came later."""
    sink: SinkPrediction | None = None
    notes: tuple[str, ...] = ()
    changed: bool = True
    """False when it was so already."""


class BatchDifference(Document):
    """A batch that two checkpoints tell differently."""

    number: int
    what: str


class CheckpointDifference(Document):
    """Two checkpoints, side by side."""

    left: str
    right: str
    same_query: bool
    left_id: str | None
    right_id: str | None
    parted_after: int | None
    """The newest batch that both have and tell alike; None when there is none."""
    batches: tuple[BatchDifference, ...]
    positions: tuple[str, ...]
    """Partitions whose next offset differs."""
    settings: tuple[str, ...]
    state: tuple[str, ...]


def instant(milliseconds: int) -> datetime | None:
    """None for 0, which is how Spark writes that there is no watermark yet."""
    if milliseconds <= 0:
        return None
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None
