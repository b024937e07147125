"""How much room the disks of this machine have left."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backcast.project.config import Project

_SCRATCH = "spark.local.dir"


def free_space(project: Project, dataset: str) -> tuple[int | None, int | None]:
    """Free bytes of the table's disk and of Spark's scratch folder; None for what is not on this machine.

    A cluster's executors have scratch folders of their own, about which nothing is known here.
    """
    local = project.config.spark.master.startswith("local")
    scratch = project.config.spark.conf.get(_SCRATCH, tempfile.gettempdir()).partition(",")[0]
    return _free(project, _place(project, dataset)), _free(project, scratch) if local else None


def _place(project: Project, dataset: str) -> str | None:
    config = project.config.datasets.get(dataset)
    if config is None:
        return None
    if config.table is None:
        return config.path
    catalog = project.config.catalogs[config.table.partition(".")[0]]
    return catalog.warehouse


def _free(project: Project, place: str | None) -> int | None:
    if place is None or "${" in place:
        return None
    text = place.removeprefix("file://").removeprefix("file:")
    if ":" in text:
        return None
    folder = project.root / Path(text).expanduser()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None
