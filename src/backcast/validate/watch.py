"""What readers see after a publish: the schema, the published files, the keys, and every rule once more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from backcast.model.manifest import Manifest
from backcast.model.run import Publication
from backcast.model.table import PublishMode
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
    rules: Callable[[str | None], tuple[Check, ...]]
    """The rules over that version of the live table."""
    now: datetime


def look(watching: Watching) -> Look:
    """One look. Rows that others wrote since are looked at with the rest: readers see them, too."""
    manifest, target = watching.manifest, watching.target
    facts = target.facts()
    scope = manifest.scope.predicate
    checks = [schema_check(manifest.target.identity, facts.identity)]
    rows = 0
    if manifest.settings.publish_mode is PublishMode.REPLACE:
        checks += _published_files(watching)
        checks += key_checks(
            target.read(facts.version, scope), manifest.settings.key, watching.engine, manifest.settings.masked
        )
        rows = target.files(facts.version, scope).rows
    checks += watching.rules(facts.version)
    return Look(version=facts.version, rows=rows, checks=tuple(checks), at=watching.now)


def _published_files(watching: Watching) -> list[Check]:
    """Whether others took out what was published. An undo would not bring that back, so it is only told."""
    publication = watching.publication
    movement = watching.target.movement(publication.version, watching.manifest.scope.predicate)
    gone = frozenset(file.path for file in movement.removed) & frozenset(publication.added)
    detail = f"all {many(len(publication.added), 'published file')} in place"
    if movement.added:
        detail = f"{detail}, {many(len(movement.added), 'file')} of others beside them"
    if gone:
        how = "replaced by compaction, which changes no row" if movement.only_compaction else "taken out by others"
        detail = f"{len(gone)} of {many(len(publication.added), 'published file')} {how}"
    passed = not gone or movement.only_compaction
    told = Check(name="published files", passed=passed, detail=detail, layer=Layer.TECHNICAL)
    return [told.model_copy(update={"consequence": Consequence.WARN})]
