"""The project's Python handed to executors on other machines: they have neither its folder nor any other of this one.

A function that an executor calls is named there by its module, which it imports. So what a transform consists of goes
along as an archive, one for each state of the files.
"""

from __future__ import annotations

import atexit
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from zipfile import ZipFile

from backcast.model.document import sha256
from backcast.spark.settings import local_cores

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def ship(spark: SparkSession, root: Path, files: Mapping[str, str]) -> None:
    """Make the Python among the files, given with their hashes, importable in every task from now on.

    Does nothing on a local master, whose tasks see the folder itself, nor for files that are there already.
    """
    context = spark.sparkContext
    modules = {name: digest for name, digest in files.items() if name.endswith(".py")}
    if local_cores(str(context.master)) or not modules:
        return
    name = f"backcast-{sha256(repr(sorted(modules.items())).encode())[:16]}.zip"
    if any(each.endswith(f"/{name}") for each in context.listFiles):
        return
    archive = _scratch() / name
    with ZipFile(archive, "w", strict_timestamps=False) as file:
        for folder in _folders(modules):
            file.mkdir(folder)
        for module in sorted(modules):
            file.write(root / module, module)
    path = list(sys.path)
    context.addPyFile(str(archive))
    # This process imports from the folder: an archive in its way would bring back what was deleted there.
    sys.path[:] = path


@cache
def _scratch() -> Path:
    """Executors fetch from there as long as this process lives."""
    folder = tempfile.mkdtemp(prefix="backcast-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _folders(names: Iterable[str]) -> list[str]:
    """A package without a file of its own is found by its folder alone."""
    return sorted({str(each) for name in names for each in PurePosixPath(name).parents} - {"."})
