"""A stream's result computed anew from its topic, by the query that will go on as the stream.

A folder holds the query's checkpoint and the rows of each batch, written anew when the batch is repeated. A slice ends
at exact offsets: Spark plans batches as it likes, and one that goes further is cut before it reads anything.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.faults import point
from backcast.streams.checkpoint.fork import write_fresh
from backcast.streams.replay import ENOUGH, EnoughError, alone, query_failed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_HEAD = 2
"""Lines of an offset log before that of its source: version and metadata."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    folder: Path
    topic: str
    rows: Callable[[], DataFrame]
    """What the live query computes, over the topic without end."""

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def begin(self, query_id: str, starts: Mapping[int, int]) -> None:
        """A query that reads from these offsets on. One of another id that was left there is thrown away."""
        with alone(self.folder):
            if self.query_id() == query_id:
                return
            unfinished = self.folder / "checkpoint.unfinished"
            for each in (self.checkpoint, unfinished, self._spool):
                shutil.rmtree(each, ignore_errors=True)
            offsets = {self.topic: {str(partition): offset for partition, offset in sorted(starts.items())}}
            write_fresh(unfinished, query_id, {"0": json.dumps(offsets, separators=(",", ":"))})
            unfinished.rename(self.checkpoint)

    def query_id(self) -> str | None:
        file = self.checkpoint / "metadata"
        return str(json.loads(file.read_text())["id"]) if file.exists() else None

    def starts(self) -> dict[int, int]:
        """Where it began."""
        text = (self.checkpoint / "sources" / "0" / "0").read_bytes().decode().lstrip("\0").partition("\n")[2]
        return {int(key): int(value) for key, value in json.loads(text)[self.topic].items()}

    @property
    def batch(self) -> int | None:
        """The newest that is over."""
        return max(_numbers(self.checkpoint / "commits"), default=None)

    def ends(self) -> dict[int, int]:
        """Up to where it has read: the next offset of each partition."""
        batch = self.batch
        return self.starts() if batch is None else self.starts() | self._planned(batch)

    def advance(self, ends: Mapping[int, int]) -> None:
        """Read up to exactly these offsets; what was read beyond them before stays read."""
        with alone(self.folder):
            self._spool.mkdir(parents=True, exist_ok=True)
            self._cut(ends)
            while self._is_planned or any(end > self.ends().get(partition, 0) for partition, end in ends.items()):
                self._drive(ends)
                point("catch-up.after-batches")
                self._cut(ends)

    def spooled(self, batch: int) -> DataFrame:
        """Rows of all batches up to this one."""
        frame = self.rows()
        folders = [str(self._spool / str(number)) for number in range(batch + 1)]
        return frame.sparkSession.read.schema(frame.schema).parquet(*folders)

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _drive(self, ends: Mapping[int, int]) -> None:
        from pyspark.errors import StreamingQueryException

        def write(rows: DataFrame, batch: int) -> None:
            if self._beyond(self._planned(batch), ends):
                raise EnoughError(ENOUGH)
            rows.write.mode("overwrite").parquet(str(self._spool / str(batch)))

        writer = self.rows().writeStream.foreachBatch(write).outputMode("append")
        query = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if ENOUGH not in str(error):
                raise query_failed(error) from error

    def _cut(self, ends: Mapping[int, int]) -> None:
        """A batch that was planned and goes beyond is planned to the ends instead.

        Also where nothing is left to read: windows that the batch before has closed come out of the next one. Behind
        such an empty one there is nothing to come.
        """
        if not self._is_planned:
            return
        number, before = self._last_planned, self.ends()
        if not self._beyond(self._planned(number), ends):
            return
        cut = {
            partition: max(before.get(partition, 0), min(end, ends.get(partition, 0)))
            for partition, end in self._planned(number).items()
        }
        file = self.checkpoint / "offsets" / str(number)
        (file.parent / f".{number}.crc").unlink(missing_ok=True)
        if all(end == before.get(partition, 0) for partition, end in cut.items()) and self._is_empty(number - 1):
            file.unlink()
            return
        lines = file.read_text(encoding="utf-8").split("\n")
        offsets = {self.topic: {str(partition): end for partition, end in sorted(cut.items())}}
        unfinished = self.folder / "offsets.unfinished"
        unfinished.write_text("\n".join([*lines[:_HEAD], json.dumps(offsets, separators=(",", ":"))]), encoding="utf-8")
        unfinished.rename(file)
        point("catch-up.after-cut")

    def _beyond(self, planned: Mapping[int, int], ends: Mapping[int, int]) -> bool:
        before = self.ends()
        return any(end > max(ends.get(partition, 0), before.get(partition, 0)) for partition, end in planned.items())

    @property
    def _is_planned(self) -> bool:
        """Whether a batch was begun and is not over."""
        return self._last_planned > (-1 if self.batch is None else self.batch)

    @property
    def _last_planned(self) -> int:
        return max(_numbers(self.checkpoint / "offsets"), default=-1)

    def _is_empty(self, batch: int) -> bool:
        """Whether the batch read nothing, or there was none."""
        return batch < 0 or self._planned(batch) == (self._planned(batch - 1) if batch else self.starts())

    def _planned(self, batch: int) -> dict[int, int]:
        lines = (self.checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").split("\n")
        return {int(key): int(value) for key, value in json.loads(lines[_HEAD])[self.topic].items()}

    @property
    def _spool(self) -> Path:
        return self.folder / "rows"


def _numbers(folder: Path) -> list[int]:
    return [int(each.name) for each in folder.iterdir() if each.name.isdigit()] if folder.exists() else []
