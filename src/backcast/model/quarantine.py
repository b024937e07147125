"""Records that a run set aside: those that could not be decoded, and those that the transform rejected."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from backcast.model.document import Document, later
from backcast.model.proof import LogProof, newest
from backcast.model.run import Event, Run

POSITION = "_kafka"
"""The column that tells a transform where a record came from, and that it returns beside `REJECTED`."""
REJECTED = "_rejected"
"""The column by which a transform says why it does not want a record; null for rows that it does."""


FULL = "quarantine_full"
"""In the event of a run that failed because it met more of them than it may."""


def is_full(events: Iterable[Event]) -> bool:
    """Whether that is how the run failed last: repeated as it is, it would end the same way."""
    failures = [event for event in events if event.name == "state.failed"]
    return bool(failures) and bool(failures[-1].data.get(FULL))


def rejects(returned: Iterable[str], table: Iterable[str]) -> bool:
    """Whether a transform that returns these columns rejects records. A table may have a column of that name itself."""
    return REJECTED in set(returned) and REJECTED not in set(table)


class QuarantinedRun(Document):
    """A run that set records aside, and how many of one input."""

    run_id: str
    state: str
    input: str
    records: int
    chunks: tuple[str, ...]
    """Those that met some."""
    rejected: Annotated[int, later(0)] = 0
    """How many of the records the transform did not want."""
    retried_by: Annotated[str | None, later(None)] = None
    """The run that has taken them up again, or is about to."""


class QuarantinedRecord(Document):
    """One of them. Key and value are shown as text, with what is none replaced."""

    topic: str
    partition: int
    offset: int
    record_time: datetime | None
    reason: str
    key: str | None
    value: str | None


def quarantined(run: Run, events: Iterable[Event]) -> list[QuarantinedRun]:
    """By input, as the proofs on record tell; what a repeated chunk met counts once."""
    found: dict[str, list[LogProof]] = {}
    for proof in newest(events):
        if proof.aside:
            found.setdefault(proof.input, []).append(proof)
    return [
        QuarantinedRun(
            run_id=run.run_id,
            state=run.state,
            input=name,
            records=sum(each.aside for each in each_of),
            chunks=tuple(chunk for each in each_of for chunk in each.chunks),
            rejected=sum(each.rejected for each in each_of),
        )
        for name, each_of in found.items()
    ]
