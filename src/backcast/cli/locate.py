"""Which project a command means, and where its logs go."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from backcast.errors import ConfigError

PROJECT_FILE = "backcast.yaml"
_KEPT_LOGS = 200


def find_project(start: Path | None) -> Path:
    """The given folder, or the nearest one upwards from here, that holds backcast.yaml. Raises ConfigError."""
    if start is not None:
        folder = start.expanduser().resolve()
        folder = folder.parent if folder.name == PROJECT_FILE else folder
        if (folder / PROJECT_FILE).is_file():
            return folder
        raise ConfigError(f"there is no {PROJECT_FILE} in {start}", hint=f"backcast init {start}")
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / PROJECT_FILE).is_file():
            return folder
    raise ConfigError(
        f"there is no {PROJECT_FILE} in this folder or any parent", hint="backcast init, or name one with --project DIR"
    )


def log_file(project: Path, verb: str, *, elsewhere: bool = False) -> Path:
    """A fresh log for one command: in the project, or in the temporary folder when it is to be elsewhere or must be."""
    try:
        if elsewhere:
            raise PermissionError(project)
        folder = private_folder(project) / "logs"
        folder.mkdir(exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(folder)
    except OSError:
        folder = Path(tempfile.gettempdir(), f"backcast-logs-{os.getuid()}")
        folder.mkdir(mode=0o700, exist_ok=True)
    for old in sorted(folder.glob("*.log"))[:-_KEPT_LOGS]:
        old.unlink(missing_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    return folder / f"{moment}Z-{verb}.log"


def private_folder(project: Path) -> Path:
    """The project's .backcast folder, which git ignores by its own hand."""
    folder = project / ".backcast"
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    return folder


def short_path(path: Path) -> str:
    """Relative to the current folder when it lies below it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
