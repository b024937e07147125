"""What is asked, by whom and why."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated

from backcast.model.document import Document, later
from backcast.model.scope import ValueClause
from backcast.model.watermark import WatermarkStrategy


class Kind(StrEnum):
    """Why history is touched. Recorded and shown; only a bootstrap works differently, see `plan.bootstrap`."""

    RESTATEMENT = "restatement"
    BACKFILL = "backfill"
    REPLAY = "replay"
    REPROCESSING = "reprocessing"
    REPAIR = "repair"
    MIGRATION = "migration"
    BOOTSTRAP = "bootstrap"
    RECONCILIATION = "reconciliation"


MOST = 10**15
"""Rows or money: larger numbers are slips, and have no exact form in a manifest."""


class Request(Document):
    """The request as typed. `start` and `end` or `dates` say when; the end is exclusive."""

    pipeline: str
    start: str | None = None
    end: str | None = None
    dates: tuple[date, ...] = ()
    exclude: tuple[date, ...] = ()
    where: tuple[ValueClause, ...] = ()
    offsets: Annotated[str | None, later(None)] = None
    """Of a topic: `0=100..200,1=50..`, `earliest`, or as Spark writes them."""
    record_time: Annotated[str | None, later(None)] = None
    """Of a topic: `FROM..TO`, the times that records carry themselves."""
    checkpoint: Annotated[str | None, later(None)] = None
    """Of a topic: from where the stream with this checkpoint stands to the end of the log."""
    stream: Annotated[str | None, later(None)] = None
    """The live stream whose result is computed anew, from its own state where a batch would give other rows."""
    as_stream: Annotated[bool, later(False)] = False
    """Also where a batch would give the same."""
    watermark: Annotated[WatermarkStrategy | None, later(None)] = None
    """How event time advances in the replay of a stream; None: as the plan finds right."""
    takeover: Annotated[bool, later(False)] = False
    """The rows are those of a full replay of the stream, whose query will go on as the stream."""
    retries: Annotated[str | None, later(None)] = None
    """The run whose quarantined records these offsets, or this window, hold."""
    affected: Annotated[int | None, later(None)] = None
    """How many rows are known to be wrong. Changes nothing but what the plan advises."""
    max_rows: Annotated[int | None, later(None)] = None
    """The most that the run may write, cost and take; a policy may allow less."""
    max_cost: Annotated[float | None, later(None)] = None
    max_seconds: Annotated[int | None, later(None)] = None
    kind: Kind = Kind.RESTATEMENT
    reason: str = ""
    ticket: str = ""
    requested_by: str = ""
