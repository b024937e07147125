"""A table as an input: pinned to one version, read at it, never written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from backcast.errors import Drifted
from backcast.model.inputs import input_predicate, rows_read, survival
from backcast.model.manifest import InputPin
from backcast.model.pipeline import Dataset, InputSpec
from backcast.model.scope import Predicate, during
from backcast.model.table import TableIdentity
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
        """The newest version, unless another one was decided, and what of it the windows need."""
        facts = self.table.facts(self.decided.get(self.spec.name))
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
            read=rows_read(self.spec, files, facts.identity.partition_fields, windows),
        )

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
