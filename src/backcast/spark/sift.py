"""A transform's rows without the records that it rejected, counted while the others are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from backcast.ports import Sifted
from backcast.spark.observation import asked
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REJECTED = "rejected"


def sift(rows: DataFrame, reason: str, position: str, columns: frozenset[str]) -> Sifted:
    counted, unwanted = Observation(), F.col(quote(reason)).isNotNull()
    observed = rows.observe(counted, F.count(F.when(unwanted, 1)).alias(_REJECTED))
    ours = [name for name in (reason, position) if name not in columns]
    return Sifted(
        kept=observed.where(~unwanted).drop(*ours),
        rejected=rows.where(unwanted).select(quote(position), quote(reason)),
        count=lambda: _number(counted),
    )


def _number(counted: Observation) -> int | None:
    found = asked(counted)
    return None if found is None else int(found[_REJECTED])
