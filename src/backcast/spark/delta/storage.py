"""What lies in the storage under a Delta table: Hadoop's file system, which is public."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or a folder."""

    path: str
    name: str
    is_folder: bool
    modified: int
    """Milliseconds since 1970."""


class Storage:
    """Paths are canonical: decoded, with their scheme."""

    def __init__(self, files: Any, path_class: Any) -> None:
        self._files, self._path = files, path_class

    def exists(self, path: str) -> bool:
        return bool(self._files.exists(self._path(path)))

    def entries(self, folder: str) -> Iterator[Entry]:
        """Directly in the folder."""
        for status in self._files.listStatus(self._path(folder)):
            path = status.getPath()
            yield Entry(path.toString(), path.getName(), status.isDirectory(), int(status.getModificationTime()))

    def delete(self, path: str) -> bool:
        """A file, or a folder with all that is in it; False when it was gone already."""
        return bool(self._files.delete(self._path(path), True))
