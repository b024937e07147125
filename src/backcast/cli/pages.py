"""Pages that commands write beside what they print."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest

if TYPE_CHECKING:
    from backcast.cli.screen import Screen


def check_new(path: Path | None) -> None:
    """At once: whoever has waited for Spark should not hear then that the file cannot be written."""
    if path is None:
        return
    if path.exists():
        raise InvalidRequest(f"{path} exists already", hint="give another name, or move it away")
    if not path.absolute().parent.is_dir():
        raise InvalidRequest(f"there is no folder {path.parent}", hint="make it first")


def write_page(screen: Screen, path: Path | None, page: Callable[[], str]) -> None:
    from backcast.cli.new_files import write_new

    if path is not None:
        write_new(path, page().encode())
        screen.note(f"wrote {path}")
