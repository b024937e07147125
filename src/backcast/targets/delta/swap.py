"""The files of a change as the log describes them, each checked to be where the change takes it to be."""

from __future__ import annotations

from dataclasses import dataclass

from backcast.errors import Conflict, Refused
from backcast.model.table import Change
from backcast.spark.delta.handle import STAGES, DataFile, DeltaHandle, Version


@dataclass(frozen=True, slots=True)
class Swap:
    """What goes, what comes, and what stays beside it in the scope, on the head that the decision was taken on."""

    head: Version
    out: tuple[DataFile, ...]
    described: Version
    """The version whose log describes what comes."""
    come: tuple[DataFile, ...]
    stay: tuple[DataFile, ...]


def checked(handle: DeltaHandle, change: Change, *, stay: bool = True) -> Swap:
    """Raises Refused when rows would double, and Conflict when a file to remove is not there any more.

    The scope is not listed for who adds files of a stage beside whatever is there, and need not be told what stays.
    """
    head = handle.at(change.head)
    described = handle.at(change.add_from) if change.add else head
    listed = stay or change.guard_rows or bool(change.remove) or described.branch is None
    near = head.near(change.scope) if listed else {}
    there = change.add & (near.keys() if listed else _staged(handle, head))
    if there:
        raise Refused(f"{len(there)} files to add are live already: their rows would double", file=min(there))
    live = head.find(change.remove, change.scope)
    gone = change.remove - live.keys()
    if gone:
        raise Conflict(f"{len(gone)} files to remove are not live any more", file=min(gone))
    found = described.find(change.add, change.scope)
    unknown = change.add - found.keys()
    if unknown:
        raise Refused(f"{len(unknown)} files to add are not in version {change.add_from}", file=min(unknown))
    return Swap(
        head=head,
        out=tuple(live[path] for path in sorted(live)),
        described=described,
        come=tuple(found[path] for path in sorted(found)),
        stay=tuple(near[path] for path in sorted(near.keys() - live.keys())),
    )


def _staged(handle: DeltaHandle, head: Version) -> frozenset[str]:
    """Files of the table that came from a stage, whichever that was."""
    from pyspark.sql import functions as F

    listed = handle.jvm.files(head.snapshot).select("path")
    found = listed.where(F.col("path").contains(f"{STAGES}/")).collect()
    return frozenset(head.root.canonical(row[0]) for row in found)
