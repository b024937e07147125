"""What the control plane needs of the project it works for. `backcast.project.wiring` answers; steps get its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.approval import Person
    from backcast.model.archiving import ToArchive
    from backcast.model.diff import DiffRules
    from backcast.model.full_replay import Days
    from backcast.model.lag import StreamLag
    from backcast.model.late import Closing, LateFound, OpenWindows
    from backcast.model.log import EventSpan, Ranges, TopicFacts
    from backcast.model.manifest import CodeIdentity, InputPin, Manifest
    from backcast.model.pipeline import Dataset, InputSpec, Job, PipelineSpec, Relation
    from backcast.model.policy import Policy
    from backcast.model.quarantine import QuarantinedRecord
    from backcast.model.replay import Difference, Replayed, ReplayPin
    from backcast.model.report import Probe
    from backcast.model.run import Holder
    from backcast.model.scope import Predicate
    from backcast.model.source import LogSource
    from backcast.model.stream import StreamSpec
    from backcast.model.throttle import Behind
    from backcast.model.time import Interval
    from backcast.model.topic_report import TopicOffsets, WindowSurvey
    from backcast.ports import Clock, Engine, Input, RunReader, Source, Store, Target
    from backcast.ports.comparing import Comparer
    from backcast.ports.pace import Pace
    from backcast.ports.rules import RuleCode, RuleEngine
    from backcast.ports.streams import LiveQuery, LiveTarget, StreamReader


class Transform(Protocol):
    """User code, loaded: a Python function or a SQL file."""

    @property
    def reference(self) -> str:
        """`module:function`, or the path of the SQL file relative to the project."""

    @property
    def version(self) -> str: ...

    def apply(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        """The transform's result. Raises ChunkFailed when user code raises or returns something else."""


class ReplayedTransform(Transform, Protocol):
    """A transform whose rows the replay computes, once for all jobs of a run."""

    def told(self) -> Replayed | None:
        """What the replay did; None while it has not come to its end."""


class CatchingUp(Protocol):
    """The query of a full replay, which goes on as the stream."""

    @property
    def batch(self) -> int | None:
        """The newest that is over."""

    def query_id(self) -> str | None: ...

    def begin(self, query_id: str, starts: Mapping[int, int]) -> None:
        """Also writes down at which versions it reads the tables beside the topic, from first to last."""

    def stateful(self) -> bool:
        """Whether it keeps state between its batches. Runs no job."""

    def advance(self, ends: Mapping[int, int], *, as_one: bool = False) -> None:
        """Read up to exactly these offsets, and write the windows that this closes; as one batch: not yet."""

    def rest(self) -> None:
        """As its pace asks for, once a slice is over."""

    def ends(self) -> dict[int, int]:
        """The next offset of each partition."""

    def starts(self) -> dict[int, int]:
        """Where it began."""

    @property
    def watermark(self) -> datetime | None:
        """Up to where its windows are closed; None for a query that keeps no state."""


