"""The store as one value."""

from __future__ import annotations

from typing import Self

from backcast.ports import ChunkLedger, EffectLog, Leases, RunStore
from backcast.ports.streams import StreamStore
from backcast.store.chunks import SqlChunks
from backcast.store.effects import SqlEffects
from backcast.store.engine import Database
from backcast.store.leases import SqlLeases
from backcast.store.runs import SqlRuns
from backcast.store.streams import SqlStreams


class SqlStore:
    """Implements the port `Store`. Usable from several threads; each process opens its own."""

    runs: RunStore
    chunks: ChunkLedger
    effects: EffectLog
    leases: Leases
    streams: StreamStore

    def __init__(self, database: Database) -> None:
        self.database = database
        self._runs = SqlRuns(database)
        self.runs = self._runs
        self.chunks = SqlChunks(database)
        self.effects = SqlEffects(database)
        self.leases = SqlLeases(database)
        self.streams = SqlStreams(database)

    def verify_events(self, run_id: str) -> int | None:
        """The number of the first event that does not fit the run's chain; None when the chain holds."""
        return self._runs.verify_events(run_id)

    def close(self) -> None:
        """Give back all connections."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
