"""Base against stage, partition by partition."""

from __future__ import annotations

from typing import Literal

from backcast.model.digest import Digest
from backcast.model.document import Document

DiffStatus = Literal["same", "changed", "added", "removed"]


class PartitionDiff(Document):
    chunk: str
    base: Digest
    stage: Digest

    @property
    def status(self) -> DiffStatus:
        if self.base == self.stage:
            return "same"
        if not self.base.rows:
            return "added"
        return "changed" if self.stage.rows else "removed"


class Diff(Document):
    """Every chunk of the scope, in order, also those that are empty on both sides."""

    run_id: str
    base: str | None
    staged: str
    partitions: tuple[PartitionDiff, ...]
    publishable: bool = True
    """Whether the run waits for its publish; False once that has happened, or cannot."""

    def count(self, status: DiffStatus) -> int:
        return sum(1 for each in self.partitions if each.status == status)
