"""The door for Python callers: `backcast.open(".")`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backcast.project.wiring import open_world

if TYPE_CHECKING:
    from backcast.control import ControlPlane


def open_project(path: str | Path = ".", profile: str | None = None) -> ControlPlane:
    """The control plane of the project in this folder or above it. Loads no user code and starts no Spark.

    Raises ConfigError with every problem of `backcast.yaml`.
    """
    from backcast.control import ControlPlane

    return ControlPlane(open_world(path, profile))
