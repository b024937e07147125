"""The result of validation, bound to one staged version and one file change."""

from __future__ import annotations

from datetime import datetime

from backcast.model.digest import Digest
from backcast.model.document import Document


class Check(Document):
    """One check: a name, whether it passed, and the numbers in a sentence."""

    name: str
    passed: bool
    detail: str


class PartitionDigest(Document):
    """Rows and digest of one chunk's part of the table."""

    chunk: str
    digest: Digest


class Verdict(Document):
    """Accepted only when every check passed. Valid only for exactly `staged` and `net_change`."""

    run_id: str
    accepted: bool
    base: str | None
    staged: str
    net_change: str
    """Digest of the files added and removed."""
    checks: tuple[Check, ...]
    partitions: tuple[PartitionDigest, ...]
    """Empty when the stage was not read back: the digests of its commits are on record then."""
    rows: int
    at: datetime
