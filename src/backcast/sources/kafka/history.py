"""The batches that a checkpoint still knows: up to where each read a topic, when, and with which watermark."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from backcast.errors import InvalidRequest
from backcast.sources.kafka.checkpoint import checkpoint_folder, planned_batch, position_in
from backcast.sources.kafka.record_times import instant_of


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of a stream. Spark keeps about a hundred of them."""

    number: int
    ends: dict[int, int]
    """By partition: the first offset that it did not read."""
    begun: datetime
    watermark: datetime | None
    """In force when it began; None before any row had a time, and in streams without a watermark."""
    committed: bool


def checkpoint_batches(folder: str | Path, topic: str) -> tuple[Batch, ...]:
    """In order; the last one may be planned only. Raises InvalidRequest, which names the file, for garbled ones."""
    root = checkpoint_folder(folder)
    commits = _numbers(root / "commits")
    found = []
    for number in sorted(_numbers(root / "offsets")):
        file = root / "offsets" / str(number)
        try:
            plan = planned_batch(file)
        except InvalidRequest:
            if file.exists():
                raise
            # The stream forgets old batches while it runs.
            continue
        if not plan.time_ms:
            hint = "start the query again so that it can repair it"
            raise InvalidRequest(f"{file}, line 2: it does not say when the batch began", hint=hint)
        found.append(
            Batch(
                number=number,
                ends=position_in(file, plan, topic),
                begun=instant_of(plan.time_ms),
                watermark=instant_of(plan.watermark_ms) if plan.watermark_ms > 0 else None,
                committed=number in commits,
            )
        )
    return tuple(found)


def _numbers(folder: Path) -> set[int]:
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    return {int(name) for name in names if name.isascii() and name.isdigit()}
