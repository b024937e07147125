"""The archive of a topic: its records as the log had them, in a table or in files, pinned like any other input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import ConfigError, Drifted, UnknownName
from backcast.model.log import ArchivePin, Ranges
from backcast.model.quarantine import POSITION
from backcast.model.scope import Predicate
from backcast.model.source import Archive, LogSource
from backcast.ports import Source
from backcast.sources.kafka.archive_files import list_files, read_files
from backcast.sources.kafka.decode import RAW
from backcast.spark.gateway import jvm_errors
from backcast.spark.predicates import balanced, quote, text_literal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType

TOPIC_ID = "topic_id"
COLUMNS = {**RAW, TOPIC_ID: "STRING"}
"""Of an archive that we make. The id tells records of a topic from those of an earlier one with its name."""
OPTIONAL = ("timestamp_type", TOPIC_ID)
_FITTING = {
    "partition": ("tinyint", "smallint", "int", "bigint"),
    "offset": ("int", "bigint"),
    "timestamp": ("timestamp", "timestamp_ntz"),
    "timestamp_type": ("int",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""Types of others that hold the same; names are cast to texts whatever they are, as folders' names may be numbers."""


@dataclass(frozen=True, slots=True)
class KafkaArchive:
    """What is archived of one topic. Never written to from here."""

    spark: SparkSession
    source: LogSource
    archive: Archive

    def pin(self) -> ArchivePin | None:
        """As it is now; None when `backcast archive` has still to make it. Raises ConfigError for files of nobody."""
        if self.archive.files is not None:
            files = list_files(self.spark, self.archive.files)
            if not files:
                raise ConfigError(f"no file matches {self.archive.files}", hint=f"see `files` of {self._key}")
            return ArchivePin(place=self.archive.files, files=files)
        try:
            facts = self._table.facts()
        except UnknownName:
            return None
        identity = facts.identity
        return ArchivePin(
            place=self.archive.place, location=identity.location, uuid=identity.uuid, version=facts.version
        )

    def check(self, pin: ArchivePin) -> None:
        """Raises Drifted when what was pinned is gone or is something else by now."""
        if self.archive.place != pin.place:
            raise Drifted(f"the archive of {self.source.topic} was {pin.place}", hint="plan again")
        if self.archive.files is not None:
            there = {each.path: each for each in list_files(self.spark, self.archive.files)}
            for each in pin.files:
                if there.get(each.path) != each:
                    state = "is gone" if each.path not in there else "has changed"
                    hint = "plan again"
                    raise Drifted(f"file {each.path} of the archive of {self.source.topic} {state}", hint=hint)
        elif self._table.facts(pin.version).identity.uuid != pin.uuid:
            raise Drifted(f"{pin.place} is another table than the one that was planned with", hint="plan again")

    def records(self, pin: ArchivePin, topic_id: str) -> DataFrame:
        """Everything that it has of the topic, with the columns of `decode.RAW`. Raises ConfigError without them."""
        with jvm_errors(f"reading the archive {pin.place}"):
            frame = read_files(self.spark, pin) if pin.files else self._table.read(pin.version, Predicate())
            columns = self._columns(frame)
            sql = {name: f"CAST({columns.get(name, 'NULL')} AS {kind})" for name, kind in COLUMNS.items()}
            named = frame.selectExpr(*(f"{each} AS {quote(name)}" for name, each in sql.items()))
            same = f"`{TOPIC_ID}` IS NULL OR `{TOPIC_ID}` = {text_literal(topic_id)}"
            ours = named.where(
                f"`topic` = {text_literal(self.source.topic)} AND ({same}) AND `partition` >= 0 AND `offset` >= 0"
            )
            return ours.select(*map(quote, RAW))

    @property
    def _table(self) -> Source:
        from backcast.spark.delta.reader import DeltaReader
        from backcast.spark.iceberg.reader import IcebergReader

        kind = DeltaReader if self.archive.is_delta else IcebergReader
        return kind(self.spark, self.archive.place)

    @property
    def _key(self) -> str:
        return f"sources.{self.source.name}.archive"

    def _columns(self, frame: DataFrame) -> dict[str, str]:
        """Its column for each of ours, as SQL."""
        there = {field.name.lower(): field for field in frame.schema.fields}
        wanted = {name: self.archive.columns.get(name, name) for name in COLUMNS}
        found = {name: there[theirs.lower()] for name, theirs in wanted.items() if theirs.lower() in there}
        needed = [name for name in COLUMNS if name not in OPTIONAL or name in self.archive.columns]
        if lacking := [wanted[name] for name in needed if name not in found]:
            hint = f"name those that are called otherwise in `columns` of {self._key}"
            raise ConfigError(f"{self.archive.place} has no column {', '.join(lacking)}", hint=hint)
        for name, field in found.items():
            if name in _FITTING and not _fits(field.dataType, _FITTING[name]):
                kind = field.dataType.simpleString()
                text = f"column {field.name} of {self.archive.place} is {kind}, and {name} is {COLUMNS[name].lower()}"
                raise ConfigError(text, hint=f"see `columns` of {self._key}")
        return {name: quote(field.name) for name, field in found.items()}


@dataclass(frozen=True, slots=True)
class Archived:
    """The part of a pinned log that is read from its archive."""

    archive: KafkaArchive
    pin: ArchivePin
    topic_id: str

    def part(self, ranges: Ranges) -> DataFrame | None:
        """Records of those of the offsets that come from the archive; None for none."""
        ours = self.pin.part(ranges)
        return self.archive.records(self.pin, self.topic_id).where(within(ours)) if ours else None

    def rest(self, ranges: Ranges) -> Ranges:
        return self.pin.rest(ranges)


def as_archived(rows: DataFrame, topic_id: str) -> DataFrame:
    """Raw records of a job with the columns of an archive that we make."""
    fields = [f"{POSITION}.{quote(name)} AS {quote(name)}" for name in RAW]
    return rows.selectExpr(*fields, f"{text_literal(topic_id)} AS `{TOPIC_ID}`")


def within(ranges: Ranges) -> str:
    """SQL over `partition` and `offset`."""
    each = [
        f"(`partition` = {one.partition} AND `offset` >= {one.start}L AND `offset` < {one.end}L)"
        for one in ranges
        if one.span
    ]
    return balanced(each, lambda left, right: f"({left} OR {right})") if each else "false"


def archive_definition(table: str, *, is_delta: bool) -> str:
    """SQL that makes the table. By partition, as that is how ranges of offsets are found again."""
    columns = ", ".join(f"{quote(name)} {kind}" for name, kind in COLUMNS.items())
    kind = "delta" if is_delta else "iceberg"
    return f"CREATE TABLE IF NOT EXISTS {table} ({columns}) USING {kind} PARTITIONED BY (`topic`, `partition`)"


def _fits(kind: DataType, fitting: tuple[str, ...]) -> bool:
    return kind.simpleString().lower() in fitting
