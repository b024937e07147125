"""A transform's rows without the records that it rejected, counted while the others are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from backcast.errors import ChunkFailed
from backcast.model.quarantine import POSITION, REJECTED
from backcast.ports import Sifted
from backcast.spark.observation import asked

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_COUNT, _STRANGERS = "rejected", "strangers"


def sift(rows: DataFrame, columns: frozenset[str], topics: frozenset[str]) -> Sifted:
    counted, unwanted = Observation(), F.col(REJECTED).isNotNull()
    observed = rows.observe(
        counted,
        F.count(F.when(unwanted, 1)).alias(_COUNT),
        F.count(F.when(unwanted & _is_strange(topics), 1)).alias(_STRANGERS),
    )
    return Sifted(
        kept=observed.where(~unwanted).drop(*(name for name in (REJECTED, POSITION) if name not in columns)),
        rejected=rows.where(unwanted).select(POSITION, REJECTED),
        count=lambda: _number(counted, _COUNT),
        strangers=lambda: _number(counted, _STRANGERS),
    )


def refuse_strangers(rejected: DataFrame, topics: frozenset[str]) -> None:
    """See `Engine`."""
    first = rejected.where(_is_strange(topics)).limit(1).collect()
    if first:
        raise ChunkFailed(
            f"the transform rejects a record of topic {first[0][POSITION]['topic']!r}, which is none of its inputs",
            hint=f"return `{POSITION}` as it came beside `{REJECTED}`",
        )


def _is_strange(topics: frozenset[str]) -> Column:
    topic = F.col(f"{POSITION}.topic")
    return topic.isNull() | ~topic.isin(*sorted(topics))


def _number(counted: Observation, name: str) -> int | None:
    found = asked(counted)
    return None if found is None else int(found[name])
