"""What `backcast archive` has to do, and what it did."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.model.document import Document
from backcast.model.log import OffsetRange, Ranges

REFERENCE = "backcast:archive"
"""The transform that copies records. No project can have one of that name."""


@dataclass(frozen=True, slots=True)
class ToArchive:
    """What the log of a topic has and its archive lacks."""

    source: str
    topic: str
    table: str
    pipeline: str
    """Which copies records of the topic into the table."""
    layers: tuple[Ranges, ...] = ()
    """Offsets to copy; one run for each layer."""


class ArchiveReport(Document):
    """What was copied, by which runs. No runs: nothing was left to copy."""

    source: str
    topic: str
    table: str
    runs: tuple[str, ...] = ()
    copied: tuple[OffsetRange, ...] = ()
    records: int = 0


def archive_lease_name(table: str) -> str:
    """The lease of whoever fills an archive: two at once would copy the same offsets."""
    return f"archive:{table}"
