"""The section `sources` of `backcast.yaml`: Kafka topics, how their records are written, how brokers are reached."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_serializer, field_validator, model_serializer, model_validator

from backcast.model.document import Document, later
from backcast.model.log import Isolation
from backcast.model.source import Encoding, Lack, Surplus
from backcast.project.secrets import MASK, mask_text, masked
from backcast.project.values import Duration, Identifier, TableName, TablePath, TimeConfig

_FROM_ELSEWHERE = re.compile(r"(\$\{(file:[^{}]+|\w+)\})+")
_OURS = frozenset(
    {
        "bootstrap.servers",
        "group.id",
        "isolation.level",
        "enable.auto.commit",
        "auto.offset.reset",
        "key.deserializer",
        "value.deserializer",
    }
)


def _topic(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", text) or text in (".", ".."):
        raise ValueError(f"expected a topic name of letters, digits, dots, _ and -, got {text!r}")
    return text


def _elsewhere(text: str) -> str:
    if not _FROM_ELSEWHERE.fullmatch(text):
        raise ValueError("expected the secret as ${NAME} or ${file:path}, never itself")
    return text


def _inside(text: str) -> str:
    if text.startswith(("/", "~")) or ".." in text.split("/"):
        raise ValueError(f"expected a file inside the project, got {text!r}")
    return text


def _files(text: str) -> str:
    if not text or any(sign in text for sign in "`\n\0"):
        raise ValueError(f"expected a folder of Parquet files, or a path with wildcards, got {text!r}")
    return text


Secret = Annotated[str, AfterValidator(_elsewhere)]
"""Only ever the `${...}` that leads to it."""


class RegistryConfig(Document):
    """A schema registry that speaks Confluent's interface."""

    url: str
    username: Secret | None = None
    password: Secret | None = None

    @model_serializer
    def _shown(self) -> dict[str, str]:
        return {"url": mask_text(self.url)}


class LayoutConfig(Document):
    """How the value or the key of a record is written."""

    format: Encoding
    columns: str | None = None
    """JSON: the fields and their types, as in CREATE TABLE."""
    schema_file: Annotated[str, AfterValidator(_inside)] | None = None
    """Avro: a file inside the project."""
    registry: RegistryConfig | None = None
    subject: str | None = None
    missing: Lack = Lack.NULL
    unknown: Surplus = Surplus.IGNORE

    @model_validator(mode="after")
    def _fits(self) -> LayoutConfig:
        match self.format:
            case Encoding.JSON if not self.columns:
                raise ValueError("format json needs columns, such as: id BIGINT, at TIMESTAMP")
            case Encoding.AVRO if (self.schema_file is None) == (self.registry is None and self.subject is None):
                raise ValueError("format avro needs a schema_file, or a registry and a subject")
            case Encoding.AVRO if (self.registry is None) != (self.subject is None):
                raise ValueError("registry and subject belong together")
        if self.format is not Encoding.JSON and self.columns:
            raise ValueError(f"columns belong to format json, not to {self.format}")
        if self.format is not Encoding.AVRO and (self.schema_file or self.registry or self.subject):
            raise ValueError(f"schema_file, registry and subject belong to format avro, not to {self.format}")
        return self


class SlackConfig(Document):
    """How far a record's own time may lie from its event time, on both sides of a window."""

    before: Duration = timedelta(hours=1)
    after: Duration = timedelta(hours=1)


class QuarantineConfig(Document):
    """Where records that cannot be decoded go, and how many a run may meet before it fails."""

    table: TableName | None = None
    path: TablePath | None = None
    most: Annotated[int, Field(ge=0)] = 0

    @model_validator(mode="after")
    def _fits(self) -> QuarantineConfig:
        if (self.table is None) == (self.path is None):
            raise ValueError("expected exactly one of table (catalog.namespace.table) and path (of a Delta table)")
        return self


ArchiveColumn = Literal["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"]


class ArchiveConfig(Document):
    """Where records are kept longer than by the log: a table that `backcast archive` fills, or files of others."""

    table: TableName | None = None
    path: TablePath | None = None
    files: Annotated[str, AfterValidator(_files)] | None = None
    columns: dict[ArchiveColumn, Identifier] = Field(default_factory=dict)
    """What columns are called there, where it is not what we call them."""

    @model_validator(mode="after")
    def _fits(self) -> ArchiveConfig:
        if [self.table, self.path, self.files].count(None) != 2:
            raise ValueError(
                "expected exactly one of table (catalog.namespace.table), path (of a Delta table) and files (Parquet)"
            )
        return self


class SecurityConfig(Document):
    """How brokers know us. Said once, and told to both clients in their own words."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    username: Secret | None = None
    password: Secret | None = None
    ca_file: str | None = None
    """Certificates, as PEM, that brokers' own are checked against."""

    @model_validator(mode="after")
    def _fits(self) -> SecurityConfig:
        sasl = (self.mechanism, self.username, self.password)
        if self.protocol.startswith("SASL") != all(sasl) or any(sasl) != all(sasl):
            raise ValueError("mechanism, username and password belong to protocols SASL_PLAINTEXT and SASL_SSL")
        return self

    @model_serializer
    def _shown(self) -> dict[str, str | None]:
        secret = {"username": MASK, "password": MASK} if self.username else {}
        return {"protocol": self.protocol, "mechanism": self.mechanism, "ca_file": self.ca_file, **secret}


class SourceConfig(Document):
    """A Kafka topic that pipelines can read."""

    type: Literal["kafka"]
    servers: str
    topic: Annotated[str, AfterValidator(_topic)]
    value: LayoutConfig
    key: LayoutConfig = LayoutConfig(format=Encoding.RAW)
    time: TimeConfig | None = None
    """Event time: a column of the value."""
    isolation: Isolation = Isolation.COMMITTED
    slack: SlackConfig = SlackConfig()
    to_end: bool = False
    """Read to the end of the log, because a record of the window may have come at any time later."""
    transactional: bool = False
    tombstones: Literal["skip", "rows"] = "skip"
    """`rows`: a record without a value is a row without values, for a transform that turns it into a delete."""
    quarantine: QuarantineConfig | None = None
    archive: Annotated[ArchiveConfig | None, later(None)] = None
    security: SecurityConfig = SecurityConfig()
    options: dict[str, str] = Field(default_factory=dict)
    """Further settings of Kafka's clients, for both of them."""

    @field_validator("options")
    @classmethod
    def _not_ours(cls, options: dict[str, str]) -> dict[str, str]:
        for key in options:
            if key.removeprefix("kafka.") in _OURS:
                raise ValueError(f"{key} is Backcast's to set: leave it out")
        return options

    @field_serializer("options")
    def _mask(self, options: dict[str, str]) -> dict[str, str]:
        return masked(options)

    def __repr_args__(self) -> Any:
        return [("topic", self.topic), ("servers", mask_text(self.servers))]
