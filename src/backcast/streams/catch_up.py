"""A stream's result computed anew from its topic, by the query that will go on as the stream.

A folder holds the query's checkpoint and the rows of each batch, written anew when the batch is repeated. A slice ends
at exact offsets: Spark plans batches as it likes, and one that goes further is cut before it reads anything.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.errors import Drifted, Failed
from backcast.faults import point
from backcast.spark.streaming_plan import is_stateful, streamed_leaves
from backcast.streams.checkpoint.fork import write_fresh
from backcast.streams.counted import prove_batches, unproven
from backcast.streams.driving import drive
from backcast.streams.replay import alone

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.ports.pace import Pace

_HEAD = 2
"""Lines of an offset log before that of its source: version and metadata."""


@dataclass(frozen=True, slots=True)
class _Goal:
    ends: Mapping[int, int]
    as_one: bool


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The query of one full replay, on disk."""

    folder: Path
    topic: str
    rows: Callable[[Mapping[str, str | None]], DataFrame]
    """What the live query computes, over the topic without end, and the tables beside it at these versions."""
    code: str
    """Digest of what computes it now."""
    partitions: Callable[[], Iterable[int]]
    """Those that the topic has now."""
    pace: Pace | None = None
    """What holds back each batch; None: they follow each other at once."""
    tables_now: Callable[[], Mapping[str, str | None]] = dict
    """The versions of the tables beside it now, by the names of the inputs."""

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def begin(self, query_id: str, starts: Mapping[int, int]) -> None:
        """A query that reads from these offsets on. One of another id that was left there is thrown away."""
        with alone(self.folder):
            if self.query_id() == query_id:
                return
            unfinished = self.folder / "checkpoint.unfinished"
            for each in (self.checkpoint, unfinished, self._spool, unproven(self._spool)):
                shutil.rmtree(each, ignore_errors=True)
            tables = self.tables_now()
            # A transform that uses its topic twice reads it by as many sources at the most.
            sources = map(str, range(streamed_leaves(self.rows(tables))))
            write_fresh(unfinished, query_id, dict.fromkeys(sources, self._line(starts)))
            self._code.write_text(self.code)
            self._tables.write_text(json.dumps(dict(tables)))
            unfinished.rename(self.checkpoint)

    def tables(self) -> dict[str, str | None]:
        """At which versions every slice reads the tables beside the topic."""
        found: dict[str, str | None] = json.loads(self._tables.read_text())
        return found

    def stateful(self) -> bool:
        return is_stateful(self._result())

    def _result(self) -> DataFrame:
        return self.rows(self.tables())

    def query_id(self) -> str | None:
        file = self.checkpoint / "metadata"
        return str(json.loads(file.read_text())["id"]) if file.exists() else None

    def starts(self) -> dict[int, int]:
        """Where it began, with each of its sources."""
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

    def advance(self, ends: Mapping[int, int], *, as_one: bool = False) -> None:
        """Read up to exactly these offsets; what was read beyond them before stays read.

        As one batch: windows that it closes stay in the state, as they do in a query that stands behind that batch.
        Raises Drifted when the code is no longer what computed the batches before, and Failed when the log ends first.
        """
        goal = _Goal(ends, as_one)
        with alone(self.folder):
            self.refuse_other_code()
            self._spool.mkdir(parents=True, exist_ok=True)
            self._cut(goal)
            while self._is_planned or any(end > self.ends().get(partition, 0) for partition, end in ends.items()):
                before = (self.batch, self._last_planned)
                self._complete()
                drive(self._result(), self.checkpoint, self._spool, partial(self._unfit, goal=goal), self.pace)
                point("catch-up.after-batches")
                self._cut(goal)
                if (self.batch, self._last_planned) == before:
                    raise Failed(
                        f"the log of topic {self.topic} ends before offsets that the stream has read",
                        hint="was the topic made again? backcast stream lag tells",
                    )
            prove_batches(self._result, self._spool)

    def rest(self) -> None:
        """As the pace asks for behind the newest batch."""
        if self.pace is not None:
            self.pace.rest()

    def refuse_other_code(self) -> None:
        """Rows of two versions of a transform are not one result. Raises Drifted."""
        if not self._code.exists():
            raise Drifted(
                f"{self.folder} no longer has what the replay has computed: did the disk go away with a container?",
                hint="bring the folder back; or backcast stream replay NAME --give-up, and begin anew",
            )
        if self._code.read_text() != self.code:
            raise Drifted(
                "the code or the watermark has changed since the replay began: its rows would be of both",
                hint="bring back what it began with; or backcast stream replay NAME --give-up, and begin anew",
            )

    @property
    def watermark(self) -> datetime | None:
        """Up to where windows are closed and written; None for a query that keeps no state."""
        batch = self.batch
        if batch is None or not (self.checkpoint / "state").exists():
            return None
        return datetime.fromtimestamp(int(self._metadata(batch)["batchWatermarkMs"]) / 1000, UTC)

    def spooled(self, batch: int) -> DataFrame:
        """Rows of all batches up to this one."""
        frame = self._result()
        folders = [str(self._spool / str(number)) for number in range(batch + 1)]
        return frame.sparkSession.read.schema(frame.schema).parquet(*folders)

    def _cut(self, goal: _Goal) -> None:
        """A batch that was planned otherwise is planned to the goal instead.

        Also where nothing is left to read: windows that the batch before has closed come out of the next one. Behind
        such an empty one there is nothing to come, and behind a goal that is one batch nothing shall.
        """
        if not self._is_planned:
            return
        number, before = self._last_planned, self.ends()
        if not self._unfit(number, goal):
            return
        planned = self._planned(number)
        limits = {each: max(before.get(each, 0), goal.ends.get(each, 0)) for each in planned}
        cut = limits if goal.as_one else {each: min(end, limits[each]) for each, end in planned.items()}
        nothing = all(end == before.get(partition, 0) for partition, end in cut.items())
        if nothing and (goal.as_one or self._is_empty(number - 1)):
            file = self.checkpoint / "offsets" / str(number)
            (file.parent / f".{number}.crc").unlink(missing_ok=True)
            file.unlink()
            return
        self._replan(number, cut)
        point("catch-up.after-cut")

    def _complete(self) -> None:
        """A batch that was planned before the topic got a partition reads none of it: Spark 4.0 does not repeat a batch
        that lacks one (SPARK-53560).
        """
        if self._is_planned:
            planned = self._planned(self._last_planned)
            new = [each for each in self.partitions() if each not in planned]
            if new:
                self._replan(self._last_planned, dict.fromkeys(new, 0) | planned)

    def _replan(self, number: int, ends: Mapping[int, int]) -> None:
        file = self.checkpoint / "offsets" / str(number)
        before = self._lines(number)
        lines = [*before[:_HEAD], *[self._line(ends)] * len(before[_HEAD:])]
        unfinished = self.folder / "offsets.unfinished"
        unfinished.write_text("\n".join(lines), encoding="utf-8")
        (file.parent / f".{number}.crc").unlink(missing_ok=True)
        unfinished.rename(file)

    def _unfit(self, number: int, goal: _Goal) -> bool:
        """Whether a planned batch goes beyond the goal, or is not all that is left of it."""
        before, planned = self.ends(), self._planned(number)
        if any(each != planned for each in self._sources(number)):
            return True
        limits = {each: max(before.get(each, 0), goal.ends.get(each, 0)) for each in planned}
        if goal.as_one:
            return planned != limits or all(end == before.get(each, 0) for each, end in planned.items())
        return any(end > limits[each] for each, end in planned.items())

    @property
    def _is_planned(self) -> bool:
        """Whether a batch was begun and is not over."""
        return self._last_planned > (-1 if self.batch is None else self.batch)

    @property
    def _last_planned(self) -> int:
        return max(_numbers(self.checkpoint / "offsets"), default=-1)

    def _is_empty(self, batch: int) -> bool:
        """Whether the batch read nothing, or there was none."""
        if batch < 0:
            return True
        before = self._planned(batch - 1) if batch else self.starts()
        return all(end == before.get(partition, 0) for partition, end in self._planned(batch).items())

    def _planned(self, batch: int) -> dict[int, int]:
        """Up to where all of its sources read."""
        found = self._sources(batch)
        return {each: min(source.get(each, 0) for source in found) for each in sorted({*chain.from_iterable(found)})}

    def _sources(self, batch: int) -> list[dict[int, int]]:
        read = [json.loads(line)[self.topic] for line in self._lines(batch)[_HEAD:]]
        return [{int(key): int(value) for key, value in each.items()} for each in read]

    def _line(self, ends: Mapping[int, int]) -> str:
        offsets = {self.topic: {str(partition): end for partition, end in sorted(ends.items())}}
        return json.dumps(offsets, separators=(",", ":"))

    def _metadata(self, batch: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._lines(batch)[1])
        return found

    def _lines(self, batch: int) -> list[str]:
        return (self.checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").rstrip("\n").split("\n")

    @property
    def _code(self) -> Path:
        return self.folder / "code"

    @property
    def _tables(self) -> Path:
        return self.folder / "tables.json"

    @property
    def _spool(self) -> Path:
        return self.folder / "rows"


def _numbers(folder: Path) -> list[int]:
    return [int(each.name) for each in folder.iterdir() if each.name.isdigit()] if folder.exists() else []
