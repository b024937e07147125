"""What the flow asks of the world. Adapters in sources/, targets/ and store/ answer; steps know nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from backcast.model.scope import EVERYTHING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.analysis import Analysis
    from backcast.model.coverage import Coverage
    from backcast.model.digest import Digest
    from backcast.model.finding import Finding
    from backcast.model.manifest import InputPin, Manifest
    from backcast.model.request import Request
    from backcast.model.run import (
        Chunk,
        Effect,
        Event,
        Holder,
        Lease,
        Publication,
        Run,
        StageRecord,
    )
    from backcast.model.scope import Predicate
    from backcast.model.states import EffectState, RunState
    from backcast.model.table import (
        Carry,
        Change,
        Column,
        FileList,
        Forget,
        Movement,
        NetChange,
        Rewrite,
        Stage,
        StageCommit,
        StageWrite,
        TableFacts,
        TableIdentity,
    )
    from backcast.model.time import Interval
    from backcast.model.verdict import Verdict


class Clock(Protocol):
    """The only source of time and waiting below `project/`."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...


class Source(Protocol):
    """An input that can be pinned to one version and read at it. Never written to."""

    def facts(self, version: str | None = None) -> TableFacts:
        """The given version, or the newest. Raises Drifted when a given version is gone."""

    def files(self, version: str | None, predicate: Predicate) -> FileList:
        """Files of that version that can hold matching rows; empty for version None."""

    def read(self, version: str | None, predicate: Predicate) -> DataFrame:
        """Exactly the matching rows of that version."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Rows of an input."""

    rows: DataFrame
    log: LogReading | None = None


@dataclass(frozen=True, slots=True)
class Sifted:
    """A transform's rows, and the records that it rejected."""

    kept: DataFrame
    rejected: DataFrame
    """Position and reason, not computed yet; of one record as often as the transform said so."""
    count: Callable[[], int | None]
    """How many were left out when `kept` was written; None when that was lost."""
    strangers: Callable[[], int | None]
    """How many of them are of a topic that is no input: nobody would keep them. None when that was lost."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """Records that a job has to set aside."""

    undecoded: int
    rejected: DataFrame | None
    """As `Sifted` has them; None when there are none."""
    before: int
    """Set aside by other jobs of the run."""


class LogReading(Protocol):
    """What a job that reads a log can tell once its rows were written."""

    @property
    def topic(self) -> str:
        """Whose records they are."""

    @property
    def most(self) -> int | None:
        """How many records a run may set aside; None: there is no place for any."""

    def proof(self) -> tuple[Coverage, int]:
        """What became of the offsets that its chunks own, and how many rows it handed over."""

    def quarantine(self, run_id: str, chunks: tuple[str, ...], found: Unusable, at: datetime) -> int:
        """Keep these records, each once however often a job is repeated; how many of them were rejected, and count
        in this job alone.

        Raises ChunkFailed when there is no place for them, QuarantineFull when they are more than was allowed.
        """


class Input(Protocol):
    """What a pipeline reads: pinned by the plan, read as it was pinned. Never written to."""

    def identity(self) -> TableIdentity:
        """What it is and which columns it has, now."""

    def pin(self, windows: Mapping[str, Interval], now: datetime) -> InputPin:
        """What the chunks, given by id with the time that each needs, will read. Raises nothing for what is gone."""

    def check(self, pin: InputPin, chunks: frozenset[str]) -> None:
        """Raises Drifted when what was pinned is gone, or is something else by now, as far as these chunks need it."""

    def read(self, pin: InputPin, windows: Mapping[str, Interval]) -> Reading:
        """Exactly the rows that were pinned for these chunks."""


class LogInput(Input, Protocol):
    """An input that is a log, where a run may be cut by offsets."""

    def pin_offsets(self, request: Request, window: Interval | None, now: datetime, most: int) -> InputPin:
        """What the request asks for, in at most so many slices of about the same size, each a chunk."""


Rest = Callable[[float], None]
"""Waits so many seconds, as long as the right to commit lasts."""

Turn = Callable[[], AbstractContextManager[Rest]]
"""Waits until nobody else commits to the same stage, and keeps others waiting until it is left."""


def no_turn() -> AbstractContextManager[Rest]:
    """Alone on the stage, and in a hurry."""
    return nullcontext(lambda seconds: None)


class StageTarget(Source, Protocol):
    """The hidden side of a target. Nothing here changes what readers see."""

    def open_stage(self, stage: Stage, scope: Predicate | None = EVERYTHING) -> None:
        """Create the stage at its base, able to hold writes in that scope. Does nothing when it is there already.

        Without a scope it may lack every row of the base: enough for appends.
        """

    def write(self, stage: Stage, write: StageWrite, rows: DataFrame, turn: Turn = no_turn) -> StageCommit:
        """Replace the write's predicate on the stage by the rows, also when there are none; or add them to what is
        there, or merge them into it by key, as the write's mode says.

        Repeating it is harmless. What would disturb other commits on the stage is done inside `turn()`.
        """

    def carry(self, stage: Stage, carry: Carry) -> None:
        """Put another stage's files in place of those that this one has there, in one commit without data.

        Its history then has the commits that are carried. Repeating it is harmless.
        """

    def history(self, stage: Stage) -> tuple[StageCommit, ...]:
        """The stage's commits, oldest first, read from the table itself. Empty when there is no stage."""

    def read_files(self, version: str | None, paths: frozenset[str], near: Predicate) -> DataFrame:
        """Every row of exactly these files of a version; most of them match `near`."""

    def net_change(self, stage: Stage, staged: str, scope: Predicate) -> NetChange:
        """All commits of the stage up to `staged` folded into files added to and removed from the base."""


