"""A canary: a few chunks of a run that are staged and judged before the others, which wait for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backcast.errors import InvalidRequest
from backcast.model.document import Document
from backcast.model.manifest import Manifest
from backcast.model.rule import RuleKind
from backcast.model.run import Event
from backcast.model.scope import EVERYTHING, Predicate, Scope, union
from backcast.model.table import PublishMode
from backcast.model.verdict import Check, Outcome, outcome_of
from backcast.model.words import many

CHOSEN = "canary.chosen"
JUDGED = "canary.judged"
MOST = 100
"""More is no canary."""


class Canary(Document):
    """Which chunks go first: so many, spread over the run, or those with these names."""

    number: int = 0
    names: tuple[str, ...] = ()

    def of(self, manifest: Manifest) -> tuple[str, ...]:
        """Raises InvalidRequest when the run has no such chunks, or none would be left to wait."""
        have = [chunk.id for chunk in manifest.chunks]
        unknown = [name for name in self.names if name not in have]
        if unknown:
            raise InvalidRequest(
                f"the run has no chunk {', '.join(unknown[:5])}",
                hint=f"its chunks are {', '.join(have[:3])}{' ...' if len(have) > 3 else ''}",
            )
        asked = len(set(self.names)) or self.number
        if not 1 <= asked <= MOST:
            raise InvalidRequest(f"a canary has 1 to {MOST} chunks, not {asked}")
        if asked >= len(have):
            raise InvalidRequest(
                f"a canary of {many(asked, 'chunk')} is all of the run, which has {len(have)}",
                hint="run it without --canary: nothing is published before you say so",
            )
        return tuple(name for name in have if name in self.names) if self.names else spread(have, self.number)


def spread(names: Sequence[str], number: int) -> tuple[str, ...]:
    """So many of the names, about as far from each other as possible; the first and the last are among them."""
    if number == 1:
        return (names[len(names) // 2],)
    places = sorted({round(place * (len(names) - 1) / (number - 1)) for place in range(number)})
    return tuple(names[place] for place in places)


class CanaryVerdict(Document):
    """What was found about the canary's part of the stage; nothing is published on the strength of it."""

    chunks: tuple[str, ...]
    staged: str
    checks: tuple[Check, ...]

    @property
    def outcome(self) -> Outcome:
        return outcome_of(self.checks)


def judged(events: Iterable[Event]) -> CanaryVerdict | None:
    """What is on record about the newest canary; None when there is none, or it was not judged yet."""
    found: CanaryVerdict | None = None
    for event in events:
        if event.name == CHOSEN:
            found = None
        elif event.name == JUDGED:
            found = CanaryVerdict.model_validate(event.data)
        elif event.name == "state.failed" and "canary" in event.data:
            found = CanaryVerdict.model_validate(event.data["canary"])
    return found


def chosen(events: Iterable[Event]) -> tuple[str, ...]:
    """The chunks of the newest canary; none when there was none."""
    found: tuple[str, ...] = ()
    for event in events:
        if event.name == CHOSEN:
            found = tuple(event.data["chunks"])
    return found


def part_of(manifest: Manifest, names: Sequence[str]) -> Manifest:
    """The manifest as if the run had these chunks alone: what of the stage can be judged before the rest is there.

    How new the newest row must be is known for the whole scope only: nothing is said about that.
    """
    plans = tuple(chunk for chunk in manifest.chunks if chunk.id in names)
    whole = manifest.scope
    predicate: Predicate = EVERYTHING
    if manifest.settings.publish_mode is PublishMode.REPLACE:
        predicate = union([plan.predicate for plan in plans])
    return manifest.model_copy(
        update={
            "chunks": plans,
            "scope": Scope(windows=tuple(plan.window for plan in plans), predicate=predicate, exact=whole.exact),
            "settings": manifest.settings.model_copy(
                update={"rules": tuple(rule for rule in manifest.settings.rules if rule.kind is not RuleKind.FRESH)}
            ),
        }
    )
