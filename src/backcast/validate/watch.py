"""What readers see after a publish: the schema, the published files, the keys, and every rule once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from backcast.model.manifest import Manifest
from backcast.model.run import Publication
from backcast.model.scope import EVERYTHING
from backcast.model.table import FileRef, PublishMode
from backcast.model.verdict import Check, Consequence, Layer
from backcast.model.watch import Look
from backcast.model.words import many
from backcast.ports import Engine, Target
from backcast.validate.checks import key_checks, schema_check


@dataclass(frozen=True, slots=True)
class Watching:
    """What is looked at: the scope of one publish, as the live table has it now."""

    manifest: Manifest
    publication: Publication
    target: Target
    engine: Engine
    rules: Callable[[str | None, tuple[FileRef, ...]], tuple[Check, ...]]
    """The rules over that version of the live table; of a run that adds rows, over those of these files in it."""
    now: datetime


def look(watching: Watching) -> Look:
    """One look. Rows that others wrote since are looked at with the rest: readers see them, too."""
    manifest, target = watching.manifest, watching.target
    facts = target.facts()
    scope, settings = manifest.scope.predicate, manifest.settings
    published: tuple[FileRef, ...] = ()
    if settings.publish_mode is PublishMode.REPLACE:
        files = _published_files(watching)
        rows, number = target.read(facts.version, scope), target.files(facts.version, scope).rows
    else:
        here, known = frozenset(watching.publication.added), target.files(facts.version, EVERYTHING).files
        published = tuple(file for file in known if file.path in here)
        files = _told(len(here) - len(published), len(here), "not there any more: their rows are not looked at")
        rows = target.read_files(facts.version, frozenset(file.path for file in published), EVERYTHING)
        number = sum(file.rows for file in published)
    checks = (
        schema_check(manifest.target.identity, facts.identity),
        files,
        *key_checks(rows, settings.key, watching.engine, settings.masked),
        *watching.rules(facts.version, published),
    )
    return Look(version=facts.version, rows=number, checks=checks, at=watching.now)


def _published_files(watching: Watching) -> Check:
    """Whether others took out what was published."""
    publication = watching.publication
    movement = watching.target.movement(publication.version, watching.manifest.scope.predicate)
    gone = frozenset(file.path for file in movement.removed) & frozenset(publication.added)
    if gone and movement.only_compaction:
        how = "replaced by compaction, which changes no row"
        return _told(len(gone), len(publication.added), how).model_copy(update={"passed": True})
    beside = f", {many(len(movement.added), 'file')} of others beside them" if movement.added else ""
    return _told(len(gone), len(publication.added), "taken out by others", beside)


def _told(gone: int, published: int, how: str, beside: str = "") -> Check:
    """An undo would not bring files of others' doing back, so it is only told."""
    files = many(published, "published file")
    return Check(
        name="published files",
        passed=not gone,
        detail=f"{gone} of {files} {how}" if gone else f"all {files} in place{beside}",
        layer=Layer.TECHNICAL,
        consequence=Consequence.WARN,
    )
