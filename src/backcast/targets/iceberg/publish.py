"""One metadata-only commit to the live table: exact files out, exact files in, and a tag as its fence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from backcast import faults
from backcast.errors import Conflict, OutcomeUnknown, Refused, StateConflict
from backcast.model.scope import Predicate
from backcast.model.table import Change
from backcast.spark.gateway import NOT_LANDED, causes, find_cause, is_jvm_error
from backcast.spark.iceberg.expressions import to_expression
from backcast.spark.iceberg.files import data_files
from backcast.spark.iceberg.handle import TableHandle, ref_of
from backcast.targets.iceberg.additions import live_already, new_files

CHANGE = "backcast.change"
"""Property that names the kind of change: publish or undo."""


def commit(handle: TableHandle, change: Change) -> str:
    """Land the change and return the new version.

    A change without any file is a commit too: its snapshot and tag are the witness that it happened.
    Nothing lands before `_land`; from that call on, any error but a certain refusal is an unknown outcome.
    """
    table = handle.load()
    _check(table, change)
    scope = to_expression(handle, change.scope, handle.types(table))
    removed, added = _files(handle, table, change, scope)
    # Listing takes a while on a big scope, and somebody else's commit may have landed since.
    table.refresh()
    _check(table, change)
    with _refusals(handle, change, landing=False):
        transaction, version = _prepare(table, change, scope, removed, added)
    kind = change.properties.get(CHANGE, "publish")
    faults.point(f"{kind}.before-commit")
    with _refusals(handle, change, landing=True):
        _land(handle, transaction, change.fence, version)
    faults.point(f"{kind}.after-commit")
    return version


def probe(handle: TableHandle, fence: str) -> str | None:
    """The version that the fence's commit produced, or None."""
    return ref_of(handle.load(), fence)


def missing(handle: TableHandle, paths: frozenset[str]) -> frozenset[str]:
    """Those of the files that storage no longer has."""
    io = handle.load().io()
    return frozenset(path for path in paths if not io.newInputFile(path).exists())


def _check(table: Any, change: Change) -> None:
    """Only the fence. A head that moved is no conflict in itself: Iceberg validates the commit from `change.head`.

    To insist on an unmoved head starves beside a writer that commits faster than the scope's files can be listed.
    """
    if ref_of(table, change.fence) is not None:
        raise StateConflict(f"a commit with fence {change.fence} has landed before", fence=change.fence)


def _files(handle: TableHandle, table: Any, change: Change, scope: Any) -> tuple[list[Any], list[Any]]:
    """The files to remove, as the head describes them, and to add, as `add_from` does, each with its statistics."""
    if not change.remove and not change.guard_rows:
        added = new_files(handle, table, change)
        if added is not None:
            return [], added
    live = _Described(handle, table, change.head, scope)
    there = [path for path in change.add if path in live.near]
    if there:
        raise live_already(there)
    removed = live.find(change.remove)
    gone = change.remove - removed.keys()
    if gone:
        raise Conflict(f"{len(gone)} files to remove are not live any more", file=min(gone))
    found = _Described(handle, table, change.add_from, scope).find(change.add)
    unknown = change.add - found.keys()
    if unknown:
        raise Refused(f"{len(unknown)} files to add are not in version {change.add_from}", file=min(unknown))
    return [removed[path] for path in sorted(removed)], [found[path] for path in sorted(found)]


class _Described:
    """The files of one version. Those near the scope are listed first, the whole table only when that is not enough."""

    def __init__(self, handle: TableHandle, table: Any, version: str | None, scope: Any) -> None:
        self._handle, self._table, self._version = handle, table, version
        self.near: dict[str, Any] = self._list(scope)

    def find(self, paths: frozenset[str]) -> dict[str, Any]:
        files = self.near
        if not paths <= files.keys():
            files = self._list(to_expression(self._handle, Predicate(), {}))
        return {path: files[path] for path in paths & files.keys()}

    def _list(self, expression: Any) -> dict[str, Any]:
        return {} if self._version is None else data_files(self._handle, self._table, self._version, expression)


def _prepare(table: Any, change: Change, scope: Any, removed: list[Any], added: list[Any]) -> tuple[Any, str]:
    """The transaction, complete but not committed, and the version it will produce."""
    transaction = table.newTransaction()
    overwrite = transaction.newOverwrite().conflictDetectionFilter(scope).validateNoConflictingDeletes()
    if change.head is not None:
        overwrite = overwrite.validateFromSnapshot(int(change.head))
    if change.guard_rows:
        overwrite = overwrite.validateNoConflictingData()
    for data_file in removed:
        overwrite.deleteFile(data_file)
    for data_file in added:
        overwrite.addFile(data_file)
    for key, value in sorted(change.properties.items()):
        overwrite.set(key, value)
    overwrite.commit()
    version = transaction.table().currentSnapshot().snapshotId()
    refs = transaction.manageSnapshots().createTag(change.fence, version)
    for name, kept in change.keep:
        refs = refs.createTag(name, int(kept))
    refs.commit()
    return transaction, str(version)


def _land(handle: TableHandle, transaction: Any, fence: str, version: str) -> None:
    """Compare and set the table's metadata, once.

    `commitTransaction` would try again when it is refused, and then delete what the first try wrote. But a JDBC catalog
    repeats a statement whose answer was lost, and the repeat is refused because the first one landed: the live table
    would lose its manifests. For the same reason a refusal counts only when the fence is not there.
    """
    try:
        transaction.underlyingOps().commit(transaction.startMetadata(), transaction.currentMetadata())
    except Exception as error:
        if not is_jvm_error(error) or not find_cause(error, NOT_LANDED) or probe(handle, fence) != version:
            raise


@contextmanager
def _refusals(handle: TableHandle, change: Change, *, landing: bool) -> Iterator[None]:
    """A certain refusal becomes Conflict; while landing, everything else is an unknown outcome."""
    try:
        yield
    except Exception as error:
        if not is_jvm_error(error):
            raise
        words = causes(error)
        refusal = next((each for each in words if each.kind in NOT_LANDED), None)
        # An unknown state may have a lost race as its cause; it stays unknown.
        if refusal is not None and not find_cause(error, frozenset({"CommitStateUnknownException"})):
            raise Conflict(f"not landed: {refusal.message}", hint="try again", fence=change.fence) from error
        if not landing:
            raise
        detail = f"{words[-1].kind}: {words[-1].message}" if words else "Spark's JVM did not answer"
        raise OutcomeUnknown(
            f"the commit to {handle.name} may or may not have landed: {detail}",
            hint="run the same command again: it looks at the table first",
            fence=change.fence,
        ) from error
