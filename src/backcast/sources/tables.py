"""A table as an input: pinned to one version, read at it, never written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from backcast.errors import Drifted, PlanRefused
from backcast.model.inputs import input_predicate, rows_read, survival
from backcast.model.manifest import InputPin
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.scope import Predicate, during
from backcast.model.table import TableFacts, TableIdentity
from backcast.model.time import Interval
from backcast.ports import Reading, Source


@dataclass(frozen=True, slots=True)
class TableInput:
    """The port Input over any table that can be read at a version."""

    spec: InputSpec
    table: Source
    decided: Mapping[str, str | None] = field(default_factory=dict)
    """Versions that inputs were read at already, by their names: no newer one may be pinned."""

    def identity(self) -> TableIdentity:
        return self.table.facts().identity

    def pin(self, windows: Mapping[str, Interval], now: datetime) -> InputPin:
        """The newest version, unless another one was decided or asked for, and what of it the windows need."""
        decided = self.spec.name in self.decided
        facts = self.table.facts(self.decided[self.spec.name]) if decided else self._asked(windows, now)
        version = self.decided.get(self.spec.name, facts.version)
        files = self.table.files(version, input_predicate(self.spec, windows))
        return InputPin(
            name=self.spec.name,
            dataset=self.spec.dataset.name,
            identity=facts.identity,
            version=version,
            windowed=self.spec.windowed,
            survival=survival(facts, now, timedelta()),
            survives_until=None if facts.referenced else facts.survives_until,
            files=len(files.files),
            rows=files.rows,
            bytes=files.size,
            asked=_asked(self.spec),
            semantics=self.spec.semantics,
            read=rows_read(self.spec, files, facts.identity.partition_fields, windows),
        )

    def _asked(self, windows: Mapping[str, Interval], now: datetime) -> TableFacts:
        """Of the version that the pipeline asks for. Raises PlanRefused when it is not there, or not all of it."""
        version = self.spec.version if self.spec.as_of is None else self._newest_at(self.spec.as_of, now)
        if version is None:
            return self.table.facts()
        try:
            facts = self.table.facts(version)
        except Drifted as error:
            raise self._refused(f"{error.message}: it was expired, or never was") from error
        if self.table.lost(version, input_predicate(self.spec, windows)) is not None:
            raise self._refused(f"files of version {version} of {facts.identity.name} were cleaned up")
        return facts

    def _newest_at(self, moment: datetime, now: datetime) -> str:
        if moment > now:
            raise self._refused(f"a version {_asked(self.spec)} is yet to come")
        found = self.table.version_at(moment)
        if found is None:
            raise self._refused(f"there is no version {_asked(self.spec)}, or no longer")
        return found

    def _refused(self, told: str) -> PlanRefused:
        name = self.spec.name
        hint = f"let inputs.{name} of the pipeline name a version or a moment that is kept, or neither for the newest"
        return PlanRefused(f"input {name}: {told}", hint=hint, input=name)

    def check(self, pin: InputPin, windows: Mapping[str, Interval]) -> None:
        facts = self.table.facts(pin.version) if pin.version is not None else self.table.facts()
        if facts.identity.uuid != pin.identity.uuid:
            raise Drifted(f"input {pin.name} is another table than the one that was planned", hint="plan again")
        lost = self.table.lost(pin.version, input_predicate(self.spec, windows)) if windows else None
        if lost is not None:
            raise Drifted(
                f"input {pin.name}: version {pin.version} of {pin.identity.name} has lost files that the run reads",
                hint="somebody cleaned them up (VACUUM): plan again",
                file=lost,
            )

    def read(self, pin: InputPin, windows: Mapping[str, Interval]) -> Reading:
        return Reading(self.table.read(pin.version, input_predicate(self.spec, windows)))

    def placed(self, pin: InputPin, windows: Mapping[str, Interval]) -> Mapping[str, Predicate] | None:
        dataset = self.spec.dataset
        if not pin.windowed or not isinstance(dataset, Dataset):
            return None
        return {name: during((dataset.time,), (window,)) for name, window in windows.items()}


def _asked(spec: InputSpec) -> str:
    if spec.as_of is not None:
        return f"as of {spec.as_of:%Y-%m-%d %H:%M:%S} UTC"
    return "" if spec.version is None else "as the pipeline names it"
