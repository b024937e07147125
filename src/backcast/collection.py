"""Garbage collection over all runs: release what no undo needs any more, then sweep up what releases had to leave."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from backcast.errors import LeaseHeld, StateConflict, Unavailable, UnknownName
from backcast.faults import point
from backcast.model.report import GcItem, GcReport
from backcast.model.run import Publication, Run
from backcast.model.stage import stages_of
from backcast.model.states import RunState
from backcast.publish import clean
from backcast.run.lease import HeldLease

if TYPE_CHECKING:
    from backcast.ports import RunReader
    from backcast.world import World

_ALL = 100_000
_LATE = timedelta(days=2)
"""Whoever runs gc every day has no run that is ready for it for longer."""
_LOOK_BACK = 20
_PUBLISHED = (RunState.PUBLISHED, RunState.SUPERSEDED, RunState.UNDONE)


def left_by_gc(reader: RunReader, table: str, now: datetime) -> tuple[str, ...]:
    """Runs on the table that gc could have released days ago, of the newest ones: nobody seems to run it."""
    found: list[str] = []
    looked = 0
    for run in reader.runs(limit=_ALL):
        if run.table != table or run.state not in _PUBLISHED:
            continue
        publications = reader.publications(run.run_id)
        if clean.releasable(run, publications, now - _LATE)[0]:
            looked += 1
            found += [run.run_id] if publications[-1].released_at is None else []
        if looked == _LOOK_BACK:
            break
    return tuple(found)


class Collection:
    """One round. A run that cannot be released is kept and named; it never stops the round for the others."""

    def __init__(self, world: World, held: Callable[[str], AbstractContextManager[HeldLease]]) -> None:
        self._world, self._held = world, held
        self._items: list[GcItem] = []
        self._kept: list[str] = []
        self._away: list[Unavailable] = []

    def collect(self, *, dry_run: bool) -> GcReport:
        """Raises Unavailable, after all that could be done, when a table's catalog could not be reached."""
        now, runs = self._world.clock.now(), self._world.store().runs.runs(limit=_ALL)
        for run in runs:
            publications = self._world.store().runs.publications(run.run_id)
            if run.state is RunState.CANCELLED or (publications and publications[-1].released_at):
                continue
            ready, reason = clean.releasable(run, publications, now)
            if ready:
                self._try_to_release(run, publications, reason, dry_run=dry_run)
            else:
                self._kept.append(f"{run.run_id} {reason}")
        swept = 0 if dry_run else sum(self._sweep(name) for name in sorted({run.dataset for run in runs}))
        if self._away:
            raise self._away[0]
        return GcReport(items=tuple(self._items), kept=tuple(self._kept), dry_run=dry_run, swept=swept)

    def _try_to_release(self, run: Run, publications: list[Publication], reason: str, *, dry_run: bool) -> None:
        try:
            self._items.append(self._release(run, publications, reason, dry_run=dry_run))
        except (LeaseHeld, StateConflict, UnknownName) as error:
            self._kept.append(f"{run.run_id} {run.state}: {error.message}")
        except Unavailable as error:
            self._away.append(error)

    def _release(self, run: Run, publications: list[Publication], reason: str, *, dry_run: bool) -> GcItem:
        store = self._world.store()
        forget = clean.release_forget(run.run_id, stages_of(run.run_id, store.runs.events(run.run_id)), publications)
        deleted = None
        if not dry_run:
            with self._held(run.run_id) as lease:
                lease.check()
                if store.runs.run(run.run_id).revision != run.revision:
                    raise StateConflict(f"run {run.run_id} went on while gc looked at it")
                store.effects.begin(run.run_id, "forget", run.run_id)
                point("gc.after-intent")
                point("gc.before-forget")
                deleted = self._world.target(run.dataset).forget(forget)
                point("gc.after-forget")
                clean.close_effects(store, run.run_id, deleted)
                released = publications[-1].model_copy(update={"released_at": self._world.clock.now()})
                store.runs.save_publication(released, token=lease.check().token)
                point("gc.after-record")
        return GcItem(run_id=run.run_id, table=run.table, reason=reason, refs=forget.refs, files_deleted=deleted)

    def _sweep(self, dataset: str) -> int:
        """Files deleted in a table whose format leaves that to us. A table that is gone has none."""
        try:
            with suppress(UnknownName):
                if self._world.dataset(dataset).format.leaves_files:
                    return self._world.target(dataset).sweep()
        except Unavailable as error:
            self._away.append(error)
        return 0
