"""What a run has on record about the logs it read: one proof for each job, which add up to the pinned offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from backcast.model.coverage import Coverage
from backcast.model.document import Document
from backcast.model.log import LogPin, span
from backcast.model.pieces import layers
from backcast.model.run import Event
from backcast.model.words import many

COVERED = "log.covered"
"""The event that holds a proof."""


class LogProof(Document):
    """What became of the offsets that the chunks of one job own, and how many rows the job handed to the transform.

    A record in the window of another chunk counts as a row here, where its offset is owned, and is handed over there.
    So the rows of all proofs are as many as were handed over, or a record was missed.
    """

    input: str
    token: int
    """Of the commit on the stage that holds the result."""
    chunks: tuple[str, ...]
    coverage: Coverage
    handed_over: int


def proofs(events: Iterable[Event], tokens: frozenset[int]) -> tuple[LogProof, ...]:
    """Those of the commits that count, each once: a job that died after it was told tells it again."""
    found: dict[tuple[int, str], LogProof] = {}
    for event in events:
        if event.name == COVERED and event.data["token"] in tokens:
            proof = LogProof.model_validate(event.data)
            found[proof.token, proof.input] = proof
    return tuple(found.values())


def problem(pin: LogPin, found: Iterable[LogProof]) -> str | None:
    """Why the offsets of one input are not covered; None when every one of them is accounted for."""
    whole, handed_over = Coverage(), 0
    for each in found:
        whole, handed_over = whole + each.coverage, handed_over + each.handed_over
    if whole.problems:
        return "; ".join(whole.problems[:3])
    owned = [each.owned for each in pin.slices.values()]
    for wrong, told in (
        (layers(owned, without=[whole.ranges]), "not accounted for"),
        (layers([whole.ranges], without=owned), "read though nobody asked for them"),
    ):
        if wrong:
            where = f"from offset {wrong[0][0].start} of partition {wrong[0][0].partition}"
            return f"{many(sum(map(span, wrong)), 'offset')}, {where} on, {told}"
    if whole.rows != handed_over:
        beyond = f"{abs(whole.rows - handed_over):,} of {many(whole.rows, 'record')} in the window"
        return f"{beyond} lie beyond the slack of their chunk: raise `slack`, or set `to_end`"
    return None


def summary(found: Iterable[LogProof]) -> str:
    """All proofs of an input in one sentence."""
    parts = [each for proof in found for each in proof.coverage.partitions]
    sums = {name: sum(getattr(each, name) for each in parts) for name in _TOLD}
    told = ", ".join(_TOLD[name](number) for name, number in sums.items() if number or name == "rows")
    offsets = sum(each.span for each in parts)
    return f"{many(offsets, 'offset')} of {many(len({each.partition for each in parts}), 'partition')}: {told}"


_TOLD: dict[str, Callable[[int], str]] = {
    "rows": lambda number: f"{number:,} in the window",
    "filtered": lambda number: f"{number:,} outside it",
    "tombstones": lambda number: many(number, "tombstone"),
    "quarantined": lambda number: f"{number:,} quarantined",
    "compacted": lambda number: f"{number:,} compacted away",
    "markers": lambda number: many(number, "transaction marker"),
    "aborted": lambda number: f"{number:,} aborted",
}
