"""The frozen plan. What was previewed is what runs; a manifest never changes."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from backcast.model.document import Document, later, sha256
from backcast.model.finding import Finding
from backcast.model.log import LogPin
from backcast.model.need import ApprovalNeed, Budget
from backcast.model.replay import ReplayPin
from backcast.model.request import Request
from backcast.model.rule import NO_GATES, Gates, Rule, RuleKind
from backcast.model.scope import Predicate, Scope
from backcast.model.states import Execution
from backcast.model.table import Column, Merging, PublishMode, TableIdentity
from backcast.model.throttle import Throttle
from backcast.model.time import Interval


class Survival(StrEnum):
    """Whether a pinned input will still be there when the run reads it."""

    OK = "OK"
    AT_RISK = "AT RISK"
    GONE = "GONE"
    UNKNOWN = "UNKNOWN"
    PARTIAL = "PARTIAL"
    """Some of it is gone already."""
    UNBOUNDED = "UNBOUNDED"
    """Nothing removes it on its own."""


class Semantics(StrEnum):
    """What the version of an input is meant to be, where it is not the same at all times."""

    CURRENT = "current"
    """What is accepted now."""
    AS_RECORDED = "as-recorded"
    """What was known then."""
    CORRECTED = "corrected"
    """What should have been known then."""
    AS_DECIDED = "as-decided"
    """What a decision of that time was made with."""


class RowCount(Document):
    """How many rows there are, as far as the metadata of files tells: some of them may lie in files that are cut."""

    least: int
    most: int


class InputPin(Document):
    """One input at one version, and the part of it that the run reads."""

    name: str
    dataset: str
    identity: TableIdentity
    version: str | None
    windowed: bool
    """False: read whole, whatever the window (reference data)."""
    survival: Survival
    survives_until: datetime | None
    files: int
    rows: int
    bytes: int
    read: Annotated[dict[str, RowCount], later({})] = Field(default_factory=dict)
    """Of a table that is read by window: how much of it each chunk reads, by its id, warm-up included."""
    asked: Annotated[str, later("")] = ""
    """Which version, in words, where the pipeline says so; empty: the newest when it was planned."""
    semantics: Annotated[Semantics | None, later(None)] = None
    """None: the pipeline does not say."""
    log: Annotated[LogPin | None, later(None)] = None
    """For a topic: the literal offsets that are read."""


class TargetPin(Document):
    """The table to change, its base version and the files of the scope there."""

    dataset: str
    identity: TableIdentity
    base: str | None
    files: int
    rows: int
    bytes: int
    files_digest: str


class CodeIdentity(Document):
    """Which code computes the result. Any difference is drift."""

    transform: str
    """`module:function` or the path of a SQL file, relative to the project."""
    version: str
    files: dict[str, str]
    """Project files that the transform loads, relative to the project, with their SHA-256."""
    packages: dict[str, str]
    """Installed distributions with their versions."""
    config: str
    """SHA-256 of the resolved pipeline, datasets and sources it uses."""
    git_commit: str | None
    git_dirty: tuple[str, ...]
    """Files of the project that differ from the commit."""


class ChunkPlan(Document):
    """A whole number of partitions, or a row-exact part of one: the unit of retry, outcome and progress."""

    id: str
    """Its first moment in the dataset's zone: `2025-01-31`, `2025-01`, `2025-01-31T05`."""
    window: Interval
    predicate: Predicate


class LivePolicy(StrEnum):
    """What happens at publish when live rows arrived in scope since the base."""

    FAIL = "fail"
    KEEP = "keep"
    RESTAGE = "restage"
    FREEZE = "freeze"
    """Streams that are run here wait while the run computes and publishes; rows of anyone else make it fail."""


class OnFailure(StrEnum):
    """What becomes of a stage that validation rejects."""

    HALT = "halt"
    DISCARD = "discard"


