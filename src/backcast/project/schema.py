"""The shape of `backcast.yaml`: frozen models, one per section, that refuse what they do not know."""

from __future__ import annotations

import re
from datetime import date, timedelta
from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    field_serializer,
    field_validator,
    model_serializer,
    model_validator,
)

from backcast.model.calendar import Week
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.document import Document, later
from backcast.model.hours import Hours
from backcast.model.manifest import LivePolicy, OnFailure
from backcast.model.pipeline import Cut
from backcast.model.table import PublishMode
from backcast.model.throttle import Throttle
from backcast.model.time import Grain
from backcast.project.diff_schema import NO_DIFF_CONFIG, DiffConfig
from backcast.project.input_schema import InputConfig, input_of
from backcast.project.problems import KeyPath
from backcast.project.rule_schema import NO_GATES_CONFIG, GatesConfig, RuleEntry
from backcast.project.secrets import masked
from backcast.project.source_schema import SourceConfig
from backcast.project.store_address import check_store, shown
from backcast.project.stream_schema import StreamConfig
from backcast.project.values import Duration, Identifier, Label, Share, TableName, TablePath, TimeConfig, Version, Zone
from backcast.spark.settings import REDIRECTS, SKIPPING


class SparkConfig(Document):
    """The session that computes. `conf` holds any further Spark settings."""

    master: str = "local[*]"
    driver_memory: str | None = None
    shared: bool = False
    """Every machine of the cluster has the project's folder at the same path."""
    conf: dict[str, str] = Field(default_factory=dict)

    @field_validator("driver_memory", mode="before")
    @classmethod
    def _memory(cls, value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(r"\d+[kmgt]", value):
            raise ValueError(f"expected memory as Spark writes it, such as 4g or 800m, got {value!r}")
        return value

    @field_validator("conf")
    @classmethod
    def _keys(cls, conf: dict[str, str]) -> dict[str, str]:
        for key, value in conf.items():
            if not key.startswith("spark."):
                raise ValueError(f"expected names that start with spark., got {key!r}")
            if key in REDIRECTS:
                raise ValueError(f"{key} would send the rows of a run elsewhere than to its stage: leave it out")
            if key in SKIPPING and value.lower() != "false":
                raise ValueError(f"{key} would leave out rows of files that cannot be read: leave it out")
            if key == "spark.sql.session.timeZone" and value != "UTC":
                raise ValueError("spark.sql.session.timeZone is always UTC; zones belong to datasets")
        return conf

    @field_serializer("conf")
    def _mask(self, conf: dict[str, str]) -> dict[str, str]:
        return masked(conf)

    def __repr_args__(self) -> Any:
        return [("master", self.master), ("driver_memory", self.driver_memory), ("conf", masked(self.conf))]


CatalogType = Literal["jdbc", "rest", "hive", "hadoop", "delta"]
_NEEDS: dict[CatalogType, tuple[str, ...]] = {
    "jdbc": ("uri", "warehouse"),
    "rest": ("uri",),
    "hive": ("uri",),
    "hadoop": ("warehouse",),
    "delta": ("warehouse",),
}


class CatalogConfig(Document):
    """An Iceberg catalog, or with type `delta` Spark's own catalog of Delta tables, which is called spark_catalog.

    Any further key is handed to it. Texts keep their `${...}` until Spark needs them.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, str] = Field(init=False)

    type: CatalogType
    uri: str | None = None
    warehouse: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> CatalogConfig:
        lacking = [key for key in _NEEDS[self.type] if not getattr(self, key)]
        if lacking:
            raise ValueError(f"a catalog of type {self.type} needs {' and '.join(lacking)}")
        for key in self.__pydantic_extra__:
            if close := get_close_matches(key, ("type", "uri", "warehouse"), n=1, cutoff=0.75):
                raise ValueError(f"unknown key {key!r}; did you mean {close[0]}?")
        return self

    def properties(self) -> dict[str, str]:
        """Everything as written, secrets included: only for the session."""
        own = {"type": self.type, "uri": self.uri, "warehouse": self.warehouse}
        return {**{key: value for key, value in own.items() if value is not None}, **self.__pydantic_extra__}

    @model_serializer
    def _mask(self) -> dict[str, str]:
        return masked(self.properties())

    def __repr_args__(self) -> Any:
        return masked(self.properties()).items()


class PartitionConfig(Document):
    """The column that the table is partitioned by, when its value follows from the time column."""

    column: Identifier
    kind: TimeKind
    zone: Zone | None = None
    """None: the zone of the time column."""
    format: str | None = None

    def resolve(self, time: TimeConfig) -> TimeColumn:
        return TimeConfig(column=self.column, kind=self.kind, zone=self.zone or time.zone, format=self.format).resolve()


_FINE_TO_COARSE = list(Grain)


class PositionConfig(Document):
    """The columns that say which record of a topic a row was made of."""

    partition: Identifier
    offset: Identifier


class DatasetConfig(Document):
    """A table under management. Without `time` it can only be an input that is read whole.

    `table` names a table of a catalog, `path` the folder of a Delta table.
    """

    table: TableName | None = None
    path: TablePath | None = None
    time: TimeConfig | None = None
    partition: PartitionConfig | None = None
    grain: Grain = Grain.DAY
    key: tuple[Identifier, ...] = ()
    version: Identifier | None = None
    streaming_readers: tuple[Label, ...] = ()
    tolerance: Share | None = None
    refresh: str | None = Field(default=None, min_length=1)
    tier: Annotated[Label | None, later(None)] = None
    calendar: Annotated[Week, later(Week.DAILY)] = Week.DAILY
    closed: Annotated[tuple[date, ...], later(())] = ()
    position: Annotated[PositionConfig | None, later(None)] = None
    rules: Annotated[tuple[RuleEntry, ...], later(())] = ()
    gates: Annotated[GatesConfig, later(NO_GATES_CONFIG)] = NO_GATES_CONFIG
    masked: Annotated[tuple[Identifier, ...], later(())] = ()
    compatibility: Annotated[Literal["widen", "exact"], later("widen")] = "widen"
    diff: Annotated[DiffConfig, later(NO_DIFF_CONFIG)] = NO_DIFF_CONFIG

    @model_validator(mode="after")
    def _fits(self) -> DatasetConfig:
        if (self.table is None) == (self.path is None):
            raise ValueError("expected exactly one of table (catalog.namespace.table) and path (of a Delta table)")
        if len(set(self.key)) != len(self.key):
            raise ValueError("key names a column twice")
        if self.time is None:
            if self.partition is not None:
                raise ValueError("partition needs a time column to follow from")
            return self
        unit = self.time.resolve().unit
        if unit is not None and _FINE_TO_COARSE.index(unit) > _FINE_TO_COARSE.index(self.grain):
            raise ValueError(f"grain {self.grain} is finer than column {self.time.column} can tell ({unit})")
        if self.partition is not None:
            if self.partition.column == self.time.column:
                raise ValueError("partition names the time column itself: leave it out")
            self.partition.resolve(self.time)
        return self


class WarmUpConfig(Document):
    """How much more input than output is read, on both sides."""

    before: Duration = timedelta()
    after: Duration = timedelta()


class PublishConfig(Document):
    """How the stage meets the table, and how long an undo is guaranteed."""

    mode: PublishMode = PublishMode.REPLACE
    live: LivePolicy = LivePolicy.FAIL
    undo_window: Duration = timedelta(days=7)
    watch: Duration = timedelta()
    """How long the table is looked at again after a publish."""
    deletes: Identifier | None = None
    """The boolean column of the transform's result that takes the row of that key away."""

    @model_validator(mode="after")
    def _fits(self) -> PublishConfig:
        if self.deletes is not None and self.mode is not PublishMode.MERGE:
            raise ValueError("deletes belongs to mode merge")
        return self


class ValidationConfig(Document):
    """What becomes of a rejected stage, and how many chunks are computed twice to see whether the same comes out."""

    on_failure: OnFailure = OnFailure.HALT
    recompute: Annotated[int, Field(ge=0, le=100)] = 0


def _hours(text: str) -> str:
    Hours.parse(text)
    return text


class ThrottleConfig(Document):
    """How a run holds back beside what is live."""

    rows_per_second: Annotated[int, Field(ge=1)] | None = None
    per_partition: Annotated[Annotated[int, Field(ge=1)] | None, later(None)] = None
    pause: Duration = timedelta()
    bytes_per_minute: Annotated[Annotated[int, Field(ge=1)] | None, later(None)] = None
    commits_per_hour: Annotated[Annotated[int, Field(ge=1)] | None, later(None)] = None
    parallel_jobs: Annotated[Annotated[int, Field(ge=1)] | None, later(None)] = None
    hours: Annotated[Annotated[str, AfterValidator(_hours)] | None, later(None)] = None
    live_lag: Annotated[int, Field(ge=0)] | None = None

    def throttle(self, streams: tuple[str, ...], zone: str) -> Throttle:
        return Throttle(
            rows_per_second=self.rows_per_second,
            per_partition=self.per_partition,
            bytes_per_minute=self.bytes_per_minute,
            commits_per_hour=self.commits_per_hour,
            parallel_jobs=self.parallel_jobs,
            hours=None if self.hours is None else str(Hours.parse(self.hours, zone)),
            pause_seconds=int(self.pause.total_seconds()),
            live_lag=self.live_lag,
            streams=streams,
        )


class PipelineConfig(Document):
    """A versioned transform between inputs and one output dataset."""

    transform: str | None = None
    sql: str | None = None
    version: Version
    inputs: Annotated[dict[Identifier, Annotated[InputConfig, BeforeValidator(input_of)]], Field(min_length=1)]
    output: Label
    warm_up: WarmUpConfig = WarmUpConfig()
    publish: PublishConfig = PublishConfig()
    validation: ValidationConfig = ValidationConfig()
    rules: Annotated[tuple[RuleEntry, ...], later(())] = ()
    gates: Annotated[GatesConfig, later(NO_GATES_CONFIG)] = NO_GATES_CONFIG
    cut: Cut = Cut.WIDEN
    chunks_per_job: Annotated[int, Field(ge=1, le=1000)] | None = None
    throttle: Annotated[ThrottleConfig | None, later(None)] = None
    nondeterministic: tuple[str, ...] = ()
    lineage_columns: bool = False

    @field_validator("transform")
    @classmethod
    def _function(cls, text: str | None) -> str | None:
        if text is not None and not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", text, re.ASCII):
            raise ValueError(f"expected module:function such as pipelines.daily:daily, got {text!r}")
        return text

    @field_validator("sql")
    @classmethod
    def _inside(cls, text: str | None) -> str | None:
        if text is not None and (not text.endswith(".sql") or text.startswith(("/", "~")) or ".." in text.split("/")):
            raise ValueError(f"expected a .sql file inside the project such as models/daily.sql, got {text!r}")
        return text

    @model_validator(mode="after")
    def _one_of_both(self) -> PipelineConfig:
        if (self.transform is None) == (self.sql is None):
            raise ValueError("expected exactly one of transform (module:function) and sql (a file)")
        if self.validation.recompute and self.publish.mode is PublishMode.MERGE:
            raise ValueError("recompute compares the rows of a chunk, and a merge mixes them with others: leave it out")
        if self.throttle is not None and self.throttle.hours is not None and self.publish.live is LivePolicy.FREEZE:
            raise ValueError(
                "throttle.hours would keep streams waiting, too (publish.live: freeze): leave one of them out"
            )
        names = [name.lower() for name in self.inputs]
        if len(set(names)) != len(names):
            raise ValueError("inputs differ only in upper and lower case, which SQL does not tell apart")
        return self


class ProjectConfig(Document):
    """The whole file, after profile and environment."""

    name: Label
    store: Annotated[str, AfterValidator(check_store), Field(repr=False)] = ".backcast/store.db"
    """Keeps its `${...}` until the store is opened."""
    spark: SparkConfig = SparkConfig()
    catalogs: dict[Identifier, CatalogConfig] = Field(default_factory=dict)
    sources: dict[Label, SourceConfig] = Field(default_factory=dict)
    datasets: dict[Label, DatasetConfig] = Field(default_factory=dict)
    pipelines: dict[Label, PipelineConfig] = Field(default_factory=dict)
    streams: Annotated[dict[Label, StreamConfig], later({})] = Field(default_factory=dict)
    policy: str | None = None
    """The file that says who approves what; see `policy_schema.py`."""

    @field_validator("policy")
    @classmethod
    def _policy_file(cls, text: str | None) -> str | None:
        if text is not None and (not text.endswith((".yaml", ".yml")) or text.startswith(("/", "~")) or ".." in text):
            raise ValueError(f"expected a .yaml file inside the project such as policy.yaml, got {text!r}")
        return text

    @field_serializer("store")
    def _mask(self, text: str) -> str:
        return shown(text)


def keys_at(path: KeyPath) -> list[str]:
    """The keys that are known at this path; none where any name is allowed."""
    model: Any = ProjectConfig
    for part in (each for each in path if isinstance(each, str)):
        fields = getattr(model, "model_fields", None)
        if fields is not None and part not in fields:
            return []
        model = _values(model) if fields is None else _model(fields[part].annotation)
        if model is None:
            return []
    return list(getattr(model, "model_fields", {}))


def _model(annotation: Any) -> Any:
    """The section model inside an annotation such as `TimeConfig | None`; a dict annotation stays as it is."""
    if hasattr(annotation, "model_fields") or getattr(annotation, "__origin__", None) is dict:
        return annotation
    return next((found for each in get_args(annotation) if (found := _model(each)) is not None), None)


def _values(annotation: Any) -> Any:
    arguments = get_args(annotation)
    return _model(arguments[1]) if len(arguments) == 2 else None
