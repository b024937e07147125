"""A topic as an endless frame, decoded exactly as a batch read of it is; and what one batch of it could not use.

No record fails a task and none is dropped in silence: those that cannot be decoded are counted while they go by, and
only when there are some are the offsets of the batch read once more, to tell which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.errors import InvalidRequest
from backcast.model.coverage import Status
from backcast.model.log import Ranges
from backcast.model.source import KafkaAccess, LogSource
from backcast.ports import Unusable
from backcast.sources.kafka.decode import PROBLEM, RAW, SCHEMA_ID, STATUS, decode
from backcast.sources.kafka.job import LogJob
from backcast.sources.kafka.quarantine import read_quarantine
from backcast.sources.kafka.read import FETCHING, POLL_SECONDS, column
from backcast.sources.kafka.topic import KafkaTopic
from backcast.sources.kafka.unusable import Aside, set_aside
from backcast.sources.kafka.writers import Schemas, find_schemas
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backcast.model.log import TopicFacts

OBSERVED, UNDECODED = "backcast_log", "undecoded"
"""What the query counts while records go by."""
_WORDS = ("earliest", "latest")


@dataclass(frozen=True)
class KafkaStream:
    """The port LiveSource over one topic. Schemas of a registry are those of when it was made."""

    spark: SparkSession
    access: KafkaAccess
    source: LogSource
    starting: str
    most: int | None
    """Records that one batch takes at the most."""

    def facts(self) -> TopicFacts:
        return KafkaTopic(self.access, self.source.topic, self.source.isolation).facts()

    @cached_property
    def _schemas(self) -> Schemas:
        return find_schemas(self.source, self.access)

    def frame(self) -> DataFrame:
        """What a transform sees: rows, and tombstones where they are wanted."""
        options = {
            **FETCHING,
            # Before what follows, so that none of it can be changed by them.
            **self.access.spark,
            "kafka.bootstrap.servers": self.access.servers,
            "kafka.isolation.level": self.source.isolation,
            "subscribe": self.source.topic,
            "startingOffsets": starting_offsets(self.starting, self.source.topic),
            "failOnDataLoss": "true",
            "includeHeaders": "true",
            "groupIdPrefix": "backcast",
            "kafkaConsumer.pollTimeoutMs": str(POLL_SECONDS * 1000),
            **({} if self.most is None else {"maxOffsetsPerTrigger": str(self.most)}),
        }
        raw = self.spark.readStream.format("kafka").options(**options).load()
        records = raw.selectExpr(*(f"{column(name)} AS {quote(name)}" for name in RAW))
        decoded = decode(records, self.source, self._schemas.value, self._schemas.key)
        unusable = F.count(F.when(F.col(STATUS) == Status.QUARANTINED.value, 1)).alias(UNDECODED)
        seen = [Status.ROW, *([Status.TOMBSTONE] if self.source.tombstones else [])]
        handed = decoded.observe(OBSERVED, unusable).where(F.col(STATUS).isin(*(each.value for each in seen)))
        return handed.drop(PROBLEM, STATUS, SCHEMA_ID)

    def set_aside(self, stream: str, batch: int, ranges: Ranges, rejected: DataFrame | None, at: datetime) -> int:
        """Keep what a batch could not use, each record once however often the batch is repeated; how many they are.

        Raises ChunkFailed, which names the first of them, when there is no place for them, and QuarantineFull.
        """
        job = LogJob(
            self.spark,
            self.access,
            self.source,
            compacted=True,
            owned=(ranges,),
            beside=(),
            scope=None,
            read=None,
            own=None,
            schemas=self._schemas,
        )
        problems = job.problems()
        run_id = quarantine_name(stream)
        found = Unusable(problems.count(), rejected, self._kept_by_others(run_id, batch))
        mine = None if rejected is None else job.rejected(rejected)
        number = set_aside(self.source, Aside(run_id, (_batch(batch),), found, problems, mine, at, stream=stream))
        return found.undecoded + number

    def _kept_by_others(self, run_id: str, batch: int) -> int:
        place = self.source.quarantine
        if place is None:
            return 0
        return read_quarantine(self.spark, place.table, run_id).where(F.col("chunk") != _batch(batch)).count()


def quarantine_name(stream: str) -> str:
    """Under which the quarantine keeps what a stream set aside, as it keeps a run's under the run's id."""
    return f"stream:{stream}"


def _batch(number: int) -> str:
    return f"batch {number}"


def starting_offsets(text: str, topic: str) -> str:
    """As Spark's source takes them. Raises InvalidRequest."""
    if text in _WORDS:
        return text
    try:
        ((name, offsets),) = json.loads(text).items()
        literal = {str(int(key)): int(value) for key, value in offsets.items()}
    except (ValueError, TypeError, AttributeError):
        name, literal = "", {}
    if name != topic or not literal:
        hint = f'write earliest, latest, or {{"{topic}": {{"0": 100}}}} with every partition; -2 is earliest, -1 latest'
        raise InvalidRequest(f"`starting` of a stream of {topic} cannot be {text!r}", hint=hint)
    return json.dumps({topic: literal})
