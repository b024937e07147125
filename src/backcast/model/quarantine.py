"""What people see of records that could not be decoded."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from backcast.model.document import Document
from backcast.model.proof import COVERED, LogProof
from backcast.model.run import Event, Run


class QuarantinedRun(Document):
    """A run that met such records, and how many of one input."""

    run_id: str
    state: str
    input: str
    records: int
    chunks: tuple[str, ...]
    """Those that met some."""


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
    newest: dict[tuple[str, tuple[str, ...]], LogProof] = {}
    for event in events:
        if event.name == COVERED:
            proof = LogProof.model_validate(event.data)
            newest[proof.input, proof.chunks] = proof
    found: dict[str, list[LogProof]] = {}
    for proof in newest.values():
        if proof.coverage.quarantined:
            found.setdefault(proof.input, []).append(proof)
    return [
        QuarantinedRun(
            run_id=run.run_id,
            state=run.state,
            input=name,
            records=sum(each.coverage.quarantined for each in each_of),
            chunks=tuple(chunk for each in each_of for chunk in each.chunks),
        )
        for name, each_of in found.items()
    ]
