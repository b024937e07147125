"""What is known about a table at one version: facts, files, changes. Nothing here names a table format's classes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from backcast.model.document import Document, canonical, sha256
from backcast.model.scope import Predicate


class PublishMode(StrEnum):
    """How the stage meets the table."""

    REPLACE = "replace"
    APPEND = "append"
    MERGE = "merge"


class Column(Document):
    name: str
    type: str
    """Spark's simple string, such as `decimal(10,2)`."""
    nullable: bool


class PartitionField(Document):
    """One field of the partition spec.

    `transform` is identity, hour, day, month, year, bucket[16], truncate[4] or void.
    """

    source: str
    transform: str
    name: str


class TableIdentity(Document):
    """What must not move between plan and publish."""

    name: str
    format: str
    format_version: int
    uuid: str
    columns: tuple[Column, ...]
    partition_fields: tuple[PartitionField, ...]
    spec_id: int
    location: str | None = None
    """How plans name a table that they know by its folder alone; None for formats whose plans tell the name."""

    @property
    def without_empty_texts(self) -> frozenset[str]:
        """Columns in which an empty text is stored as null: partition columns of Delta."""
        texts = {column.name for column in self.columns if column.type == "string"}
        return frozenset(field.source for field in self.partition_fields if self.format == "delta") & texts


@dataclass(frozen=True, slots=True)
class TableFacts:
    """A table at one version. `version` is None for a table that has no snapshot yet."""

    identity: TableIdentity
    version: str | None
    committed_at: datetime | None
    survives_until: datetime | None
    """When the owner's expiry may remove this version at the earliest; None when nothing is known."""
    referenced: bool
    """A tag or another branch keeps this version whatever expiry does."""
    properties: dict[str, str]
    removed_files_kept: timedelta | None = None
    """How long files that a publish removes stay, and what describes them; None when our own tags keep both."""


SMALL_FILE = 8 * 1024 * 1024
MANY_SMALL = 20
"""From more files than this on their number, and not their bytes, is what readers wait for."""


@dataclass(frozen=True, slots=True)
class FileRef:
    """A data file as the table's metadata describes it."""

    path: str
    partition: str
    """As in a path: `day=2026-01-01`; empty for an unpartitioned table."""
    rows: int
    size: int
    deletes: int = 0
    """Number of delete files that apply to it."""


@dataclass(frozen=True, slots=True)
class FileList:
    """The files of one version that can hold rows matching a predicate."""

    version: str | None
    files: tuple[FileRef, ...]

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.files)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def has_deletes(self) -> bool:
        return any(file.deletes for file in self.files)

    def digest(self) -> str:
        return files_digest(self.paths, frozenset())


@dataclass(frozen=True, slots=True)
class Claim:
    """Something about every value of a column that metadata of files may prove. Ends are text, and allowed values."""

    column: str
    not_null: bool = False
    least: str | None = None
    greatest: str | None = None


def files_digest(added: frozenset[str], removed: frozenset[str]) -> str:
    """Names a file change: a verdict carries it and publish must find the same."""
    return sha256(canonical({"added": sorted(added), "removed": sorted(removed)}))


@dataclass(frozen=True, slots=True)
class NetChange:
    """What a stage adds to and removes from its base, once all its commits are folded together."""

    base: str | None
    staged: str
    added: tuple[FileRef, ...]
    removed: tuple[FileRef, ...]
    outside: tuple[FileRef, ...]
    """Added files that are not proven to lie in the scope. Publish refuses when there is one."""
    superseded: tuple[str, ...] = ()
    """Paths that a repeated chunk left behind: written on the stage, not part of the change."""

    def digest(self) -> str:
        return files_digest(frozenset(f.path for f in self.added), frozenset(f.path for f in self.removed))


@dataclass(frozen=True, slots=True)
class LiveCommit:
    """A commit of somebody else since the base."""

    version: str
    operation: str
    at: datetime
    added: int
    removed: int
    """Files of the scope that it added and removed."""


