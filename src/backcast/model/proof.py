"""What a run has on record about the logs it read: one proof for each job, which add up to the pinned offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

from backcast.model.coverage import Coverage
from backcast.model.document import Document, later
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
    rejected: Annotated[int, later(0)] = 0
    """Records that the transform did not want, of those that are counted here and nowhere else."""

    @property
    def aside(self) -> int:
        """Records that went to the quarantine."""
        return self.coverage.quarantined + self.rejected


def proofs(events: Iterable[Event], tokens: frozenset[int]) -> tuple[LogProof, ...]:
    """Those of the commits that count, each once: a job that died after it was told tells it again."""
    found: dict[tuple[int, str], LogProof] = {}
    for event in events:
        if event.name == COVERED and event.data["token"] in tokens:
            proof = LogProof.model_validate(event.data)
            found[proof.token, proof.input] = proof
    return tuple(found.values())


def newest(events: Iterable[Event]) -> tuple[LogProof, ...]:
    """What each chunk told last: a job that takes one up again tells it for all of its own anew."""
    found: list[LogProof] = []
    for event in events:
        if event.name == COVERED:
            proof = LogProof.model_validate(event.data)
            again = set(proof.chunks)
            found = [each for each in found if each.input != proof.input or again.isdisjoint(each.chunks)]
            found.append(proof)
    return tuple(found)


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


def summary(pin: LogPin, found: Iterable[LogProof]) -> str:
    """All proofs of an input in one sentence."""
    found = tuple(found)
    parts = [each for proof in found for each in proof.coverage.partitions]
    sums = {name: sum(getattr(each, name) for each in parts) for name in _TOLD}
    words = _TOLD if pin.by_time else _TOLD | _TOLD_OF_OFFSETS
    told = {name: words[name](number) for name, number in sums.items() if number or name == "rows"}
    if rejected := sum(each.rejected for each in found):
        told["rows"] += f" ({rejected:,} of them rejected by the transform)"
    offsets = sum(each.span for each in parts)
    where = f"{many(offsets, 'offset')} of {many(len({each.partition for each in parts}), 'partition')}"
    ids = sum((proof.coverage for proof in found), Coverage()).schema_ids
    return f"{where}: {', '.join(told.values())}{_archived(pin)}{_written_with(pin, ids)}"


def _archived(pin: LogPin) -> str:
    """How many of the offsets were read from an archive instead of the log."""
    if pin.archive is None:
        return ""
    owned = layers(each.owned for each in pin.slices.values())
    number = sum(span(pin.archive.part(layer)) for layer in owned)
    return f"; {number:,} from the archive {pin.archive.place}" if number else ""


def _written_with(pin: LogPin, ids: Mapping[int, int]) -> str:
    """Which versions of a subject the records were written with."""
    known = next((each for each in pin.schemas if each.side == "value"), None)
    if known is None or not ids:
        return ""
    versions = sorted((known.versions.get(number, 0), records) for number, records in ids.items())
    told = ", ".join(f"{many(records, 'record')} of version {version}" for version, records in versions)
    return f"; {known.subject}: {told}"


_TOLD: dict[str, Callable[[int], str]] = {
    "rows": lambda number: f"{number:,} in the window",
    "filtered": lambda number: f"{number:,} outside it",
    "timeless": lambda number: f"{number:,} without event time",
    "tombstones": lambda number: many(number, "tombstone"),
    "quarantined": lambda number: f"{number:,} quarantined",
    "compacted": lambda number: f"{number:,} compacted away",
    "markers": lambda number: many(number, "transaction marker"),
    "aborted": lambda number: f"{number:,} aborted",
}
_TOLD_OF_OFFSETS: dict[str, Callable[[int], str]] = {
    "rows": lambda number: many(number, "row"),
    "filtered": lambda number: f"{number:,} not asked for",
}
"""Where no window of time says what is asked for."""
