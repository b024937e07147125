"""A run executes exactly its manifest: code, settings, inputs and target must be what was planned."""

from __future__ import annotations

from backcast.errors import Drifted
from backcast.model.manifest import CodeIdentity, Manifest
from backcast.model.table import PublishMode
from backcast.model.words import many
from backcast.ports import Target

_CODE = ("transform", "version", "files", "packages", "config")
"""Git's commit is on record but is not compared: a commit that touches none of these files changes no result."""


def check_code(manifest: Manifest, now: CodeIdentity, settings: dict[str, str], run_id: str) -> None:
    for name in _CODE:
        was, became = getattr(manifest.code, name), getattr(now, name)
        if was != became:
            if name == "config":
                declared = "the declaration of the pipeline, its datasets or its sources"
                raise _drifted(f"backcast.yaml changed since the plan: {declared}", run_id)
            raise _drifted(f"the code moved since the plan: {_difference(name, was, became)}", run_id)
    if manifest.settings.spark != settings:
        raise _drifted(
            f"Spark settings that change results moved: {_difference('settings', manifest.settings.spark, settings)}",
            run_id,
        )


def check_target(manifest: Manifest, target: Target, run_id: str) -> None:
    identity = target.facts().identity
    planned = manifest.target.identity
    moved = [name for name in type(identity).model_fields if getattr(identity, name) != getattr(planned, name)]
    if moved:
        raise _drifted(f"the table's {', '.join(moved)} changed since the plan", run_id)


def base_to_start_from(manifest: Manifest, target: Target, run_id: str) -> str | None:
    """The head, if its files in scope are still the planned ones, or differ from them by compaction only."""
    if manifest.settings.publish_mode is not PublishMode.REPLACE:
        # Nothing was planned against the files that are there.
        return target.facts().version
    if manifest.target.base is not None and target.facts().version == manifest.target.base:
        # Nobody has committed since, and it is the same table: no need to list its files.
        return manifest.target.base
    movement = target.movement(manifest.target.base, manifest.scope.predicate)
    if movement.files.digest() == manifest.target.files_digest and not movement.moved:
        return movement.head
    if movement.only_compaction:
        return movement.head
    came = f"{many(len(movement.added), 'file')} ({many(sum(file.rows for file in movement.added), 'row')})"
    raise _drifted(f"{came} arrived in scope and {len(movement.removed)} left since the plan", run_id)


def _drifted(message: str, run_id: str) -> Drifted:
    return Drifted(
        message, hint=f"backcast cancel {run_id}, then plan again: what runs must be what was previewed", run=run_id
    )


def _difference(name: str, was: object, became: object) -> str:
    if isinstance(was, dict) and isinstance(became, dict):
        keys = sorted(key for key in was.keys() | became.keys() if was.get(key) != became.get(key))
        return f"{name}: {', '.join(map(str, keys[:3]))}" + (f" and {len(keys) - 3} more" if len(keys) > 3 else "")
    return f"{name} was {was}, is {became}"
