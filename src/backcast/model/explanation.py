"""Why a part of a dataset is as it is: the runs that reached it, and which of them readers see."""

from __future__ import annotations

from datetime import datetime

from backcast.model.document import Document
from backcast.model.time import Interval


class Word(Document):
    """What one person said about a run."""

    at: datetime
    what: str
    """`given`, `refused`, or `accepted` for what the gates had noticed."""
    role: str
    by: str
    comment: str


class Made(Document):
    """A publish, and its undo if there was one."""

    version: str
    at: datetime
    account: str
    files_added: int
    files_removed: int
    undo_version: str | None = None
    undone_at: datetime | None = None
    undone_by: str = ""


class ChunkRows(Document):
    chunk: str
    rows: int | None
    """What the run computed; None while it has not."""
    before: int | None = None
    """What was there; None when no diff is on record."""


class Touch(Document):
    """One run whose scope reaches the part that was asked about."""

    run_id: str
    state: str
    kind: str
    reason: str
    ticket: str
    requested_by: str
    planned_at: datetime
    account: str
    """On which the plan was recorded."""
    transform: str
    version: str
    git_commit: str | None
    inputs: tuple[str, ...]
    windows: tuple[Interval, ...]
    """What it reaches of that part. Empty for a run without window: it reaches all of it."""
    scope: tuple[Interval, ...]
    """All that it reaches."""
    partly: bool
    """Only some rows of those windows: a value was asked for, or rows were added or merged."""
    scope_rows: int
    """Rows in all of its scope when it was planned."""
    approvals: tuple[Word, ...]
    chunks: tuple[ChunkRows, ...]
    """Those that reach the part."""
    changed: str
    """The newest diff of the whole run in a sentence, or that nobody asked for one; empty before its verdict."""
    published: tuple[Made, ...]
    superseded_by: str | None
    detail: str
    notes: tuple[str, ...] = ()


class Seen(Document):
    """Where the rows of a piece of the part come from, as far as runs are on record."""

    window: Interval
    run_id: str | None
    """None: no run that is visible now replaced it."""
    beside: tuple[str, ...] = ()
    """Runs that changed some rows of it since."""


class Explanation(Document):
    dataset: str
    asked: str
    window: Interval
    zone: str
    runs: tuple[Touch, ...]
    """Newest first."""
    seen: tuple[Seen, ...]
    """In the order of time, without gap."""
    accepted: str | None
    """The run whose publish is the newest that readers see here."""
