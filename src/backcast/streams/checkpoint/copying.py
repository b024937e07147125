"""Copies of a checkpoint: whole, or up to a batch."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from backcast.errors import InvalidRequest
from backcast.streams.checkpoint.content import checksum_beside
from backcast.streams.checkpoint.folder import Checkpoint
from backcast.streams.checkpoint.state_files import file_version

Chosen = Callable[[Path], bool]
"""Whether a file, by its path relative to the checkpoint, belongs into a copy."""
_LOGGED = re.compile(r"\.?(?P<batch>\d{1,18})(\.crc)?", re.ASCII)
_SOURCE_LOG = re.compile(r"\.?(?P<entry>\d{1,18})(?P<compact>\.compact)?(\.crc)?", re.ASCII)
_PIECE = 1 << 20


def everything(file: Path) -> bool:
    """Files that are being written are no part of any checkpoint."""
    return ".tmp" not in file.name


def up_to(committed: int, planned: int | None = None) -> Chosen:
    """Logs up to these batches, and the state that the committed one left."""
    last = committed if planned is None else planned

    def chosen(file: Path) -> bool:
        if not everything(file):
            return False
        match file.parts:
            case ("offsets", name):
                return _within(name, last)
            case ("commits", name):
                return _within(name, committed)
            case ("state", *_):
                version = file_version(file.name)
                return version is None or version <= committed + 1
            case _:
                return True

    return chosen


def copy_files(checkpoint: Checkpoint, to: Path, chosen: Chosen = everything, *, vanishing: bool = False) -> int:
    """Copy what is chosen into a new folder; how many files were left out.

    Raises FileNotFoundError when one is not there any more, unless they may vanish: a stream removes old ones.
    """
    left = 0
    to.mkdir(parents=True)
    for file in checkpoint.files():
        if not chosen(file):
            left += 1
            continue
        (to / file).parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(checkpoint.root / file, to / file)
        except FileNotFoundError:
            if not vanishing:
                raise
            left += 1
    for name in ("offsets", "commits"):
        (to / name).mkdir(exist_ok=True)
    return left


def write_id(root: Path, query_id: str) -> None:
    """The copy becomes that query."""
    file = root / "metadata"
    checksum_beside(file).unlink(missing_ok=True)
    file.write_text(json.dumps({"id": query_id}, separators=(",", ":")), encoding="utf-8")


def forget_listed_files(root: Path, batch: int) -> tuple[str, ...]:
    """A source of files keeps a log of its own, by the same numbers: what it listed after the batch is listed again.

    Without that it takes all of it in one batch. Says what had to stay, because it was compacted together.
    """
    plan = Checkpoint(root).plan(batch)
    notes = []
    for source in () if plan is None else plan.sources:
        folder, last = root / "sources" / source.name, _log_offset(source.text)
        if last is None or not folder.is_dir():
            continue
        later = [each for each in folder.iterdir() if (entry := _entry(each.name)) is not None and entry > last]
        if any(".compact" in each.name for each in later):
            notes.append(f"source {source.name} remembers files that it listed later: it takes them in one batch")
            continue
        for each in later:
            each.unlink()
    return tuple(notes)


def hash_of(file: Path) -> str:
    found = sha256()
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            found.update(piece)
    return found.hexdigest()


def refuse_existing(folder: Path) -> None:
    if folder.exists():
        raise InvalidRequest(f"{folder} exists already", hint="name a folder that does not exist")


def _within(name: str, last: int) -> bool:
    found = _LOGGED.fullmatch(name)
    return found is None or int(found["batch"]) <= last


def _entry(name: str) -> int | None:
    found = _SOURCE_LOG.fullmatch(name)
    return None if found is None else int(found["entry"])


def _log_offset(text: str) -> int | None:
    try:
        document = json.loads(text)
    except ValueError:
        return None
    found = document.get("logOffset") if isinstance(document, dict) else None
    return found if isinstance(found, int) else None
