"""The bundle that explains a run later, and what is told about one that was checked."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from backcast.model.document import Document, later, sha256
from backcast.model.manifest import Manifest
from backcast.model.run import Chunk, Event, Publication, Run, StageRecord
from backcast.model.table import PublishMode
from backcast.model.verdict import Verdict

VERDICT, PUBLICATION = "verdict.recorded", "publish.recorded"
"""Events that bind a document of the run into its history by hash."""
DIFFED = "diff.recorded"
"""The event of a diff that somebody looked at: numbers of chunks, rows and columns."""
MOST_CHUNKS = 5_000
"""Chunks that such an event names; of more than these only the sums are kept."""
NOBODY_COMPARED = "nobody compared the rows of the whole run"
NOTE = "note"
"""The event of what a person added later, in words."""
APPROVALS = "approval."
"""How the names of events begin that tell who agreed, and who did not."""


class Evidence(Document):
    """What was asked, what ran, what was checked, what was published. The events chain each other by hash."""

    run: Run
    manifest: Manifest
    chunks: tuple[Chunk, ...]
    stage: tuple[StageRecord, ...]
    verdict: Verdict | None
    publications: tuple[Publication, ...]
    events: tuple[Event, ...]
    verdicts: Annotated[tuple[Verdict, ...], later(())] = ()
    """All of them, oldest first; the newest is `verdict`."""
    manifest_text: Annotated[str, later("")] = ""
    """The manifest as an earlier release recorded it; empty when this one spells it the same."""

    @property
    def whole_diff(self) -> dict[str, Any]:
        """What the newest diff of the whole stage that the verdict is about came to; empty when nobody asked for one.

        Never the diff of a canary, nor of a stage that was changed since: they tell nothing of the others.
        """
        about = (self.verdict.base, self.verdict.staged) if self.verdict is not None else None
        found = [event.data for event in self.events if event.name == DIFFED]
        same = [data for data in found if (data["base"], data["staged"]) == about and self._covers(data)]
        return same[-1] if same else {}

    @property
    def change(self) -> str:
        """What the run changed, in a sentence; empty before its verdict."""
        if self.verdict is None:
            return ""
        counted = f"{self.verdict.change.sentence()}; " if self.verdict.change is not None else ""
        return str(self.whole_diff.get("summary", f"{counted}{NOBODY_COMPARED}"))

    @property
    def rows_before(self) -> dict[str, int]:
        """Rows of each chunk in the base, as the diff or else the verdict counted them."""
        if diff := self.whole_diff:
            return {str(part["chunk"]): int(part["base"]["rows"]) for part in diff["partitions"]}
        change = self.verdict.change if self.verdict is not None else None
        return {each.chunk: each.before for each in change.chunks} if change is not None else {}

    def _covers(self, diff: dict[str, Any]) -> bool:
        """Rows that are added are compared as one part, whatever chunk they are of."""
        replaces = self.manifest.settings.publish_mode is PublishMode.REPLACE
        return not replaces or len(diff["partitions"]) == min(len(self.manifest.chunks), MOST_CHUNKS)

    def digest(self) -> str:
        """SHA-256 of the canonical form: one changed byte anywhere gives another one."""
        return sha256(self.canonical())


class Signature(StrEnum):
    """What the signature of a bundle is worth to whoever checked it."""

    VALID = "valid"
    UNCHECKED = "unchecked"
    """There is one, and no key was given to check it with."""
    NONE = "none"


class Witness(Document):
    """What the table itself says about one of its versions."""

    version: str
    properties: dict[str, str]
    """Of the commit that made it."""


class Witnesses(Document):
    """What a table says about the versions that a run is said to have made, and about others of that run."""

    table: str
    uuid: str
    versions: tuple[Witness, ...]
    others: tuple[str, ...] = ()
    """Versions that publishes and undos of the run made, and that nobody asked about."""


class Bundle(Document):
    """A bundle of evidence that was written."""

    run_id: str
    file: str
    bytes: int
    sha256: str
    signed_with: str | None
    """Id of the key; None for a bundle that is not signed."""
    changed: Annotated[str, later("")] = ""
    """What the run changed, in a sentence; empty before its verdict."""
    compared: Annotated[bool, later(False)] = False
    """Whether it tells of columns and rows, because somebody asked for the diff of the whole run."""


class Verified(Document):
    """A bundle in which every byte fits every other."""

    run_id: str
    table: str
    uuid: str
    dataset: str
    state: str
    manifest: str
    events: int
    head: str
    """Hash of the newest event."""
    files: int
    signature: Signature
    signed_with: str
    """Id of the key; empty for a bundle that is not signed."""
    published: tuple[str, ...]
    """Versions of the table that publishes and undos of the run made, in order."""
    checks: tuple[str, ...]
    """What was found to hold, one sentence each."""
    witness: tuple[str, ...] = ()
    """What the table itself confirmed; empty when it was not asked."""


class Note(Document):
    """What a person added to a run's history."""

    run_id: str
    number: int
    text: str
    account: str