@dataclass(frozen=True, slots=True)
class Movement:
    """How the scope's files differ between base and head."""

    head: str | None
    files: FileList
    """The scope's files at the head."""
    added: tuple[FileRef, ...]
    removed: tuple[FileRef, ...]
    only_compaction: bool
    """Every difference stems from commits that rewrote files without changing rows."""
    commits: tuple[LiveCommit, ...]

    @property
    def moved(self) -> bool:
        return bool(self.added or self.removed)


@dataclass(frozen=True, slots=True)
class Stage:
    """The branch of one run. `base` is None when the table had no snapshot."""

    run_id: str
    branch: str
    base_tag: str
    base: str | None


@dataclass(frozen=True, slots=True)
class Merging:
    """How rows meet those with the same key. Of one key the rows that are written hold at most one."""

    key: tuple[str, ...]
    version: str
    """The column by which a row is newer: only a greater value changes what is there."""
    deleted: str | None = None
    """A boolean column of the rows, and of no table: true takes the row of that key away."""
    masked: tuple[str, ...] = ()
    """Columns whose values no message shows."""


@dataclass(frozen=True, slots=True)
class StageWrite:
    """Who writes what on the stage: neighbouring chunks, written in one commit under one fencing token."""

    chunk_ids: tuple[str, ...]
    token: int
    predicate: Predicate
    exact: bool
    files: int | None = None
    """About how many files of the base it replaces, when that is known."""
    together: bool = False
    """Rows of one partition are read together: a task meets few of them, unless the transform mixes them up."""
    mode: PublishMode = PublishMode.REPLACE
    """`append` leaves the rows that are there, except what the same chunks wrote before; `merge` replaces by key."""
    merging: Merging | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """What became of the rows of a merge: their sum is how many there were."""

    inserted: int = 0
    replaced: int = 0
    removed: int = 0
    stayed: int = 0
    """The table's row is as new or newer."""
    absent: int = 0
    """Deletes of keys that the table does not have."""

    @property
    def written(self) -> int:
        return self.inserted + self.replaced

    @property
    def deletes(self) -> int:
        """Rows that tell of a deletion; those that came too late are among the stayed."""
        return self.removed + self.absent


@dataclass(frozen=True, slots=True)
class StageCommit:
    """One commit on the stage, as its own metadata describes it."""

    version: str
    chunk_ids: tuple[str, ...]
    token: int
    rows: int
    """Rows it wrote, without those that were only carried over; a commit of another stage wrote none."""
    added: tuple[FileRef, ...] = ()
    merged: Merged | None = None
    """For a merge."""


@dataclass(frozen=True, slots=True)
class Carry:
    """Commits of an earlier stage of the run that a later one takes over as they are."""

    source: str
    """The staged version that holds their files."""
    predicate: Predicate
    """Whole partitions: those of all their chunks, and of no other."""
    commits: tuple[tuple[int, tuple[str, ...]], ...]
    """Token and chunks of each."""


@dataclass(frozen=True, slots=True)
class Change:
    """One commit to the live table: exact files out, exact files in, under a fence.

    Metadata alone, unless the target has to write the rows instead (`Rewrite`).
    """

    fence: str
    """Name of the tag that the same commit creates; a second commit with this name is refused."""
    head: str | None
    """The version on which the decision was taken."""
    scope: Predicate
    add_from: str | None
    """The version whose metadata describes the added files, with their statistics."""
    add: frozenset[str]
    remove: frozenset[str]
    guard_rows: bool
    """True: refuse when rows arrived in scope after `head`. False: leave such rows beside the change."""
    properties: dict[str, str]
    keep: tuple[tuple[str, str], ...] = ()
    """Further tags, as (name, version), that the same commit creates."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Files of a commit that could not swap exact files and wrote the scope's rows instead."""

    added: frozenset[str]
    removed: frozenset[str]
    """All that it replaced, also files whose rows it wrote again unchanged."""


@dataclass(frozen=True, slots=True)
class Forget:
    """Refs to drop and versions to forget in one commit, and files that nothing else reaches to delete after it."""

    refs: tuple[str, ...]
    versions: tuple[str, ...]
    branch: str | None
    """Also forget every version that only this branch reaches."""
