"""After a publish: how long the table is looked at again, and what was seen there."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from backcast.model.document import Document
from backcast.model.manifest import Manifest
from backcast.model.run import Event, Publication
from backcast.model.verdict import Check, Outcome, outcome_of

LOOKED = "watch.looked"


class Look(Document):
    """One look at what readers see."""

    version: str | None
    """Of the live table."""
    rows: int
    """In the scope."""
    checks: tuple[Check, ...]
    at: datetime

    @property
    def passed(self) -> bool:
        return outcome_of(self.checks) is Outcome.ACCEPTED

    @property
    def wrong(self) -> tuple[Check, ...]:
        """What keeps it from passing."""
        return tuple(each for each in self.checks if outcome_of((each,)) is not Outcome.ACCEPTED)


class Watch(Document):
    """All looks since the newest publish, and until when there are to be any."""

    run_id: str
    until: datetime | None
    """None: the pipeline declares no time."""
    looks: int
    newest: Look | None

    @property
    def failed(self) -> bool:
        return self.newest is not None and not self.newest.passed


def watch_of(manifest: Manifest, publication: Publication, events: Iterable[Event]) -> Watch:
    """What is on record since the publish."""
    seconds = manifest.settings.watch_seconds
    looks: list[Look] = []
    for event in events:
        if event.name == "state.published" and event.data.get("generation") == publication.generation:
            looks = []
        elif event.name == LOOKED:
            looks.append(Look.model_validate(event.data))
    return Watch(
        run_id=publication.run_id,
        until=publication.published_at + timedelta(seconds=seconds) if seconds else None,
        looks=len(looks),
        newest=looks[-1] if looks else None,
    )
