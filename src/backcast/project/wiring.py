"""Ports wired to adapters for one project. The only place that knows all of them."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.model.pipeline import TableFormat
from backcast.model.run import Holder
from backcast.model.source import LogSource
from backcast.project.account import account
from backcast.project.clock import SystemClock
from backcast.project.config import Project, load_project
from backcast.project.host import host_identity, rebooted_since
from backcast.project.topic_questions import TopicQuestions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.approval import Person
    from backcast.model.archiving import ToArchive
    from backcast.model.diff import DiffRules
    from backcast.model.log import Ranges
    from backcast.model.manifest import CodeIdentity
    from backcast.model.pipeline import Dataset, InputSpec, PipelineSpec, Relation
    from backcast.model.policy import Policy
    from backcast.model.quarantine import QuarantinedRecord
    from backcast.model.report import Probe
    from backcast.model.scope import Predicate
    from backcast.model.stream import StreamSpec
    from backcast.ports import Clock, Engine, Input, RunReader, Source, Target
    from backcast.ports.comparing import Comparer
    from backcast.ports.rules import RuleEngine
    from backcast.ports.streams import LiveQuery, LiveTarget, StreamReader
    from backcast.project.loading import LoadedTransform
    from backcast.project.replaying import StreamReplay
    from backcast.project.rule_code import LoadedRules
    from backcast.sources.kafka.input import KafkaInput
    from backcast.store.sql import SqlStore


class Wiring(TopicQuestions):
    """The `World` of one project. Opens store, user code and Spark on first use, never earlier."""

    def __init__(self, project: Project, clock: Clock | None = None, log_file: Path | None = None) -> None:
        self.project = project
        self.clock: Clock = clock or SystemClock()
        self._log_file = log_file
        self._store: SqlStore | None = None
        self._reader: SqlStore | None = None
        self._spark: SparkSession | None = None
        self._started_spark = False
        self._transforms: dict[str, LoadedTransform] = {}
        self._rules: dict[str, LoadedRules] = {}

    def dataset(self, name: str) -> Dataset:
        return self.project.dataset(name)

    def pipeline(self, name: str) -> PipelineSpec:
        return self.project.pipeline(name)

    def stream(self, name: str) -> StreamSpec:
        return self.project.stream(name)

    def streams(self) -> tuple[str, ...]:
        return tuple(self.project.config.streams)

    def stream_reader(self) -> StreamReader:
        """The store for looking only, as `reader` has it."""
        from backcast.project.no_runs import NoStreams

        self.reader()
        store = self._store or self._reader
        return NoStreams() if store is None else store.streams

    def live_target(self, stream: StreamSpec) -> LiveTarget:
        from backcast.project.streaming import live_target

        return live_target(stream)(self.spark(), stream.dataset.table)

    def live_query(self, stream: StreamSpec) -> LiveQuery:
        from backcast.project.streaming import live_query

        return live_query(self, stream)

    def policy(self) -> Policy | None:
        """As the file is now: who changes it need not start anything anew."""
        from backcast.project.policy import load_policy

        return load_policy(self.project)

    def person(self) -> Person:
        from backcast.project.people import whoami

        return whoami(self.policy(), os.environ)

    def free_space(self, dataset: str) -> tuple[int | None, int | None]:
        from backcast.project.space import free_space

        return free_space(self.project, dataset)

    def pipelines_to(self, dataset: str) -> tuple[str, ...]:
        from backcast.project.archives import archived_source

        if archived_source(self.project, dataset) is not None:
            return (dataset,)
        return tuple(name for name, each in self.project.config.pipelines.items() if each.output == dataset)

    def store(self) -> SqlStore:
        """The store, made when it is not there yet."""
        from backcast.project.store_address import store_url
        from backcast.store import open_store

        if self._store is None:
            self._store = open_store(store_url(self.project), account=account())
        return self._store

    def reader(self) -> RunReader:
        """The store for looking only; one that knows no run when there is none yet. Makes nothing."""
        from backcast.project.no_runs import NoRuns
        from backcast.project.store_address import store_url
        from backcast.store import find_store

        if self._store is not None:
            return self._store.runs
        if self._reader is None:
            self._reader = find_store(store_url(self.project))
        return NoRuns() if self._reader is None else self._reader.runs

    def transform(self, pipeline: str) -> LoadedTransform:
        """The pipeline's transform, imported anew whenever one of its files changed since."""
        from backcast.project.loading import load_transform
        from backcast.project.modules import unchanged

        loaded = self._transforms.get(pipeline)
        if loaded is None or not unchanged(self.project.root, loaded.files):
            loaded = self._transforms[pipeline] = load_transform(self.project, pipeline)
        return loaded

    def identity(self, pipeline: str) -> CodeIdentity:
        from backcast.project.identity import code_identity

        return code_identity(self.project, self.transform(pipeline), self.rule_code(pipeline).files)

    def rule_code(self, pipeline: str) -> LoadedRules:
        """The code of the pipeline's rules, loaded anew whenever one of its files changed since."""
        from backcast.project.modules import unchanged
        from backcast.project.rule_code import load_rules

        loaded = self._rules.get(pipeline)
        if loaded is None or not unchanged(self.project.root, loaded.files):
            loaded = self._rules[pipeline] = load_rules(self.project, pipeline)
        return loaded

    def rules(self) -> RuleEngine:
        from backcast.spark.rules import SparkRules

        return SparkRules()

    def spark(self) -> SparkSession:
        """The active session when it suits the project, else one of our own."""
        from backcast.project.session import make_folders, session_settings
        from backcast.spark.session import active_session, open_session

        if self._spark is None:
            settings = replace(session_settings(self.project), log_file=self._log_file)
            make_folders(settings)
            self._started_spark = active_session() is None
            self._spark = open_session(settings)
        return self._spark

    def relation(self, name: str) -> Relation:
        return self.project.relation(name)

    def comparer(self) -> Comparer:
        from backcast.spark.diff import SparkComparer

        return SparkComparer()

    def diff_rules(self, dataset: str) -> DiffRules:
        return self.project.diff_rules(dataset)

    def version(self, dataset: str, text: str) -> str | None:
        from backcast.spark.delta.named import delta_version
        from backcast.spark.iceberg.named import iceberg_version

        relation = self.project.relation(dataset)
        find = delta_version if relation.format is TableFormat.DELTA else iceberg_version
        return find(self.spark(), relation.table, text)

    def rows_at(self, dataset: str, version: str | None, predicate: Predicate) -> DataFrame:
        from backcast.spark.iceberg.named import rows_at

        relation = self.project.relation(dataset)
        if relation.format is TableFormat.DELTA:
            return self.source(dataset).read(version, predicate)
        return rows_at(self.spark(), relation.table, version, predicate)

    def source(self, dataset: str) -> Source:
        """A declared table to be read, at any of its versions."""
        from backcast.spark.delta.reader import DeltaReader
        from backcast.spark.iceberg.reader import IcebergReader

        relation = self.project.relation(dataset)
        kind = DeltaReader if relation.format is TableFormat.DELTA else IcebergReader
        return kind(self.spark(), relation.table)

    def replaying(self, stream: str) -> StreamReplay:
        from backcast.project.replaying import StreamReplay

        return StreamReplay(self, self.stream(stream))

    def forget_replay(self, run_id: str) -> None:
        from backcast.project.replaying import replay_folder

        shutil.rmtree(replay_folder(self.project, run_id), ignore_errors=True)

    def input(self, spec: InputSpec) -> Input:
        from backcast.sources.tables import TableInput

        if isinstance(spec.dataset, LogSource):
            return self.log_input(spec.name, spec.dataset)
        return TableInput(spec, self.source(spec.dataset.name))

    def log_input(self, name: str, source: LogSource) -> KafkaInput:
        """A declared topic, as an input of that name."""
        from backcast.project.archiving import recorded_proofs
        from backcast.sources.kafka.input import KafkaInput

        recorded = partial(recorded_proofs, self.reader(), source)
        return KafkaInput(name, source, self.project.kafka_access(source.name), self.spark(), recorded)

    def target(self, dataset: str) -> Target:
        from backcast.spark.gateway import jvm_errors
        from backcast.spark.session import refuse_dangers
        from backcast.targets.delta.target import DeltaTarget
        from backcast.targets.iceberg.target import IcebergTarget

        with jvm_errors("looking at the session"):
            refuse_dangers(self.spark())
        relation = self.project.dataset(dataset)
        kind = DeltaTarget if relation.format is TableFormat.DELTA else IcebergTarget
        return kind(self.spark(), relation.table)

    def engine(self) -> Engine:
        from backcast.spark.engine import SparkEngine

        return SparkEngine()

    def result_settings(self) -> dict[str, str]:
        from backcast.project.session import result_settings
        from backcast.spark.session import refuse_dangers

        # Asked anew: a notebook may have changed its session since it was opened.
        refuse_dangers(self.spark())
        return result_settings(self.spark())

    def memory(self) -> int:
        from backcast.spark.session import task_memory

        return task_memory(self.spark())

    def holder(self) -> Holder:
        """This process, and the JVM once Spark is up."""
        from backcast.spark import processes

        me = processes.current()
        jvm = None if self._spark is None else processes.jvm_identity(self._spark)
        return Holder(
            owner=self._owner,
            host=host_identity(),
            pid=me.pid,
            started=me.started,
            jvm_pid=None if jvm is None else jvm.pid,
            jvm_started=None if jvm is None else jvm.started,
        )

    def alive(self, holder: Holder) -> bool:
        from backcast.spark import processes

        if holder.host != host_identity():
            return not rebooted_since(holder.host)
        return processes.is_alive(processes.ProcessIdentity(holder.pid, holder.started))

    def ended(self, holder: Holder) -> bool:
        """True when that process is known to be gone; its JVM, which may live on for seconds, is ended first."""
        from backcast.spark import processes

        if holder.host != host_identity():
            return rebooted_since(holder.host)
        if processes.is_alive(processes.ProcessIdentity(holder.pid, holder.started)):
            return False
        if holder.jvm_pid is not None and holder.jvm_started is not None:
            processes.end(processes.ProcessIdentity(holder.jvm_pid, holder.jvm_started))
        return True

    def quarantined_records(self, run_id: str, sources: list[str], limit: int) -> list[QuarantinedRecord]:
        from backcast.project.quarantined import quarantined_records

        return quarantined_records(self, run_id, sources, limit)

    def quarantined_offsets(self, run_id: str, sources: list[str]) -> dict[str, Ranges]:
        from backcast.project.quarantined import quarantined_offsets

        return quarantined_offsets(self, run_id, sources)

    def doctor(self) -> list[Probe]:
        from backcast.project.doctor import examine

        return examine(self)

    def to_archive(self, name: str, offsets: str | None, until: str | None) -> ToArchive:
        from backcast.project.archiving import to_archive

        return to_archive(self, name, offsets, until)

    def close(self) -> None:
        """Close the store and stop Spark if it was started here."""
        for store in (self._store, self._reader):
            if store is not None:
                store.close()
        self._store = self._reader = None
        if self._spark is not None and self._started_spark:
            from py4j.protocol import Py4JError

            # A JVM that is gone needs no stopping.
            with suppress(OSError, Py4JError):
                self._spark.stop()
        self._spark = None

    @cached_property
    def _owner(self) -> str:
        try:
            return f"{getpass.getuser()}@{socket.gethostname()}"
        except (OSError, KeyError):
            return f"{os.getuid()}@{socket.gethostname()}"


def open_world(path: str | Path = ".", profile: str | None = None, *, log_file: Path | None = None) -> Wiring:
    """The project's wiring, for scripts of the project that need its Spark session: `open_world(".").spark()`.

    What Spark's JVM prints goes to the log file, or to the script's own stdout and stderr.
    """
    return Wiring(load_project(path, profile), log_file=log_file)
