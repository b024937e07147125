"""What the control plane needs of the project it works for. `backcast.project.wiring` answers; steps get its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.archiving import ToArchive
    from backcast.model.log import Ranges
    from backcast.model.manifest import CodeIdentity
    from backcast.model.pipeline import Dataset, InputSpec, Job, PipelineSpec
    from backcast.model.quarantine import QuarantinedRecord
    from backcast.model.report import Probe
    from backcast.model.run import Holder
    from backcast.model.topic_report import TopicOffsets, WindowSurvey
    from backcast.ports import Clock, Engine, Input, RunReader, Store, Target


class Transform(Protocol):
    """User code, loaded: a Python function or a SQL file."""

    @property
    def reference(self) -> str:
        """`module:function`, or the path of the SQL file relative to the project."""

    @property
    def version(self) -> str: ...

    def apply(self, inputs: Mapping[str, DataFrame], job: Job) -> DataFrame:
        """The transform's result. Raises ChunkFailed when user code raises or returns something else."""


class World(Protocol):
    """Configuration, user code, store, tables and this process. Everything is opened on first use.

    `dataset`, `pipeline`, `store`, `reader` and `clock` need neither Spark nor user code. Raises UnknownName for names
    that are not declared.
    """

    @property
    def clock(self) -> Clock: ...

    def dataset(self, name: str) -> Dataset: ...

    def pipeline(self, name: str) -> PipelineSpec: ...

    def store(self) -> Store: ...

    def reader(self) -> RunReader: ...

    def transform(self, pipeline: str) -> Transform:
        """Loads user code. Raises InvalidRequest when that fails."""

    def identity(self, pipeline: str) -> CodeIdentity:
        """Loads user code, then names every project file it pulled in."""

    def spark(self) -> SparkSession: ...

    def engine(self) -> Engine: ...

    def input(self, spec: InputSpec) -> Input: ...

    def target(self, dataset: str) -> Target: ...

    def result_settings(self) -> dict[str, str]:
        """The Spark settings that change results, as the session has them."""

    def memory(self) -> int:
        """Bytes of memory that a Spark job's tasks share, as far as the session's settings tell."""

    def holder(self) -> Holder:
        """This process, and its JVM once Spark is up."""

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

    def to_archive(self, name: str, offsets: str | None, until: str | None) -> ToArchive:
        """What the log of a declared topic has and its archive lacks; the archive is made when it is not there.

        Only these offsets, or only records from before that moment, where they are given.
        """

    def close(self) -> None:
        """Close the store and stop Spark, if this world started them. Using it again opens them again."""
