"""Folders of the project that the machines of a cluster would have to write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backcast.errors import Refused
from backcast.spark.settings import local_cores

if TYPE_CHECKING:
    from pathlib import Path

    from backcast.project.config import Project


def refuse_unshared(project: Project, master: str, folder: Path) -> None:
    """Raises Refused when executors run on other machines, and nobody has said that they have the folder too.

    Each would write its rows to a disk of its own: whoever reads the folder here finds a part of them, or none.
    """
    if local_cores(master) or project.config.spark.shared:
        return
    raise Refused(
        f"a replay keeps its rows and its state in {folder}, and executors of {master} write them: on other machines"
        " they have that folder only if it is shared",
        hint="put the project on storage that every machine has at the same path, and say so: spark: {shared: true}; or"
        ' take a profile with spark: {master: "local[*]"}',
    )
