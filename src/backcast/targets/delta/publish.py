"""One metadata-only commit to the live table: exact files out, exact files in, and a transaction id as its fence."""

from __future__ import annotations

import json
import time
from typing import Any

from backcast import faults
from backcast.errors import Conflict, Drifted, OutcomeUnknown, Refused, StateConflict
from backcast.model.table import Change
from backcast.spark.delta.bounds import partition_clauses
from backcast.spark.delta.commit import read_commit, removal
from backcast.spark.delta.handle import DataFile, DeltaHandle, Version
from backcast.spark.delta.vectors import relative
from backcast.spark.gateway import came_through, causes, find_cause, is_jvm_error
from backcast.spark.predicates import to_sql
from backcast.targets.delta.findings import refuse_unfit
from backcast.targets.delta.swap import checked

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

_CHECKS = "prepareCommit"
"""Delta's own checks of a transaction, before anything of it is written."""

NO_HEAD = 0
"""The version of a fence that does not tell on which head it was decided: its commit is looked for from the newest."""


def commit(handle: DeltaHandle, change: Change) -> str:
    """Land the change and return the new version.

    Opened on the head that the decision was taken on: Delta itself refuses when the scope, which is registered as read,
    or a removed file changed since. A change without any file is a commit too.
    """
    refuse_repeat(handle, change.fence)
    swap = checked(handle, change, stay=False)
    head = swap.head
    refuse_unfit(handle.name, head.layout)
    now = int(time.time() * 1000)
    actions = [removal(file.add, now) for file in swap.out]
    actions += [{"add": live_add(swap.described, head, file)} for file in swap.come]
    # The version of a fence is the head it was decided on: a later probe starts to look there.
    actions.append({"txn": {"appId": change.fence, "version": head.number, "lastUpdated": now}})
    transaction = handle.jvm.transaction(head.log, head.snapshot)
    if handle.jvm.read_fence(transaction, change.fence) is not None:
        raise landed_before(change.fence)
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
        raise outcome(handle, change, error) from error
    faults.point(f"{kind}.after-commit")
    return str(version)


def probe(handle: DeltaHandle, fence: str) -> str | None:
    """The version that the fence's commit produced, or None."""
    head = handle.at()
    decided_on = head.fence(fence)
    if decided_on is None:
        return None
    since = range(decided_on + 1, head.number + 1)
    for number in reversed(since) if decided_on == NO_HEAD else since:
        found = read_commit(handle.jvm, head.log, number)
        if found is not None and fence in found.fences:
            return str(number)
        if found is None and decided_on == NO_HEAD:
            break
    raise Drifted(
        f"the commit with fence {fence} landed, but the log no longer says at which version",
        hint="raise delta.logRetentionDuration of the table",
        fence=fence,
    )


def missing(handle: DeltaHandle, paths: frozenset[str]) -> frozenset[str]:
    """Those of the files that storage no longer has."""
    storage = handle.jvm.storage(handle.log)
    return frozenset(path for path in paths if not storage.exists(path))


def _absent(handle: DeltaHandle, fence: str) -> bool:
    """Whether storage said that the fence has not landed; no answer is no."""
    try:
        return handle.at().fence(fence) is None
    except Exception as error:
        if not is_jvm_error(error):
            raise
        return False


def refuse_repeat(handle: DeltaHandle, fence: str) -> None:
    """The head may have moved since the decision, and with it the fence may have landed."""
    if handle.at().fence(fence) is not None:
        raise landed_before(fence)


def landed_before(fence: str) -> StateConflict:
    return StateConflict(f"a commit with fence {fence} has landed before", fence=fence)


def live_add(described: Version, head: Version, file: DataFile) -> dict[str, Any]:
    """The file as the live table's log names it: relative to its root, as everything that Delta itself writes."""
    raw, add = str(file.add["path"]), file.add
    if described.branch is not None:
        absolute, add = described.root.absolute(raw), relative(head.root, add)
        raw = absolute.removeprefix(f"{head.root.uri}/") if file.ref.path.startswith(f"{head.root.path}/") else absolute
    return {**add, "path": raw, "dataChange": True}


def outcome(handle: DeltaHandle, change: Change, error: Exception) -> Conflict | Refused | OutcomeUnknown:
    refusal = find_cause(error, NOT_LANDED)
    if refusal is not None:
        return Conflict(f"not landed: {refusal.message}", hint="try again", fence=change.fence)
    words = causes(error)
    if words and words[0].kind.startswith("Delta") and came_through(error, _CHECKS) and _absent(handle, change.fence):
        return Refused(
            f"Delta refuses to change {handle.name}, and nothing was written: {words[0].message}",
            hint="remove the cause, then run the same command again",
            fence=change.fence,
        )
    detail = f"{words[-1].kind}: {words[-1].message}" if words else "Spark's JVM did not answer"
    return OutcomeUnknown(
        f"the commit to {handle.name} may or may not have landed: {detail}",
        hint="run the same command again: it looks at the table first",
        fence=change.fence,
    )
