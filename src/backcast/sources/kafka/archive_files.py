"""Files of an archive that somebody else writes: which there are, and exactly those read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from backcast.model.log import ArchivedFile, ArchivePin
from backcast.spark.gateway import jvm_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WILD = re.compile(r"[*?\[{]")
_HIDDEN = ("_", ".")


def list_files(spark: SparkSession, place: str) -> tuple[ArchivedFile, ...]:
    """Every file that matches, and those in folders that match, but for what Spark itself passes by."""
    with jvm_errors(f"listing {place}"):
        jvm: Any = spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(place)
        files = path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        found = [one for status in files.globStatus(path) or () for one in _below(files, status)]
    return tuple(sorted(found, key=lambda each: each.path))


def read_files(spark: SparkSession, pin: ArchivePin) -> DataFrame:
    """Exactly these files; columns that are told by names of folders are there too."""
    return spark.read.option("basePath", _base(pin.place)).parquet(*(each.path for each in pin.files))


def _below(files: Any, status: Any) -> Iterator[ArchivedFile]:
    path = status.getPath()
    if path.getName().startswith(_HIDDEN):
        return
    if status.isDirectory():
        for each in files.listStatus(path):
            yield from _below(files, each)
    else:
        yield ArchivedFile(path=path.toString(), size=status.getLen(), modified=status.getModificationTime())


def _base(place: str) -> str:
    """The folder in which folders with columns in their names begin: the last one without a wildcard."""
    wild = _WILD.search(place)
    if wild is not None:
        return place[: wild.start()].rpartition("/")[0] or "/"
    return place.rpartition("/")[0] if place.endswith(".parquet") else place
