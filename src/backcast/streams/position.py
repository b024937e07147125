"""How far a query of ours has come, from the files of its checkpoint, wherever Spark can reach them.

Only what running needs: offsets of one batch, and where the next one begins. Nothing is ever written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from backcast.errors import Refused
from backcast.model.log import OffsetRange, Ranges
from backcast.ports.streams import Position

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_VERSION = "v1"
_NO_OFFSET = "-"


class CheckpointFiles:
    """The folder of a checkpoint, through Hadoop's file systems."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        jvm: Any = spark._jvm
        self._jvm = jvm
        self._folder = jvm.org.apache.hadoop.fs.Path(folder)
        self._files = self._folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
        self.folder = folder

    def text(self, *parts: str) -> str | None:
        """None when there is no such file."""
        path = self._path(*parts)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            size = int(self._files.getFileStatus(path).getLen())
            return bytes(stream.readNBytes(size)).decode()
        finally:
            stream.close()

    def batches(self, folder: str) -> list[int]:
        """Numbers of the files in a folder; beside them lie checksums and files that are being written."""
        path = self._path(folder)
        if not self._files.exists(path):
            return []
        names = [each.getPath().getName() for each in self._files.listStatus(path)]
        return sorted(int(name) for name in names if name.isascii() and name.isdigit())

    def _path(self, *parts: str) -> Any:
        path = self._folder
        for part in parts:
            path = self._jvm.org.apache.hadoop.fs.Path(path, part)
        return path


def position(files: CheckpointFiles, topic: str) -> Position:
    """Where the checkpoint stands. Raises Refused for files that cannot be read."""
    metadata = files.text("metadata")
    if metadata is None:
        if files.batches("offsets"):
            raise _damaged(files, "metadata", "it is missing, and there are batches")
        return Position()
    planned, committed = files.batches("offsets"), files.batches("commits")
    over = committed[-1] if committed else None
    topics = _topics(files, planned[-1]) if planned else ()
    return Position(
        query_id=str(_json(files, "metadata", metadata)["id"]),
        committed=over,
        planned=planned[-1] if planned else None,
        ends=batch_ends(files, over, topic) if over is not None and topic in topics else {},
        topics=topics,
    )


def batch_ranges(files: CheckpointFiles, batch: int, topic: str) -> Ranges:
    """What a batch reads of the topic. A partition that was added since the batch before is read from its start."""
    ends = batch_ends(files, batch, topic)
    starts = batch_ends(files, batch - 1, topic) if batch else _first(files, topic)
    return tuple(
        OffsetRange(partition=each, start=min(starts.get(each, 0), end), end=end) for each, end in sorted(ends.items())
    )


def batch_ends(files: CheckpointFiles, batch: int, topic: str) -> dict[int, int]:
    for each in _sources(files, batch):
        if topic in each:
            return {int(key): int(value) for key, value in each[topic].items()}
    raise _damaged(files, f"offsets/{batch}", f"it does not tell about topic {topic}")


def _topics(files: CheckpointFiles, batch: int) -> tuple[str, ...]:
    return tuple(sorted({topic for each in _sources(files, batch) for topic in each}))


def _sources(files: CheckpointFiles, batch: int) -> list[dict[str, Any]]:
    name = f"offsets/{batch}"
    text = files.text("offsets", str(batch))
    if text is None:
        raise _damaged(files, name, "it is missing")
    version, *lines = text.split("\n")
    if version != _VERSION:
        raise _damaged(files, name, f"it begins with {version[:20]!r}, not {_VERSION}")
    return [_json(files, name, line) for line in lines[1:] if line and line != _NO_OFFSET]


def _first(files: CheckpointFiles, topic: str) -> dict[int, int]:
    """Where the query began, which its source wrote down."""
    text = files.text("sources", "0", "0")
    if text is None:
        return {}
    document = _json(files, "sources/0/0", text.lstrip("\0").partition("\n")[2])
    return {int(key): int(value) for key, value in document.get(topic, {}).items()}


def _json(files: CheckpointFiles, name: str, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _damaged(files, name, "it cannot be read")
    return found


def _damaged(files: CheckpointFiles, name: str, problem: str) -> Refused:
    return Refused(
        f"{files.folder}/{name}: {problem}", hint=f"see what can be saved: backcast checkpoint verify {files.folder}"
    )
