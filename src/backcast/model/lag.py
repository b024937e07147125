"""How far a stream is behind its topic, and whether what it has not read will still be there."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from backcast.model.document import Document
from backcast.model.log import OffsetRange, Ranges
from backcast.model.manifest import Survival


class Standing(StrEnum):
    """How a partition of the topic and the checkpoint's idea of it fit together."""

    KNOWN = "known"
    NEW = "new"
    """The topic has it, the checkpoint does not know it yet."""
    VANISHED = "vanished"
    """The checkpoint knows it, the topic does not have it."""
    AHEAD = "ahead"
    """It was read further than the log goes: another topic had this name."""
    REMADE = "remade"
    """The last record that was read carries a time long after it was read: another topic had this name."""


class PartitionLag(Document):
    """One partition: up to where it was read, what the log has, what is left."""

    partition: int
    standing: Standing
    position: int | None
    """The next offset that the stream reads; None when it does not know the partition."""
    log_start: int
    log_end: int
    behind: int
    """Offsets of the log that are not read. Records may be fewer: markers and compacted records leave gaps."""
    lost: OffsetRange | None
    """Offsets that were not read and that the log no longer has."""
    first_unread: datetime | None
    """Time of the first record that is not read."""
    newest: datetime | None
    """Time of the last record of the log."""
    survival: Survival
    survives_until: datetime | None


class StreamLag(Document):
    """A stream by its checkpoint, against its topic as it is now."""

    stream: str | None
    """None for a checkpoint that no declared stream has."""
    pipeline: str | None
    ours: bool = False
    """It is run here, so that `stream recover` brings it back."""
    source: str
    topic: str
    topic_id: str
    checkpoint: str
    batch: int
    """The newest that is committed."""
    begun: datetime
    """When it began."""
    planned: int | None
    """A batch that is under way, or was when the stream died."""
    watermark: datetime | None
    pace: float | None
    """Records a second over the last batches; None when too few are known."""
    measured_at: datetime
    partitions: tuple[PartitionLag, ...]

    @property
    def behind(self) -> int:
        return sum(each.behind for each in self.partitions)

    @property
    def lost(self) -> Ranges:
        return tuple(each.lost for each in self.partitions if each.lost is not None)

    @property
    def catch_up_seconds(self) -> float | None:
        """How long what is left takes at this pace, if nothing is added."""
        return self.behind / self.pace if self.pace else None

    @property
    def behind_seconds(self) -> float:
        """How long the oldest unread record has been waiting."""
        waiting = (each.first_unread for each in self.partitions if each.first_unread is not None)
        return max((self.measured_at - each).total_seconds() for each in waiting) if self._waits else 0.0

    def waits_longer(self, seconds: float | None) -> bool:
        """Whether the oldest unread record has been waiting for longer than that; None: for as long as it likes."""
        return seconds is not None and self.behind_seconds > seconds

    @property
    def _waits(self) -> bool:
        return any(each.first_unread is not None for each in self.partitions)

    @property
    def other_topic(self) -> bool:
        """Whether the checkpoint speaks of a topic that was deleted and made again."""
        wrong = (Standing.VANISHED, Standing.AHEAD, Standing.REMADE)
        return any(each.standing in wrong for each in self.partitions)

    @property
    def sound(self) -> bool:
        """Nothing that the stream should read is lost, and it can go on."""
        return not self.lost and not self.other_topic
