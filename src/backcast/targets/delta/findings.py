"""What Delta makes impossible or risky for a table as it is: table features, properties, retention."""

from __future__ import annotations

from datetime import timedelta

from backcast.errors import Refused
from backcast.model.finding import Finding, block, note, warn
from backcast.model.table import FileList
from backcast.spark.delta.facts import kept
from backcast.spark.delta.fit import PROVEN, committing_problem, reading_problem
from backcast.spark.delta.handle import DeltaHandle, Version
from backcast.spark.delta.layout import Layout
from backcast.spark.delta.log_store import keeps_processes_apart

SUPPORTED = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "clustering",
        "columnMapping",
        "deletionVectors",
        "domainMetadata",
        "generatedColumns",
        "inCommitTimestamp",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "allowColumnDefaults",
    }
)
"""Table features under which publish and undo are proven; any other is refused by name."""

_REFUSED_PROPERTIES = {
    "delta.appendOnly": ("allows no file to be removed", "restate it into a table that may be rewritten"),
    "delta.enableRowTracking": ("tracks rows, and a publish would give them new ids", "use a table without it"),
    "delta.enableIcebergCompatV1": (
        "is read as Iceberg too, whose metadata a publish would not follow",
        "switch it off",
    ),
    "delta.enableIcebergCompatV2": (
        "is read as Iceberg too, whose metadata a publish would not follow",
        "switch it off",
    ),
    "delta.enableIcebergCompatV3": (
        "is read as Iceberg too, whose metadata a publish would not follow",
        "switch it off",
    ),
}

_FORGETS = "delta.setTransactionRetentionDuration"

_REFUSED_FEATURES = {
    "rowTracking": "used or only allowed: commits number rows, and those that an undo brings back would get new ids",
}


def findings(handle: DeltaHandle, files: FileList, undo_window: timedelta) -> list[Finding]:
    head = handle.at()
    return [
        *_version(handle),
        *_features(handle.name, head.layout),
        *_forgetful(handle.name, head.layout),
        *_deletion_vectors(handle.name, files),
        *_retention(handle, head, undo_window),
        *log_findings(handle.root.scheme, handle.log_store),
        note(
            "target.gc",
            "VACUUM does not visit the folder _backcast/ of a Delta table",
            "run `backcast gc` every day; it deletes there what neither the table nor an undo needs",
        ),
    ]


def _version(handle: DeltaHandle) -> list[Finding]:
    remedy = f"use delta-spark {PROVEN[-1]}, which backcast brings itself in a session of its own"
    reading, committing = reading_problem(handle.jvm), committing_problem(handle.jvm)
    if reading is not None:
        return [block("target.delta-version", reading, remedy)]
    if committing is not None:
        reason = f"{committing}: publish and undo will write the scope's rows once more instead of swapping files"
        return [warn("target.delta-rewrite", reason, remedy)]
    return []


def _features(table: str, layout: Layout) -> list[Finding]:
    found = []
    for name in sorted(layout.features - SUPPORTED):
        why = _REFUSED_FEATURES.get(name, "under which a publish is not proven")
        reason = f"{table} uses the table feature {name}, {why}"
        found.append(block("target.feature", reason, "use a table without this feature"))
    for key, (why, remedy) in _REFUSED_PROPERTIES.items():
        if layout.properties.get(key) == "true":
            found.append(block("target.property", f"{table} sets {key}: it {why}", remedy))
    identity = [field.name for field in layout.schema.fields if "delta.identity.start" in field.metadata]
    if identity:
        reason = f"{', '.join(identity)} of {table} is an identity column, whose counter a publish would not move"
        found.append(block("target.identity-column", reason, "restate into a table without identity columns"))
    return found


def _forgetful(table: str, layout: Layout) -> list[Finding]:
    if _FORGETS not in layout.properties:
        return []
    return [
        block(
            "target.transaction-retention",
            f"{table} forgets transaction ids, by which a repeated publish is recognised",
            f"remove {_FORGETS} in a quiet moment",
        )
    ]


def refuse_unfit(table: str, layout: Layout) -> None:
    """Raises Refused when its owner gave the table since the plan what the plan would have refused."""
    found = [*_features(table, layout), *_forgetful(table, layout)]
    if found:
        raise Refused(
            f"since the plan {found[0].reason}",
            hint=f"have that taken back (ALTER TABLE {table} UNSET TBLPROPERTIES or DROP FEATURE), then repeat this",
            finding=found[0].code,
        )


def _deletion_vectors(table: str, files: FileList) -> list[Finding]:
    if not files.has_deletes:
        return []
    return [
        block(
            "target.delete-files",
            f"deletion vectors apply to rows in scope of {table}; an undo could bring those rows back",
            f"rewrite the scope once: REORG TABLE {table} APPLY (PURGE)",
        )
    ]


def log_findings(scheme: str, store: str) -> list[Finding]:
    """What can become of two commits in the same moment. Pure."""
    if keeps_processes_apart(scheme, store):
        return []
    told = "Delta keeps apart the writers of one process only: of two processes that commit in the same moment, one can"
    if scheme == "file":
        return [
            note(
                "target.local-log",
                f"on a local disk {told} lose its commit",
                "publish and undo while no other process writes, or keep the table on HDFS, Azure or Google storage, or"
                " on S3 with S3DynamoDBLogStore",
            )
        ]
    where = f"{scheme}:// with {store.rpartition('.')[2]}" if store else f"{scheme}://"
    if scheme in ("s3", "s3a", "s3n"):
        remedy = f"set spark.delta.logStore.{scheme}.impl to io.delta.storage.S3DynamoDBLogStore for all that write"
    else:
        remedy = "use a log store that is made for several writers"
    return [
        warn(
            "target.unshared-log",
            f"on {where} {told} lose its rows for good",
            f"{remedy}, or publish and undo while no other process writes",
        )
    ]


def _retention(handle: DeltaHandle, head: Version, undo_window: timedelta) -> list[Finding]:
    found = []
    files, log = kept(head, handle)
    if undo_window > files:
        found.append(
            _shorter(undo_window, files, "VACUUM may delete replaced files", "delta.deletedFileRetentionDuration")
        )
    if log is not None and undo_window > log:
        found.append(_shorter(undo_window, log, "Delta may clean the log", "delta.logRetentionDuration"))
    return found


def _shorter(wanted: timedelta, there: timedelta, what: str, key: str) -> Finding:
    return warn(
        "target.retention",
        f"{what} after {_words(there)}: undo is guaranteed that long, and not {_words(wanted)}",
        f"raise {key} in a quiet moment, or shorten `undo_window`",
    )


def _words(length: timedelta) -> str:
    hours = int(length.total_seconds() // 3600)
    return f"{hours // 24} days" if hours >= 48 and hours % 24 == 0 else f"{hours} hours"