class Replaying(Protocol):
    """A declared stream, as a run can replay it."""

    @property
    def stream(self) -> StreamSpec: ...

    def differences(self, job: Job) -> tuple[Difference, ...]:
        """What makes its logic give other rows than a batch. Runs no job."""

    def in_order(self, job: Job) -> tuple[str, ...]:
        """What makes its rows depend on the order in which records come, a sentence each. Runs no job."""

    def partitions(self) -> int:
        """Of its topic, as it is now."""

    def closing(self, window: Interval, now: datetime) -> Closing | None:
        """From when on the live query drops a record as late; None: it never does. Runs no job."""

    def open_windows(self, now: datetime) -> OpenWindows | None:
        """What the live query has read and will write later, by its checkpoint. Runs no job.

        None for one that writes each row in the batch that makes it, and for one that has completed no batch.
        """

    def late(self, windows: Sequence[Interval], now: datetime) -> LateFound:
        """Which pieces of these windows records touch that the live query dropped. Reads them from the topic.

        Raises InvalidRequest when its checkpoint cannot tell.
        """

    def pin(self, before: datetime) -> ReplayPin:
        """From which state of the live query: the newest that holds nothing from that moment on."""

    def input(self, pin: ReplayPin) -> Input:
        """Its topic, to be pinned from there and proven."""

    def table(self, pin: ReplayPin, spec: InputSpec) -> Input:
        """Another input of a full replay, at the version that its query has read."""

    def records(self, replay: ReplayPin, pin: InputPin) -> DataFrame:
        """What the query of a replay gets of the topic."""

    def own_checkpoint(self, run_id: str, replay: ReplayPin) -> Path:
        """Of the query of a run's replay; gone once the run is over."""

    def planning(self) -> Transform:
        """The transform over the stream, to be looked at."""

    def transform(
        self, run_id: str, manifest: Manifest, inputs: tuple[InputPin, ...], pace: Pace | None = None
    ) -> ReplayedTransform:
        """The transform of a run that replays it, at that pace."""

    def caught_up(self) -> ReplayPin:
        """What the query of a full replay has computed by now, for a plan."""

    @property
    def full(self) -> FullReplaying:
        """The same stream, for a replay that takes its place."""


class FullReplaying(Protocol):
    """A declared stream, as a full replay takes its place."""

    @property
    def folder(self) -> Path:
        """Where a full replay keeps its query and what that has computed."""

    def refuse_unshared(self) -> None:
        """Raises Refused where executors of a cluster might not write to that folder. Needs no Spark."""

    def catch_up(self, pace: Pace | None = None) -> CatchingUp:
        """The query of a full replay; it reads at that pace."""

    def first_day(self, offsets: Mapping[int, int], start: str | None) -> str | None:
        """From where on the table can be replaced by who reads from these offsets on; None: all of it. Needs no Spark.

        Raises Refused when rows from `start` on need records before them.
        """

    def first_offsets(self, since: datetime | None) -> dict[int, int]:
        """Where a full replay begins. Raises Refused when the log does not go back so far."""

    def refuse_other_log(self, topic_id: str, starts: Mapping[int, int]) -> None:
        """Raises Refused when the topic is another one, or retention took what the query began with."""

    def reach(self, batch: int) -> tuple[Days, Days]:
        """The days that the table has rows of, and those of the query up to the batch."""

    def forget(self) -> None:
        """Throw away what a full replay left."""


