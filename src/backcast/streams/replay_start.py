"""Where a replay starts: the newest batch of a live query that lies before a moment, and a checkpoint made of it."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from backcast.errors import Drifted, InvalidRequest

_VERSION = "v1"
_VOID = "-"
_STATE_VERSION = re.compile(r"\.?(\d+)(?:_[0-9a-f-]+)?\.(?:delta|snapshot|zip|changelog)(?:\.crc)?")


@dataclass(frozen=True, slots=True)
class Start:
    """A committed batch of the live query: all that was read up to it happened before the moment that was asked for."""

    query_id: str
    batch: int
    positions: dict[int, int]


def start_before(folder: Path, topic: str, moment: datetime, delay: timedelta) -> Start | None:
    """The newest such batch; None when the checkpoint has none.

    What was read before batch N happened at its watermark plus the delay at the latest, for that is what the watermark
    follows from. A batch without a watermark had read nothing, or says nothing.
    """
    latest = (moment - delay).timestamp() * 1000
    committed = _numbers(folder / "commits")
    for number in sorted(_numbers(folder / "offsets"), reverse=True):
        document, _ = _read(folder, number)
        watermark = int(document.get("batchWatermarkMs") or 0)
        before = number - 1
        if 0 < watermark <= latest and before in committed and before in _numbers(folder / "offsets"):
            _, sources = _read(folder, before)
            positions = _positions(sources, topic, folder)
            return Start(json.loads((folder / "metadata").read_text())["id"], before, positions)
    return None


def begin(folder: Path, batch: int, into: Path) -> None:
    """A copy of the checkpoint as it was after that batch, for a query of another name whose every topic is followed by
    a source of sentinels. Raises Drifted when the live query has meanwhile removed what it takes.
    """
    try:
        _copy(folder, batch, into)
    except FileNotFoundError as error:
        raise Drifted(
            f"batch {batch} of the checkpoint {folder} is gone: the query keeps the newest ones only", hint="plan again"
        ) from error
    (into / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))


def _copy(folder: Path, batch: int, into: Path) -> None:
    for name in ("offsets", "commits"):
        (into / name).mkdir(parents=True)
        for number in (each for each in _numbers(folder / name) if each <= batch):
            text = (folder / name / str(number)).read_text()
            if name == "offsets":
                version, document, *sources = text.split("\n")
                text = "\n".join([version, document, *(line for each in sources for line in (each, _VOID))])
            (into / name / str(number)).write_text(text)
    if batch not in _numbers(into / "offsets") or batch not in _numbers(into / "commits"):
        raise FileNotFoundError(batch)
    if (folder / "state").is_dir():
        shutil.copytree(folder / "state", into / "state", ignore=lambda _, names: _newer(names, batch + 1))


def _newer(names: list[str], version: int) -> list[str]:
    """State of later batches: a newer snapshot of another past would be taken for ours."""
    return [name for name in names if (found := _STATE_VERSION.fullmatch(name)) and int(found[1]) > version]


def _numbers(folder: Path) -> set[int]:
    return {int(each.name) for each in folder.iterdir() if each.name.isdigit()} if folder.is_dir() else set()


def _read(folder: Path, batch: int) -> tuple[dict[str, Any], list[str]]:
    file = folder / "offsets" / str(batch)
    version, *lines = file.read_text().split("\n")
    if version != _VERSION or len(lines) < len(("metadata", "source")):
        raise InvalidRequest(f"{file}: it is no offset log of version {_VERSION}", hint="backcast checkpoint verify")
    return json.loads(lines[0]), lines[1:]


def _positions(sources: list[str], topic: str, folder: Path) -> dict[int, int]:
    found = [document for line in sources if line and line != _VOID and topic in (document := json.loads(line))]
    if not found or any(each != found[0] for each in found):
        raise InvalidRequest(f"{folder}: the query does not read topic {topic!r} up to one position")
    return {int(partition): int(offset) for partition, offset in found[0][topic].items()}
