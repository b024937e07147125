"""What holds a run or a replay back, and how far the streams are behind for which it waits: asked of the log, now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, UnknownName
from backcast.model.live import stream_lease
from backcast.model.throttle import Behind, Throttle
from backcast.model.throttled import changed_by
from backcast.run.brake import Brake

if TYPE_CHECKING:
    from backcast.model.stream import StreamSpec
    from backcast.ports import RunReader
    from backcast.world import World

_DEAF_SECONDS = 60.0
"""Brokers that did not answer are not asked again for so long: each try may take seconds."""
_LOOK_BACK = 20


def brake_of(
    world: World, throttle: Callable[[], Throttle], still: Callable[[], object], say: Callable[[str], object]
) -> Brake:
    """For one process. Asks nobody anything yet."""
    return Brake(throttle, LiveLags(world, say), world.clock, still, say)


def brake_of_run(
    world: World, run_id: str, planned: Throttle | None, still: Callable[[], object], say: Callable[[str], object]
) -> Brake:
    """By the throttle of the run as it is in force, and by what all its processes have done."""
    store = world.store()
    brake = brake_of(world, InForce(store.runs, run_id, planned or Throttle()), still, say)
    brake.commits = partial(store.chunks.commits, run_id)
    return brake


@dataclass(slots=True)
class InForce:
    """Calling it tells the throttle of a run as it is now. It reads of the run's history what is new."""

    runs: RunReader
    run_id: str
    throttle: Throttle
    """As far as it has read."""
    _seen: int = 0

    def __call__(self) -> Throttle:
        for event in self.runs.events(self.run_id, self._seen):
            self.throttle, self._seen = changed_by(event, self.throttle), event.number
        return self.throttle


@dataclass(slots=True)
class LiveLags:
    """Calling it with the name of a stream tells how far that is behind its topic."""

    world: World
    say: Callable[[str], object]
    _deaf_until: dict[str, float] = field(default_factory=dict)
    """By stream: when its brokers may be asked again."""

    def __call__(self, name: str) -> Behind | None:
        """None for one that nobody runs, and where nothing is known."""
        try:
            spec = self.world.stream(name)
        except UnknownName:
            # Declared when the run was planned.
            return None
        # Of one that others run its checkpoint tells, where that can be read.
        return self._asked(spec, None) if spec.external else self._of_ours(spec)

    def _of_ours(self, spec: StreamSpec) -> Behind | None:
        """By its newest batch that the table has, against the log: of a batch that hangs there is no record."""
        store = self.world.store()
        lease = store.runs.holder(stream_lease(spec.name))
        if lease is None or self.world.ended(lease.holder):
            return None
        batches = store.streams.batches(spec.name, _LOOK_BACK)
        landed = next((each for each in batches if each.landed), None)
        if landed is None or batches[0].waits:
            # One that waits for a run must not be waited for by it.
            return None
        found = self._asked(spec, {each.partition: each.end for each in landed.offsets})
        newest = batches[0]
        return found or Behind(newest.lag, note=f"as of its batch {newest.batch}: its brokers do not answer")

    def _asked(self, spec: StreamSpec, read: Mapping[int, int] | None) -> Behind | None:
        """None when nobody answers, which is said once a minute."""
        now = self.world.clock.monotonic()
        if now < self._deaf_until.get(spec.name, now):
            return None
        try:
            return self.world.behind(spec, read)
        except BackcastError as error:
            self._deaf_until[spec.name] = now + _DEAF_SECONDS
            self.say(f"cannot ask how far stream {spec.name} is behind now: {error.message}")
            return None
