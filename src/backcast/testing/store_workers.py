"""What other processes do to a store while a contract suite watches. Each opens the store anew, as a command would."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from backcast.errors import LeaseHeld, StateConflict
from backcast.model.run import Lease, Run
from backcast.model.states import RunState
from backcast.store import open_store
from backcast.testing.samples import sample_holder, sample_manifest

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess
    from multiprocessing.queues import Queue
    from multiprocessing.synchronize import Barrier

    from backcast.store.sql import SqlStore

_SPAWN = multiprocessing.get_context("spawn")


_gates: list[Barrier] = []


def race(worker: Callable[..., Any], *arguments: Any, processes: int = 4) -> list[Any]:
    """What each of the processes returned. None begins before all are ready."""
    with _SPAWN.Pool(processes, initializer=_stand_at, initargs=(_SPAWN.Barrier(processes),)) as pool:
        return pool.starmap(_when_open, [(worker, arguments)] * processes, chunksize=1)


def _stand_at(gate: Barrier) -> None:
    _gates.append(gate)


def _when_open(worker: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    _gates[0].wait(timeout=60)
    return worker(*arguments)


def start(worker: Callable[..., None], *arguments: Any) -> tuple[SpawnProcess, Queue[str]]:
    """One process that works until it is killed, and the queue through which it says how far it is."""
    said: Queue[str] = _SPAWN.Queue()
    process = _SPAWN.Process(target=worker, args=(*arguments, said), daemon=True)
    process.start()
    return process, said


def fork_and_note(url: str, run_id: str) -> int:
    """Write from a fork, which inherits an open connection, then from here. 0 when the fork did not use that one."""
    with open_store(url) as store:
        inherited = _driver_connection(store)
        child = os.fork()
        if child == 0:
            try:
                store.runs.record(run_id, "child")
                os._exit(int(_driver_connection(store) is inherited))
            finally:
                os._exit(2)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        store.runs.record(run_id, "parent")
    return code


def _driver_connection(store: SqlStore) -> object:
    with store.database.read() as connection:
        return connection.connection.dbapi_connection


def claim_all(url: str, run_id: str, lease: Lease, limit: int) -> list[tuple[int, list[str]]]:
    """Claim until nothing is left, with a moment of work after each: the token and the chunks of each claim."""
    claims = []
    with open_store(url) as store:
        while claimed := store.chunks.claim(run_id, lease, limit):
            claims.append((claimed[0].token or 0, [chunk.chunk_id for chunk in claimed]))
            time.sleep(0.001)
    return claims


def try_transition(url: str, run: Run, to: RunState) -> bool:
    """Whether this process was the one that moved the run."""
    with open_store(url) as store:
        try:
            store.runs.transition(run, to)
        except StateConflict:
            return False
    return True


def try_acquire(url: str, name: str) -> int | None:
    """The token, when this process got the lease."""
    with open_store(url) as store:
        try:
            return store.leases.acquire(name, sample_holder(), 60).token
        except LeaseHeld:
            return None


def open_and_create(url: str) -> str:
    """Open a store that may not be there yet, and record a plan in it."""
    with open_store(url) as store:
        return store.runs.create(sample_manifest()).run_id


def hang_in_transaction(url: str, run_id: str, said: Queue[str]) -> None:
    """Change a run and its history without ever committing."""
    from backcast.store.events import append

    with open_store(url) as store, store.database.write() as connection:
        append(connection, run_id, "never.committed", {})
        said.put("in")
        time.sleep(600)
