"""What is asked, by whom and why."""

from __future__ import annotations

from datetime import date
from enum import StrEnum

from backcast.model.document import Document
from backcast.model.scope import ValueClause


class Kind(StrEnum):
    """Why history is touched. Recorded and shown; it does not change how a run works."""

    RESTATEMENT = "restatement"
    BACKFILL = "backfill"
    REPLAY = "replay"
    REPROCESSING = "reprocessing"
    REPAIR = "repair"
    MIGRATION = "migration"
    BOOTSTRAP = "bootstrap"
    RECONCILIATION = "reconciliation"


class Request(Document):
    """The request as typed. `start` and `end` or `dates` say when; the end is exclusive."""

    pipeline: str
    start: str | None = None
    end: str | None = None
    dates: tuple[date, ...] = ()
    exclude: tuple[date, ...] = ()
    where: tuple[ValueClause, ...] = ()
    kind: Kind = Kind.RESTATEMENT
    reason: str = ""
    ticket: str = ""
    requested_by: str = ""
