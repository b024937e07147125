"""The batches that a checkpoint still knows: up to where each read a topic, when, and with which watermark."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from backcast.errors import InvalidRequest
from backcast.sources.kafka.checkpoint import checkpoint_folder, log_lines, positions
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
            lines = log_lines(file, "the offsets")
        except InvalidRequest:
            if file.exists():
                raise
            # The stream forgets old batches while it runs.
            continue
        found.append(_batch(file, number, lines, topic, committed=number in commits))
    return tuple(found)


def _numbers(folder: Path) -> set[int]:
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    return {int(name) for name in names if name.isascii() and name.isdigit()}


def _batch(file: Path, number: int, lines: list[str], topic: str, *, committed: bool) -> Batch:
    try:
        told: Any = json.loads(lines[0])
        begun, watermark = int(told["batchTimestampMs"]), int(told["batchWatermarkMs"])
    except (IndexError, KeyError, TypeError, ValueError) as error:
        hint = "start the query again so that it can repair it"
        raise InvalidRequest(f"{file}, line 2: it does not say when the batch began", hint=hint) from error
    return Batch(
        number=number,
        ends=positions(file, lines, topic),
        begun=instant_of(begun),
        watermark=instant_of(watermark) if watermark > 0 else None,
        committed=committed,
    )
