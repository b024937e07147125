"""Live policy `freeze`: while a run computes and publishes, streams that are run here do not write to its table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backcast.errors import Failed, LeaseHeld
from backcast.model.live import freeze_lease, stream_lease
from backcast.model.manifest import LivePolicy
from backcast.run.lease import HeldLease, acquire, see_off

if TYPE_CHECKING:
    from backcast.model.run import Run
    from backcast.world import World

_WAIT_SECONDS = 300.0
_POLL_SECONDS = 0.3


class Freezing:
    """The tables that this process keeps frozen."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._held: dict[str, HeldLease] = {}

    @contextmanager
    def frozen(self, run: Run, *, hold: bool = False) -> Iterator[None]:
        """As long as this lasts; with `hold` on, when it ends well, until the next that does not hold."""
        if self._world.store().runs.manifest(run.run_id).settings.live_policy is not LivePolicy.FREEZE:
            self._wait_for_others(run.table)
            yield
            return
        if run.table not in self._held:
            self._freeze(run.table)
        kept = False
        try:
            yield
            kept = hold
        finally:
            if not kept:
                self.release(run.table)

    def release(self, table: str) -> None:
        """Let streams go on; nothing to do when they were not kept."""
        held = self._held.pop(table, None)
        if held is not None:
            held.__exit__(None, None, None)

    def _freeze(self, table: str) -> None:
        world = self._world
        name = freeze_lease(table)
        held = acquire(world.store().leases, name, world.holder(), world.clock, world.ended, _WAIT_SECONDS)
        held.__enter__()
        self._held[table] = held
        try:
            self._see_batches_off(table)
        except BaseException:
            self.release(table)
            raise

    def _see_batches_off(self, table: str) -> None:
        """Until no stream is in the middle of a batch: those that begin one from now on see that they must wait."""
        world, deadline = self._world, self._world.clock.monotonic() + _WAIT_SECONDS
        while (busy := self._busy(table)) is not None:
            if world.clock.monotonic() >= deadline:
                raise Failed(
                    f"stream {busy} is in the middle of a batch for more than {_WAIT_SECONDS:.0f} s",
                    hint=f"type the same command again, or backcast stream stop {busy}",
                )
            world.clock.sleep(_POLL_SECONDS)

    def _busy(self, table: str) -> str | None:
        world = self._world
        for name in world.streams():
            if world.stream(name).dataset.table != table:
                continue
            newest = world.stream_reader().batches(name, 1)
            if not newest or newest[0].landed or newest[0].waits:
                continue
            try:
                # A dead one's JVM is ended: it may be in the middle of a commit. One that stood still gets no further.
                see_off(world.store().leases, stream_lease(name), world.holder(), world.clock, world.ended)
            except LeaseHeld:
                return name
        return None

    def _wait_for_others(self, table: str) -> None:
        """A table that another run keeps frozen is not published to meanwhile."""
        world, deadline = self._world, self._world.clock.monotonic() + _WAIT_SECONDS
        while table not in self._held and (held := world.reader().holder(freeze_lease(table))) is not None:
            if not world.alive(held.holder):
                return
            if world.clock.monotonic() >= deadline:
                who = f"{held.holder.owner} ({held.holder.process})"
                raise LeaseHeld(f"{who} keeps {table} frozen", hint="wait for that run to be published", lease=held)
            world.clock.sleep(_POLL_SECONDS)
