"""Base against stage, chunk by chunk. The stage's side comes from the verdict when that has read the same version."""

from __future__ import annotations

from backcast.model.diff import Diff, PartitionDiff
from backcast.model.digest import Digest
from backcast.model.manifest import Manifest
from backcast.model.scope import EVERYTHING
from backcast.model.table import FileRef, PublishMode, Stage
from backcast.model.verdict import Verdict
from backcast.ports import Engine, Target


def diff(
    run_id: str, manifest: Manifest, stage: Stage, staged: str, verdict: Verdict | None, target: Target, engine: Engine
) -> Diff:
    if manifest.settings.publish_mode is not PublishMode.REPLACE:
        return _of_files(run_id, manifest, stage, staged, target, engine)
    parts = {chunk.id: chunk.predicate for chunk in manifest.chunks}
    before = engine.digests(target.read(stage.base, manifest.scope.predicate), parts)
    if verdict is not None and verdict.staged == staged and verdict.partitions:
        after = {each.chunk: each.digest for each in verdict.partitions}
    else:
        after = engine.digests(target.read(staged, manifest.scope.predicate), parts)
    partitions = tuple(PartitionDiff(chunk=name, base=before[name], stage=after[name]) for name in parts)
    return Diff(run_id=run_id, base=stage.base, staged=staged, partitions=partitions)


def _of_files(run_id: str, manifest: Manifest, stage: Stage, staged: str, target: Target, engine: Engine) -> Diff:
    """Rows of the files that go and of those that come, as one part: offsets are no part of a table."""
    net = target.net_change(stage, staged, manifest.scope.predicate)

    def rows(version: str | None, files: tuple[FileRef, ...]) -> Digest:
        found = target.read_files(version, frozenset(file.path for file in files), EVERYTHING)
        return engine.digests(found, {"": EVERYTHING})[""]

    only = PartitionDiff(chunk="all rows", base=rows(stage.base, net.removed), stage=rows(staged, net.added))
    return Diff(run_id=run_id, base=stage.base, staged=staged, partitions=(only,))
