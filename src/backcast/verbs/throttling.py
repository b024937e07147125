"""The verb that tells what holds a run back, and changes it while the run is under way. Needs no Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from backcast.errors import InvalidRequest, StateConflict
from backcast.model.hours import Hours
from backcast.model.manifest import LivePolicy
from backcast.model.throttle import Throttle
from backcast.model.throttled import CHANGED, MAY_BEGIN_JOBS, Throttled, difference, throttled, with_limits
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.run import Run

_LIMITS = tuple(name for name in Throttle.model_fields if name != "streams")


class ThrottlingVerbs(Verbs):
    def throttle(self, run_id: str, **limits: int | str | None) -> Throttled:
        """What holds the run back now; with limits, from the next job of each of its processes on.

        Limits are named as those of a throttle; None takes one away. Which rows are computed, and the manifest, stay.
        """
        found = self._throttled(run_id)
        if not limits:
            return found
        if found.state not in MAY_BEGIN_JOBS:
            raise StateConflict(
                f"run {found.run_id} is {found.state}: it begins no more jobs", hint=f"backcast status {found.run_id}"
            )
        run = self.world.reader().run(found.run_id)
        differs = difference(found.in_force, self._with(run, found.in_force, limits))
        if differs:
            person = self.world.person()
            told = {"by": person.name, "how": person.how, **differs}
            self.world.store().runs.record(run.run_id, CHANGED, **told)
        return self._throttled(run.run_id)

    def _throttled(self, run_id: str) -> Throttled:
        reader = self.world.reader()
        run = reader.run(run_id)
        return throttled(run, reader.manifest(run.run_id), reader.events(run.run_id))

    def _with(self, run: Run, throttle: Throttle, limits: dict[str, int | str | None]) -> Throttle:
        unknown = limits.keys() - set(_LIMITS)
        if unknown:
            raise InvalidRequest(f"no limit is called {min(unknown)}", hint=f"there are {', '.join(_LIMITS)}")
        wanted: dict[str, object] = dict(limits)
        if limits.get("pause_seconds", 0) is None:
            wanted["pause_seconds"] = 0
        if limits.get("hours") is not None:
            wanted["hours"] = self._hours(run, str(limits["hours"]))
        if limits.get("live_lag") is not None:
            wanted["streams"] = self._streams(run)
        try:
            return with_limits(throttle, wanted)
        except ValidationError as error:
            wrong = error.errors()[0]
            raise InvalidRequest(f"{wrong['loc'][0]}: {wrong['msg']}, got {wrong['input']!r}") from error

    def _hours(self, run: Run, text: str) -> str:
        """With the zone of the run's dataset, unless they name another."""
        if self.world.reader().manifest(run.run_id).settings.live_policy is LivePolicy.FREEZE:
            raise InvalidRequest(
                f"hours would keep streams waiting, too: the live policy of {run.run_id} is freeze",
                hint=f"backcast cancel {run.run_id}, and plan with another publish.live",
            )
        try:
            return str(Hours.parse(text, self.world.dataset(run.dataset).time.zone))
        except ValueError as error:
            raise InvalidRequest(f"hours: {error}") from error

    def _streams(self, run: Run) -> list[str]:
        """Those that write to the run's table, as they are declared now."""
        table = self.world.dataset(run.dataset).table
        return [name for name in self.world.streams() if self.world.stream(name).dataset.table == table]
