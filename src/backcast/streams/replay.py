"""One bounded replay: a query of its own runs to literal offsets, and then its last windows are closed.

Everything lies in one folder, and a process that dies leaves what the next one goes on with: the query's checkpoint, a
folder of rows for each batch, written anew when the batch is repeated, and at last a file that says that all is there.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backcast.faults import point
from backcast.model.replay import Replayed
from backcast.model.throttle import Work
from backcast.streams.counted import prove_batches, refuse_other_count
from backcast.streams.driving import drive, size_of
from backcast.streams.ending import end_time

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.ports.pace import Pace

_AFTER_SENTINEL = 3
"""Batches in which operators above one another still pass the end of time on."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What one replay needs. `streamed` builds the query's result; its records end with what lies in that folder."""

    folder: Path
    ends: Mapping[int, int]
    """Offsets of the topic, exclusive: a record behind them is not for the query."""
    topic: str
    streamed: Callable[[Path], DataFrame]
    sentinel: Callable[[Path], None]
    """Writes a row behind the end of event time into the folder."""
    begin: Callable[[Path], None]
    """Makes the checkpoint that the query starts from in a folder that is not there yet; may make none."""
    event_seconds: float
    order: Callable[[Path], None] | None = None
    """Writes the records in the order in which the query is to get them; None: it reads the topic itself."""
    ordering: Work | None = None
    """What that reads."""
    pace: Pace | None = None
    """What holds back each batch; None: they follow each other at once."""

    @property
    def records(self) -> Path:
        """Where they lie, one file a batch."""
        return self.folder / "records"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def rows(self) -> DataFrame:
        """The query's whole result. Runs what is missing of it first."""
        with alone(self.folder):
            if not self._done.exists():
                self._run()
        frame = self.streamed(self._sentinels)
        return frame.sparkSession.read.schema(frame.schema).parquet(
            *sorted(str(each) for each in self._spool.iterdir())
        )

    def told(self) -> Replayed | None:
        """What it did, once all is there."""
        return Replayed.model_validate_json(self._done.read_text()) if self._done.exists() else None

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self) -> None:
        started = time.monotonic()
        for each in (self._spool, self._sentinels):
            each.mkdir(parents=True, exist_ok=True)
        self._order()
        self._begin()
        first = self._next_batch()
        if not self._ended:
            self._drive(self._reached)
            point("replay.before-flush")
            self._end_time()
        self._drive(self._flushed)
        point("replay.after-flush")
        prove_batches(lambda: self.streamed(self._sentinels), self._spool)
        done = Replayed(
            batches=self._next_batch() - first,
            seconds=round(time.monotonic() - started, 3),
            event_seconds=self.event_seconds,
        )
        _write(self._done, done.model_dump_json())
        for each in self.records.glob("*.parquet"):
            each.unlink()

    def _order(self) -> None:
        if self.order is None or self.records.exists():
            return
        unfinished = self.folder / "records.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        if self.pace is not None:
            self.pace.before_a_job()
        started = time.monotonic()
        self.order(unfinished)
        if self.pace is not None and self.ordering is not None:
            took = time.monotonic() - started
            self.pace.after_a_job(replace(self.ordering, seconds=took, bytes=size_of(unfinished)))
        point("replay.after-order")
        unfinished.rename(self.records)

    def _begin(self) -> None:
        if self.checkpoint.exists():
            return
        unfinished = self.folder / "checkpoint.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self.begin(unfinished)
        point("replay.after-fork")
        if unfinished.exists():
            unfinished.rename(self.checkpoint)

    def _end_time(self) -> None:
        """And a row that gives the next batch something to read. Spark reads any file there, so it appears whole."""
        end_time(self.checkpoint)
        unfinished = self.folder / "sentinel.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        self.sentinel(unfinished)
        for number, file in enumerate(sorted(unfinished.glob("*.parquet"))):
            file.rename(self._sentinels / f"{number}.parquet")
        shutil.rmtree(unfinished)
        refuse_other_count(self._sentinels, 1, int(self._ended))

    def _drive(self, enough: Callable[[int], bool]) -> None:
        drive(self.streamed(self._sentinels), self.checkpoint, self._spool, enough, self.pace)

    def _reached(self, batch: int) -> bool:
        """Whether the batch before has read everything already."""
        read = [each for each in self._sources(batch - 1) if isinstance(each, dict) and self.topic in each]
        return bool(read) and all(
            int(each[self.topic].get(str(partition), -1)) >= end
            for each in read
            for partition, end in self.ends.items()
        )

    def _flushed(self, batch: int) -> bool:
        """Whether the end of time has gone through all operators."""
        with_sentinel = [each for each in range(max(0, batch - 50), batch) if self._has_sentinel(each)]
        return bool(with_sentinel) and batch > with_sentinel[0] + _AFTER_SENTINEL

    def _has_sentinel(self, batch: int) -> bool:
        sources = self._sources(batch)
        others = [each for each in sources if not (isinstance(each, dict) and self.topic in each)]
        return bool(others) and all(each is not None for each in others)

    def _sources(self, batch: int) -> list[Any]:
        file = self.checkpoint / "offsets" / str(batch)
        if batch < 0 or not file.exists():
            return []
        return [None if line == "-" else json.loads(line) for line in file.read_text().split("\n")[2:] if line]

    def _next_batch(self) -> int:
        commits = self.checkpoint / "commits"
        numbers = [int(each.name) for each in commits.iterdir() if each.name.isdigit()] if commits.exists() else []
        return max(numbers, default=-1) + 1

    @property
    def _ended(self) -> bool:
        return any(self._sentinels.glob("*.parquet"))

    @property
    def _spool(self) -> Path:
        return self.folder / "rows"

    @property
    def _sentinels(self) -> Path:
        return self.folder / "sentinel"

    @property
    def _done(self) -> Path:
        return self.folder / "done.json"


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Workers of one machine wait for the one that runs the query. A process that dies lets go."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(file: Path, text: str) -> None:
    unfinished = file.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.rename(file)
