"""Base against stage, chunk by chunk. The stage's side comes from the verdict when that has read the same version."""

from __future__ import annotations

from backcast.model.diff import Diff, PartitionDiff
from backcast.model.manifest import Manifest
from backcast.model.table import Stage
from backcast.model.verdict import Verdict
from backcast.ports import Engine, Target


def diff(
    run_id: str, manifest: Manifest, stage: Stage, staged: str, verdict: Verdict | None, target: Target, engine: Engine
) -> Diff:
    parts = {chunk.id: chunk.predicate for chunk in manifest.chunks}
    before = engine.digests(target.read(stage.base, manifest.scope.predicate), parts)
    if verdict is not None and verdict.staged == staged and verdict.partitions:
        after = {each.chunk: each.digest for each in verdict.partitions}
    else:
        after = engine.digests(target.read(staged, manifest.scope.predicate), parts)
    partitions = tuple(PartitionDiff(chunk=name, base=before[name], stage=after[name]) for name in parts)
    return Diff(run_id=run_id, base=stage.base, staged=staged, partitions=partitions)