class Target(StageTarget, Protocol):
    """The visible side of a target: one-commit changes, and how to learn whether one landed."""

    def findings(self, files: FileList, undo_window: timedelta) -> list[Finding]:
        """What this format makes impossible or risky for the table as it is, each with the remedy."""

    def movement(self, base: str | None, scope: Predicate) -> Movement:
        """How the scope's files changed between the base and the head of the live table."""

    def missing(self, paths: frozenset[str]) -> frozenset[str]:
        """Those of the files that storage no longer has."""

    def commit(self, change: Change) -> str:
        """Land the change or raise: Conflict when it certainly did not land, OutcomeUnknown when nobody can say."""

    def probe(self, fence: str) -> str | None:
        """The version that a commit with this fence produced, or None when it did not land."""

    def changed(self, version: str) -> tuple[frozenset[str], frozenset[str]]:
        """Files that the commit of that version of the live table added and removed."""

    def rewritten(self, version: str) -> Rewrite | None:
        """The files of a commit that had to write rows instead of swapping exact files; None for one that swapped."""

    def forget(self, forget: Forget) -> int:
        """Drop refs, forget versions, delete files that only those reached; the number of files deleted. Repeatable."""

    def sweep(self) -> int:
        """Delete what forgotten stages left because the table needed it, and no longer does; how many files."""


class Engine(Protocol):
    """What the flow asks of Spark about rows it does not look into itself."""

    def analyse(self, rows: DataFrame) -> Analysis:
        """Read the analysed plan; runs no job."""

    def conform(
        self, rows: DataFrame, columns: tuple[Column, ...], without_empty_texts: frozenset[str] = frozenset()
    ) -> DataFrame:
        """The rows in the table's column order and types, as it will store them; only widening casts.

        Raises Refused on any other difference.
        """

    def stamp(self, rows: DataFrame, values: Mapping[str, str]) -> DataFrame:
        """The rows with these constant columns added."""

    def sifted(self, rows: DataFrame, columns: frozenset[str], topics: frozenset[str]) -> Sifted:
        """Rows that are not rejected, without the columns that tell it unless the table has them; and the records of
        the others, which should be of these topics.
        """

    def refuse_strangers(self, rejected: DataFrame, topics: frozenset[str]) -> None:
        """Raises ChunkFailed when a rejected record is of none of these topics."""

    def newest(self, rows: DataFrame, key: tuple[str, ...], version: str) -> DataFrame:
        """Of the rows with one key the one with the greatest version."""

    def within(self, rows: DataFrame, keep: Predicate, spare: Predicate) -> DataFrame:
        """Rows that match `keep`.

        Rows that match only `spare` are cut; any other row makes the job fail and names itself.
        """

    def observed(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], Digest | None]]:
        """The rows, and after they were written their digest; None when it could not be had."""

    def digests(self, rows: DataFrame, parts: Mapping[str, Predicate]) -> dict[str, Digest]:
        """Rows and digest of each part, in one job.

        A row belongs to the first part that it matches; an empty part has the empty digest.
        """

    def key_problems(self, rows: DataFrame, key: tuple[str, ...]) -> tuple[int, int, str]:
        """Rows with a null in the key, keys that occur more than once, and one example."""

    def shared_keys(self, left: DataFrame, right: DataFrame, key: tuple[str, ...]) -> list[str]:
        """A few keys that both sides have."""

    def changed_keys(self, before: DataFrame, after: DataFrame, key: tuple[str, ...], version: str) -> DataFrame:
        """Keys that only one side has, or that have another version there. Runs no job."""

    def missing_keys(self, left: DataFrame, right: DataFrame, key: tuple[str, ...]) -> tuple[int, list[str]]:
        """How many rows of the left side have a key that the right side lacks, and a few of those keys."""


