"""The bundle that explains a run later."""

from __future__ import annotations

from backcast.model.document import Document, sha256
from backcast.model.manifest import Manifest
from backcast.model.run import Chunk, Event, Publication, Run, StageRecord
from backcast.model.verdict import Verdict


class Evidence(Document):
    """What was asked, what ran, what was checked, what was published. The events chain each other by hash."""

    run: Run
    manifest: Manifest
    chunks: tuple[Chunk, ...]
    stage: tuple[StageRecord, ...]
    verdict: Verdict | None
    publications: tuple[Publication, ...]
    events: tuple[Event, ...]

    def digest(self) -> str:
        """SHA-256 of the canonical form: one changed byte anywhere gives another one."""
        return sha256(self.canonical())
