"""What a stage changes, told from what validation has in its hands anyway. Pure: it may cost no look at any row."""

from __future__ import annotations

from collections.abc import Mapping

from backcast.model.change import ChunkChange, StageChange
from backcast.model.digest import Digest
from backcast.model.manifest import Manifest
from backcast.model.partitions import rows_by_chunk
from backcast.model.scope import TimeClause
from backcast.model.table import NetChange, PublishMode


def change_of(
    manifest: Manifest,
    net: NetChange,
    written: Mapping[str, int],
    before: Mapping[str, Digest],
    after: Mapping[str, Digest],
) -> StageChange | None:
    """None when the files of the base do not say how many rows they hold.

    `written` are the rows of each chunk; `before` and `after` are digests of each chunk where they were wanted.
    """
    mode, rows = manifest.settings.publish_mode, sum(written.values())
    if mode is PublishMode.REPLACE and before:
        chunks = tuple(_compared(name, before[name], after[name]) for name in before)
        return StageChange(before=sum(each.before for each in chunks), after=rows, chunks=chunks)
    if any(file.deletes or not file.rows for file in net.removed):
        return None
    gone, come = (sum(file.rows for file in files) for files in (net.removed, net.added))
    if mode is PublishMode.MERGE:
        return StageChange(before=gone, after=come, rewritten=True)
    if manifest.scope.exact:
        # Files that a scope cuts hold rows beside it: as many in those that come as in those that go.
        return StageChange(before=max(gone - (come - rows), 0), after=rows)
    return StageChange(before=gone, after=rows, chunks=_by_file(manifest, net, written))


def _compared(chunk: str, before: Digest, after: Digest) -> ChunkChange:
    same = before == after
    return ChunkChange(chunk=chunk, before=before.rows, after=after.rows, same=same, digests=(before, after))


def _by_file(manifest: Manifest, net: NetChange, written: Mapping[str, int]) -> tuple[ChunkChange, ...]:
    plans = manifest.chunks
    replaces = manifest.settings.publish_mode is PublishMode.REPLACE
    if not replaces or not all(_in_time(plan.predicate.clauses) for plan in plans):
        return ()
    if len(plans) == 1:
        counts = {plans[0].id: sum(file.rows for file in net.removed)}
    else:
        counts = rows_by_chunk(net.removed, plans, manifest.target.identity)
    return tuple(ChunkChange(chunk=name, before=rows, after=written.get(name, 0)) for name, rows in counts.items())


def _in_time(clauses: tuple[object, ...]) -> bool:
    return any(isinstance(clause, TimeClause) for clause in clauses)