class Settings(Document):
    """How the run behaves; part of what is approved."""

    publish_mode: PublishMode = PublishMode.REPLACE
    live_policy: LivePolicy = LivePolicy.FAIL
    undo_window_seconds: int = 7 * 86_400
    chunks_per_job: int | None = None
    """None only before planning: the plan decides by size."""
    key: tuple[str, ...] = ()
    version: Annotated[str | None, later(None)] = None
    """For a merge: the column by which one of two rows with the same key is newer."""
    deletes: Annotated[str | None, later(None)] = None
    """For a merge: the boolean column of the transform's result that takes a row away."""
    allow_nondeterministic: tuple[str, ...] = ()
    lineage_columns: bool = False
    rows_together: Annotated[bool, later(False)] = False
    """The inputs' files lie in one partition of the output each: rows need not be shuffled before they are written."""
    on_failure: Annotated[OnFailure, later(OnFailure.HALT)] = OnFailure.HALT
    recompute: Annotated[int, later(0)] = 0
    """How many chunks validation computes a second time, to see whether the same rows come out."""
    watch_seconds: Annotated[int, later(0)] = 0
    """How long after a publish the table is looked at again."""
    rules: Annotated[tuple[Rule, ...], later(())] = ()
    gates: Annotated[Gates, later(NO_GATES)] = NO_GATES
    masked: Annotated[tuple[str, ...], later(())] = ()
    """Columns whose values are never shown."""
    throttle: Annotated[Throttle | None, later(None)] = None
    """None: jobs follow each other at once."""
    exact_types: Annotated[bool, later(False)] = False
    """The transform must return the table's own types; not even a narrower one is widened."""
    spark: dict[str, str] = Field(default_factory=dict)
    """Spark settings that change results."""

    def result_columns(self, columns: tuple[Column, ...]) -> tuple[Column, ...]:
        """What a transform must return for a table with these columns."""
        deletes = () if self.deletes is None else (Column(name=self.deletes, type="boolean", nullable=True),)
        return columns + deletes

    def at_any_time(self) -> Settings:
        """For a run for which a stream stands."""
        return self.model_copy(update={"throttle": self.throttle and self.throttle.at_any_time()})

    @property
    def merging(self) -> Merging | None:
        """How rows meet those with the same key; None unless the stage is merged."""
        if self.publish_mode is not PublishMode.MERGE or self.version is None:
            return None
        return Merging(self.key, self.version, self.deletes, self.masked)


class Estimate(Document):
    """What the run will read, write and take. `basis` says where the time comes from."""

    input_rows: int
    input_bytes: int
    output_rows: int
    seconds_low: int
    seconds_high: int
    basis: str
    output_bytes: Annotated[int | None, later(None)] = None
    rows_low: Annotated[int | None, later(None)] = None
    rows_high: Annotated[int | None, later(None)] = None
    """How far earlier runs of the pipeline were from their estimates; None while no run tells."""
    cost_low: Annotated[float | None, later(None)] = None
    cost_high: Annotated[float | None, later(None)] = None
    currency: Annotated[str, later("")] = ""
    band: Annotated[str, later("")] = ""
    """Where the width of the ranges comes from."""


class Manifest(Document):
    """Everything a run may depend on. Its SHA-256 is what an approval is bound to."""

    format: Literal[1] = 1
    request: Request
    pipeline: str
    code: CodeIdentity
    inputs: tuple[InputPin, ...]
    target: TargetPin
    scope: Scope
    input_windows: tuple[Interval, ...]
    warm_up_before_seconds: int
    warm_up_after_seconds: int
    chunks: tuple[ChunkPlan, ...]
    settings: Settings
    estimate: Estimate
    findings: tuple[Finding, ...]
    planned_at: datetime
    approval: Annotated[ApprovalNeed | None, later(None)] = None
    """None: the project has no policy, and nobody is asked."""
    budget: Annotated[Budget | None, later(None)] = None
    replay: Annotated[ReplayPin | None, later(None)] = None
    """None: no stream was named."""

    @property
    def streamed(self) -> ReplayPin | None:
        """The replay whose query computes the rows; None when batch jobs do."""
        return self.replay if self.replay is not None and self.replay.streamed else None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Those that can be judged: see `uncountable`."""
        left_out = uncountable(self.settings, self.scope, self.replay)
        return tuple(rule for rule in self.settings.rules if rule not in left_out)

    @property
    def execution(self) -> Execution:
        """What transforms and rules are told, and what the rows say."""
        return Execution.BACKFILL if self.streamed is None else Execution.REPLAY

    def sha256(self) -> str:
        return sha256(self.canonical())

    def run_id(self) -> str:
        return f"{self.pipeline}-{self.planned_at:%Y%m%d}-{self.sha256()[:6]}"


def uncountable(settings: Settings, scope: Scope, replay: ReplayPin | None) -> tuple[Rule, ...]:
    """Rules that hold the scope's rows against an input's, where the input's are not those of the scope: they are of
    all values, or a streaming query reads them, and no batch does.
    """
    if not scope.is_part and (replay is None or not replay.streamed):
        return ()
    return tuple(rule for rule in settings.rules if rule.kind is RuleKind.ROWS)
