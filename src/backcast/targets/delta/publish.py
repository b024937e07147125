"""One metadata-only commit to the live table: exact files out, exact files in, and a transaction id as its fence."""

from __future__ import annotations

import json
import time
from typing import Any

from backcast import faults
from backcast.errors import Conflict, Drifted, OutcomeUnknown, Refused, StateConflict
from backcast.model.scope import Predicate
from backcast.model.table import Change
from backcast.spark.delta.bounds import partition_clauses
from backcast.spark.delta.commit import read_commit, removal
from backcast.spark.delta.handle import DataFile, DeltaHandle, Version
from backcast.spark.gateway import causes, find_cause, is_jvm_error
from backcast.spark.predicates import to_sql

NOT_LANDED = frozenset(
    {
        "ConcurrentAppendException",
        "ConcurrentDeleteDeleteException",
        "ConcurrentDeleteReadException",
        "ConcurrentTransactionException",
        "ConcurrentWriteException",
        "DeltaConcurrentModificationException",
        "MetadataChangedException",
        "ProtocolChangedException",
    }
)
"""Delta raises these only when the commit certainly did not land."""


def commit(handle: DeltaHandle, change: Change) -> str:
    """Land the change and return the new version.

    Opened on the head that the decision was taken on: Delta itself refuses when the scope, which is registered as read,
    or a removed file changed since. A change without any file is a commit too.
    """
    head = handle.at(change.head)
    _refuse_repeat(handle, change.fence)
    actions = [*_removes(handle, head, change), *_adds(handle, head, change)]
    now = int(time.time() * 1000)
    # The version of a fence is the head it was decided on: a later probe starts to look there.
    actions.append({"txn": {"appId": change.fence, "version": head.number, "lastUpdated": now}})
    transaction = handle.jvm.transaction(head.log, head.snapshot)
    if transaction.txnVersion(change.fence) >= 0:
        raise _landed_before(change.fence)
    if change.guard_rows:
        scope = partition_clauses(head.layout, change.scope)
        handle.jvm.register_read(transaction, to_sql(scope, head.layout.types) if scope.clauses else None)
    kind = change.properties.get("backcast.change", "publish")
    faults.point(f"{kind}.before-commit")
    try:
        version = handle.jvm.commit(transaction, actions, json.dumps(change.properties, sort_keys=True))
    except Exception as error:
        if not is_jvm_error(error):
            raise
        raise _outcome(handle, change, error) from error
    faults.point(f"{kind}.after-commit")
    return str(version)


def probe(handle: DeltaHandle, fence: str) -> str | None:
    """The version that the fence's commit produced, or None."""
    head = handle.at()
    decided_on = _fence_version(head, fence)
    if decided_on is None:
        return None
    for number in range(decided_on + 1, head.number + 1):
        found = read_commit(handle.jvm, head.log, number)
        if found is not None and fence in found.fences:
            return str(number)
    raise Drifted(
        f"the commit with fence {fence} landed, but the log no longer says at which version",
        hint="raise delta.logRetentionDuration of the table",
        fence=fence,
    )


def missing(handle: DeltaHandle, paths: frozenset[str]) -> frozenset[str]:
    """Those of the files that storage no longer has."""
    files = handle.jvm.file_system(handle.log)
    return frozenset(path for path in paths if not files.exists(handle.jvm.path(path)))


def _fence_version(head: Version, fence: str) -> int | None:
    found = head.snapshot.transactions().get(fence)
    return int(found.get()) if found.isDefined() else None


def _refuse_repeat(handle: DeltaHandle, fence: str) -> None:
    """The head may have moved since the decision, and with it the fence may have landed."""
    if _fence_version(handle.at(), fence) is not None:
        raise _landed_before(fence)


def _landed_before(fence: str) -> StateConflict:
    return StateConflict(f"a commit with fence {fence} has landed before", fence=fence)


def _removes(handle: DeltaHandle, head: Version, change: Change) -> list[dict[str, Any]]:
    there = change.add & _near(handle, head, change.scope).keys()
    if there:
        raise Refused(f"{len(there)} files to add are live already: their rows would double", file=min(there))
    live = _find(handle, head, change.scope, change.remove)
    gone = change.remove - live.keys()
    if gone:
        raise Conflict(f"{len(gone)} files to remove are not live any more", file=min(gone))
    now = int(time.time() * 1000)
    return [removal(live[path].add, now) for path in sorted(change.remove)]


def _adds(handle: DeltaHandle, head: Version, change: Change) -> list[dict[str, Any]]:
    if not change.add:
        return []
    described = handle.at(change.add_from)
    found = _find(handle, described, change.scope, change.add)
    unknown = change.add - found.keys()
    if unknown:
        raise Refused(f"{len(unknown)} files to add are not in version {change.add_from}", file=min(unknown))
    return [{"add": _add(described, head, found[path])} for path in sorted(change.add)]


def _add(described: Version, head: Version, file: DataFile) -> dict[str, Any]:
    """The file as the live table's log names it: relative to its root, as everything that Delta itself writes."""
    raw = str(file.add["path"])
    if described.branch is not None:
        absolute = described.root.absolute(raw)
        raw = absolute.removeprefix(f"{head.root.uri}/") if file.ref.path.startswith(f"{head.root.path}/") else absolute
    return {**file.add, "path": raw, "dataChange": True}


def _find(handle: DeltaHandle, version: Version, near: Predicate, paths: frozenset[str]) -> dict[str, DataFile]:
    """Those of the files that the version has; the whole table is listed only when the scope's files are not enough.

    Files of an exact scope may hold nothing but rows that were carried over, and then lie beside it.
    """
    found = _near(handle, version, near)
    if not paths <= found.keys():
        found = version.files(Predicate())
    return {path: found[path] for path in paths & found.keys()}


def _near(handle: DeltaHandle, version: Version, scope: Predicate) -> dict[str, DataFile]:
    return handle.scope_files(scope).at(version) if version.branch is None else version.files(scope)


def _outcome(handle: DeltaHandle, change: Change, error: Exception) -> Conflict | OutcomeUnknown:
    refusal = find_cause(error, NOT_LANDED)
    if refusal is not None:
        return Conflict(f"not landed: {refusal.message}", hint="try again", fence=change.fence)
    words = causes(error)
    detail = f"{words[-1].kind}: {words[-1].message}" if words else "Spark's JVM did not answer"
    return OutcomeUnknown(
        f"the commit to {handle.name} may or may not have landed: {detail}",
        hint="run the same command again: it looks at the table first",
        fence=change.fence,
    )