class World(Protocol):
    """Configuration, user code, store, tables and this process. Everything is opened on first use.

    `dataset`, `pipeline`, `stream`, `policy`, `person`, `store`, `reader` and `clock` need neither Spark nor user
    code. Raises UnknownName for names that are not declared.
    """

    @property
    def clock(self) -> Clock: ...

    def dataset(self, name: str) -> Dataset: ...

    def pipeline(self, name: str) -> PipelineSpec: ...

    def stream(self, name: str) -> StreamSpec: ...

    def streams(self) -> tuple[str, ...]:
        """Names of the declared streams."""

    def stream_reader(self) -> StreamReader:
        """What is on record about streams. Makes no store, and needs neither Spark nor user code."""

    def live_query(self, stream: StreamSpec) -> LiveQuery:
        """A declared stream, ready to run. Loads user code and starts Spark; touches nothing."""

    def live_target(self, stream: StreamSpec) -> LiveTarget:
        """The table of a declared stream, as the stream's own process sees it. Starts Spark; loads no user code."""

    def policy(self) -> Policy | None:
        """Who must agree to a run, as the project says now; None when it does not say."""

    def person(self) -> Person:
        """Who is at the keyboard, and which roles the policy gives to that person."""

    def free_space(self, dataset: str) -> tuple[int | None, int | None]:
        """Free bytes where the dataset's table lies, and where Spark keeps what does not fit into memory.

        None for what is no disk of this machine.
        """

    def pipelines_to(self, dataset: str) -> tuple[str, ...]:
        """Names of the pipelines whose output the dataset is."""

    def store(self) -> Store: ...

    def reader(self) -> RunReader: ...

    def transform(self, pipeline: str) -> Transform:
        """Loads user code. Raises InvalidRequest when that fails."""

    def identity(self, pipeline: str) -> CodeIdentity:
        """Loads user code, then names every project file it pulled in."""

    def spark(self) -> SparkSession: ...

    def engine(self) -> Engine: ...

    def rules(self) -> RuleEngine: ...

    def rule_code(self, pipeline: str) -> RuleCode:
        """Loads what the pipeline's rules refer to. Raises InvalidRequest when that fails."""

    def comparer(self) -> Comparer: ...

    def diff_rules(self, dataset: str) -> DiffRules:
        """How rows of a declared table are compared. Needs no Spark."""

    def relation(self, name: str) -> Relation:
        """A declared table, with or without a time column. Needs no Spark."""

    def version(self, dataset: str, text: str) -> str | None:
        """The version that a person means: its number, a tag, a branch, or a moment. Raises UnknownName."""

    def rows_at(self, dataset: str, version: str | None, predicate: Predicate) -> DataFrame:
        """The matching rows of a version with the columns that the table had then."""

    def source(self, dataset: str) -> Source:
        """A declared table to be read, at any of its versions."""

    def replaying(self, stream: str) -> Replaying:
        """A declared stream whose result a run computes anew."""

    def forget_replay(self, run_id: str) -> None:
        """Remove what the run's replay has computed; no matter if it has nothing."""

    def input(self, spec: InputSpec) -> Input: ...

    def target(self, dataset: str) -> Target: ...

    def result_settings(self) -> dict[str, str]:
        """The Spark settings that change results, as the session has them."""

    def memory(self) -> int:
        """Bytes of memory that a Spark job's tasks share, as far as the session's settings tell."""

    def holder(self) -> Holder:
        """This process, and its JVM once Spark is up."""

    def alive(self, holder: Holder) -> bool:
        """Whether that process may still be there. Only looks, unlike `ended`."""

    def ended(self, holder: Holder) -> bool:
        """True when that process is known to be gone; a JVM that outlived it is ended first. False while it may act."""

    def quarantined_records(self, run_id: str, sources: list[str], limit: int) -> list[QuarantinedRecord]:
        """The first records of these sources that the run set aside."""

    def quarantined_offsets(self, run_id: str, sources: list[str]) -> dict[str, Ranges]:
        """Where in the topic of each source the records lie that the run set aside: any number of ranges of each
        partition.
        """

    def doctor(self) -> list[Probe]:
        """What works, what does not, what to do."""

    def kafka_offsets(self, name: str, at: str) -> TopicOffsets:
        """Where a moment, as people write it, lies in a declared topic. Needs no Spark."""

    def kafka_window(self, name: str, event_time: str, *, to_end: bool) -> WindowSurvey:
        """Which offsets of a declared topic hold a window of event time, `FROM..TO`."""

    def topic(self, source: LogSource) -> TopicFacts:
        """As the brokers have it now. Needs no Spark."""

    def records_in(self, source: LogSource, ranges: Ranges) -> list[bool | None]:
        """Whether the log has records at these offsets; None where retention took some. Needs no Spark."""

    def event_span(self, source: LogSource) -> EventSpan | None:
        """The event times that the log has; None when it has no record."""

    def stream_lag(self, name: str, topic: str | None) -> StreamLag:
        """How far a declared stream, or with a topic the stream of any checkpoint, is behind. Needs no Spark."""

    def behind(self, stream: StreamSpec, read: Mapping[int, int] | None) -> Behind:
        """How much of its topic, as the brokers have it now, lies behind these offsets; None: behind those that its
        checkpoint has committed. Needs no Spark.

        Raises InvalidRequest for a checkpoint that nobody here can read, Unavailable when no broker answers.
        """

    def to_archive(self, name: str, offsets: str | None, until: str | None) -> ToArchive:
        """What the log of a declared topic has and its archive lacks; the archive is made when it is not there.

        Only these offsets, or only records from before that moment, where they are given.
        """

    def close(self) -> None:
        """Close the store and stop Spark, if this world started them. Using it again opens them again."""