class RunReader(Protocol):
    """Reads the store. Works without Spark and without user code."""

    def run(self, run_id: str) -> Run:
        """Raises UnknownName; a unique prefix of a run id is enough."""

    def runs(self, *, dataset: str | None = None, open_only: bool = False, limit: int = 50) -> list[Run]:
        """Newest first."""

    def manifest(self, run_id: str) -> Manifest: ...

    def chunks(self, run_id: str) -> list[Chunk]: ...

    def events(self, run_id: str, after: int = 0) -> list[Event]: ...

    def verdict(self, run_id: str) -> Verdict | None:
        """The newest verdict of the run."""

    def publications(self, run_id: str) -> list[Publication]: ...

    def stage_records(self, run_id: str) -> list[StageRecord]: ...

    def holder(self, lease: str) -> Lease | None:
        """Who holds the lease now; None when nobody does."""

    def workers(self, run_id: str) -> list[Lease]:
        """Leases of the workers that take part in the run now."""


class RunStore(RunReader, Protocol):
    """Writes runs.

    Every change of state is a compare-and-set on state and revision, with its event, in one transaction.
    """

    def create(self, manifest: Manifest) -> Run:
        """Record a planned run with its chunks. The same manifest again returns the run that is there."""

    def transition(self, run: Run, to: RunState, *, detail: str = "", token: int | None = None, **data: Any) -> Run:
        """Raises StateConflict when the table of states forbids it, someone was faster, or the lease token is stale."""

    def record(self, run_id: str, name: str, **data: Any) -> None:
        """Append an event that changes no state."""

    def save_verdict(self, verdict: Verdict) -> None: ...

    def save_publication(self, publication: Publication) -> None:
        """Insert, or replace the one with the same run and generation."""

    def mark_superseded(self, run_id: str, by: str | None) -> None:
        """Record which run took this one's place, or None when that was undone."""


class ChunkLedger(Protocol):
    """Claims and outcomes of chunks."""

    def claim(self, run_id: str, lease: Lease, limit: int) -> list[Chunk]:
        """Up to `limit` neighbouring pending chunks, set running under a fresh fencing token.

        Empty when none is pending.
        """

    def release_lost(self, run_id: str) -> int:
        """Put chunks whose claimant's lease has ended back to pending; how many are pending or running after that."""

    def staged(self, record: StageRecord, rows: dict[str, int], lease: Lease) -> None:
        """Record the outcome of one commit, all its chunks at once. Raises StateConflict when the token is stale."""

    def failed(self, run_id: str, chunk_ids: Sequence[str], error: str, lease: Lease) -> None: ...

    def reset(self, run_id: str, chunk_ids: Sequence[str], lease: Lease) -> None:
        """Back to pending: after a retry was asked for, or when the stage does not hold what the ledger says."""


class EffectLog(Protocol):
    """Intent before each side effect, outcome after."""

    def begin(self, run_id: str, name: str, key: str, **data: Any) -> Effect: ...

    def end(self, effect: Effect, state: EffectState, **data: Any) -> None: ...

    def open(self, run_id: str) -> list[Effect]:
        """Effects whose outcome was never recorded, oldest first."""


class Leases(Protocol):
    """Leases by the store's clock."""

    def acquire(self, name: str, holder: Holder, seconds: float) -> Lease:
        """Raises LeaseHeld (attribute `lease`) while someone else's has not ended."""

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Raises LeaseHeld when it was lost."""

    def release(self, lease: Lease) -> None: ...

    def take_over(self, lost: Lease, holder: Holder, seconds: float) -> Lease:
        """Take a lease whose holder is known to be dead, if it is still that same lease."""


class Store(Protocol):
    """The four parts of one database."""

    runs: RunStore
    chunks: ChunkLedger
    effects: EffectLog
    leases: Leases
