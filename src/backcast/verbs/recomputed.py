"""What a pipeline would make of its sources now, beside what the dataset has: computed, and written nowhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.model.finding import Finding, Severity
from backcast.model.scope import during
from backcast.model.table import PublishMode
from backcast.run.compute import Compute
from backcast.run.job import joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.manifest import Manifest
    from backcast.model.report import Plan
    from backcast.world import World

_OF_THE_RESULT = ("log", "input", "code", "schema", "target")
"""Findings about what is read and what comes out; others are about whether a run may do it."""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """Two frames over the same window; nothing has been computed yet."""

    table: DataFrame
    rows: DataFrame


def obstacles(plan: Plan) -> list[Finding]:
    """Why a comparison with the plan's result would say nothing."""
    blocking = (each for each in plan.manifest.findings if each.severity is Severity.BLOCK)
    return [each for each in blocking if each.code.partition(".")[0] in _OF_THE_RESULT]


def recomputed(world: World, plan: Plan) -> Recomputed:
    manifest = plan.manifest
    spec = world.pipeline(manifest.pipeline)
    inputs = {each.name: each for each in spec.inputs}
    compute = Compute(
        run_id=plan.run_id,
        manifest=manifest,
        inputs=manifest.inputs,
        input=lambda name: world.input(inputs[name]),
        transform=world.transform(manifest.pipeline),
        engine=world.engine(),
    )
    chunks = list(manifest.chunks)
    return Recomputed(_table(world, manifest), compute(chunks, joined(chunks)).rows)


def _table(world: World, manifest: Manifest) -> DataFrame:
    """What the dataset has where the run would write."""
    dataset = world.dataset(manifest.target.dataset)
    replaces = manifest.settings.publish_mode is PublishMode.REPLACE
    part = manifest.scope.predicate if replaces else during(dataset.time_columns, manifest.scope.windows)
    return world.target(dataset.name).read(manifest.target.base, part)
