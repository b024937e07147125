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

    def __init__(self, configuration: Any, path_class: Any) -> None:
        self._configuration, self._class = configuration, path_class

    def exists(self, path: str) -> bool:
        files, found = self._at(path)
        return bool(files.exists(found))

    def entries(self, folder: str) -> Iterator[Entry]:
        """Directly in the folder."""
        files, found = self._at(folder)
        for status in files.listStatus(found):
            path = status.getPath()
            yield Entry(path.toString(), path.getName(), status.isDirectory(), int(status.getModificationTime()))

    def delete(self, path: str) -> bool:
        """A file, or a folder with all that is in it; False when it was gone already."""
        files, found = self._at(path)
        return bool(files.delete(found, True))

    def _at(self, path: str) -> tuple[Any, Any]:
        """The file system that has it, and the path there: files of a clone may lie in another bucket than its log."""
        found = self._class(path)
        return found.getFileSystem(self._configuration), found
