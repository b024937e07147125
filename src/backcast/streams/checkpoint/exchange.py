"""One folder in the place of another, by two renames: killed anywhere, the same command brings it to its end.

    .NAME.backcast-building   being made; worth nothing
    .NAME.backcast-ready      complete and proven
    NAME.before-ACTION-TIME   what was there before; never removed

Between the renames there is no NAME, and `ready` is: whoever looks next finishes it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path


class Exchange:
    def __init__(self, root: Path) -> None:
        # A link stays one: what it leads to is exchanged.
        self.root = Path(os.path.realpath(root))
        self._building = self.root.parent / f".{self.root.name}.backcast-building"
        self._ready = self.root.parent / f".{self.root.name}.backcast-ready"

    def finish_interrupted(self) -> bool:
        """Whether an exchange had been interrupted between its renames, and is finished now.

        One that had not begun is thrown away: it will be made anew.
        """
        if not self._ready.exists():
            return False
        if not self.root.exists():
            self._ready.rename(self.root)
            _sync(self.root.parent)
            return True
        shutil.rmtree(self._ready)
        return False

    @contextmanager
    def building(self) -> Iterator[Path]:
        """Where to build; leftovers of a killed command are gone, and so is what an error left."""
        shutil.rmtree(self._building, ignore_errors=True)
        self._building.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield self._building
        except Exception:
            shutil.rmtree(self._building, ignore_errors=True)
            raise

    def exchange(self, action: str, now: datetime) -> Path | None:
        """Put what was built in its place; where the one before lies now, if there was one."""
        self._building.rename(self._ready)
        _sync(self.root.parent)
        kept = None
        if self.root.exists():
            kept = self._aside(action, now)
            self.root.rename(kept)
        self._ready.rename(self.root)
        _sync(self.root.parent)
        return kept

    def kept(self) -> list[Path]:
        """What earlier exchanges left, oldest first."""
        return sorted(self.root.parent.glob(f"{self.root.name}.before-*"), key=lambda each: each.stat().st_ctime)

    def _aside(self, action: str, now: datetime) -> Path:
        name = f"{self.root.name}.before-{action}-{now:%Y%m%dT%H%M%SZ}"
        number, found = 1, self.root.parent / name
        while found.exists():
            number += 1
            found = self.root.parent / f"{name}-{number}"
        return found


def _sync(folder: Path) -> None:
    """A rename counts once its folder is on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
