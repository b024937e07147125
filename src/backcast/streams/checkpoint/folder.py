"""The folder of a checkpoint: which files it has, and what its logs say. Nothing here writes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from backcast.errors import InvalidRequest
from backcast.model.checkpoint_log import Committed, Garbled, Planned, read_committed, read_id, read_planned
from backcast.streams.checkpoint.state_files import Operator, operators_of

_LOCAL = ("file://", "file:")
_BATCH = re.compile(r"\d{1,18}", re.ASCII)
_Read = TypeVar("_Read")
Told = int | None
"""How many operators of the query keep state, by whoever saw it run. None: only the files can tell."""


class Checkpoint:
    """One look at a folder: what was listed is remembered, so a look at a running stream may find files gone."""

    def __init__(self, root: Path, told: Told = None) -> None:
        self.root = root
        self.told = told

    @staticmethod
    def at(folder: str | Path, told: Told = None) -> Checkpoint:
        """Raises InvalidRequest when it is no folder of this machine, or no checkpoint."""
        root = local_folder(folder)
        waiting = root.parent / f".{root.name}.backcast-ready"
        if not root.exists() and waiting.is_dir():
            hint = "type the command that was interrupted once more: it finishes the exchange"
            raise InvalidRequest(f"{root} is not there: an exchange was interrupted, and {waiting} waits", hint=hint)
        if not any((root / name).exists() for name in ("metadata", "offsets", "commits", "state")):
            hint = "name the folder that the query has as checkpointLocation, or a declared stream"
            said = "is no checkpoint: it has neither `metadata` nor `offsets`" if root.exists() else "does not exist"
            raise InvalidRequest(f"{root} {said}", hint=hint)
        return Checkpoint(root, told)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Batches that were planned."""
        return _batches(self.root / "offsets")

    @cached_property
    def commits(self) -> tuple[int, ...]:
        return _batches(self.root / "commits")

    @property
    def planned(self) -> int | None:
        return self.offsets[-1] if self.offsets else None

    @property
    def committed(self) -> int | None:
        return self.commits[-1] if self.commits else None

    @property
    def next_batch(self) -> int:
        """The batch that a restart runs first, as Spark decides it: the last planned one unless that is committed."""
        if self.planned is None:
            return 0
        return self.planned + 1 if self.planned in self.commits else self.planned

    @cached_property
    def operators(self) -> tuple[Operator, ...]:
        return operators_of(self.root / "state")

    @cached_property
    def closing(self) -> int | None:
        """The newest batch without records: only a query with state runs one, to close windows."""
        for number in reversed(self.offsets):
            plan, before = self.readable_plan(number), self.readable_plan(number - 1)
            if plan is not None and before is not None and plan.ends == before.ends:
                return number
        return None

    def query_id(self) -> str | None:
        """None when the file is not there. Raises Garbled."""
        return self._read(Path("metadata"), read_id)

    def plan(self, batch: int) -> Planned | None:
        """None when the file is not there. Raises Garbled."""
        return self._read(Path("offsets", str(batch)), read_planned)

    def commit(self, batch: int) -> Committed | None:
        return self._read(Path("commits", str(batch)), read_committed)

    def readable_plan(self, batch: int | None) -> Planned | None:
        """The plan of the batch where it can be read, for screens that show what there is."""
        try:
            return None if batch is None else self.plan(batch)
        except Garbled:
            return None

    def readable_commit(self, batch: int | None) -> Committed | None:
        try:
            return None if batch is None else self.commit(batch)
        except Garbled:
            return None

    def readable_id(self) -> str | None:
        try:
            return self.query_id()
        except Garbled:
            return None

    def files(self) -> tuple[Path, ...]:
        """Every file below, relative; folders and links to nowhere are not files."""
        return tuple(sorted(each.relative_to(self.root) for each in self.root.rglob("*") if each.is_file()))

    def _read(self, file: Path, read: Callable[[str], _Read]) -> _Read | None:
        try:
            return read((self.root / file).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise Garbled("version", "it is no text") from None
        except RecursionError:
            raise Garbled("json", "it is nested too deep") from None
        except OSError as error:
            raise Garbled("unreadable", f"it cannot be read: {error.strerror}") from error


def is_local(folder: str) -> bool:
    """Whether an address is one of a disk of this machine."""
    return folder.startswith(_LOCAL) or "://" not in folder


def local_folder(folder: str | Path) -> Path:
    """The folder itself, however it is spelled: no `..` is in it, and no link leads there.

    Raises InvalidRequest for an address of elsewhere.
    """
    text = str(folder)
    for prefix in _LOCAL:
        if text.startswith(prefix):
            return Path(os.path.realpath(text.removeprefix(prefix)))
    if not is_local(text):
        hint = "copy the checkpoint here and name the copy"
        raise InvalidRequest(f"{text}: only checkpoints on a disk of this machine can be read", hint=hint)
    return Path(os.path.realpath(Path(text).expanduser()))


def is_same_folder(one: Path, other: Path) -> bool:
    """Also where the disk has two names for it: letters of either case, or a folder that is mounted twice."""
    try:
        return one == other or one.samefile(other)
    except OSError:
        return False


def start_of(file: Path) -> str:
    """What `sources/N/0` of a topic says: where it was begun with. Empty when it cannot be read."""
    try:
        version, _, text = file.read_bytes().removeprefix(b"\0").decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return ""
    return text if version == "v1" else ""


def _batches(folder: Path) -> tuple[int, ...]:
    # Beside them lie checksums and files that are being written.
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    return tuple(sorted(int(name) for name in names if _BATCH.fullmatch(name)))
