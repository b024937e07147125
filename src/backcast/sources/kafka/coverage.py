"""What became of every offset, counted while a job reads them; by a scan of its own only where that leaves a doubt."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation, Window
from pyspark.sql import functions as F

from backcast.model.coverage import STATUSES, Counts, Coverage, GapPolicy, Observed, Scanned, Status, explained
from backcast.model.digest import EMPTY, Digest
from backcast.model.log import Isolation, Ranges
from backcast.model.quarantine import POSITION
from backcast.sources.kafka.decode import POSITION_FIELDS, SCHEMA_ID, STATUS
from backcast.spark.digest import ROWS, digest_of_row, sums_of
from backcast.spark.observation import asked
from backcast.spark.predicates import quote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

_IN_WINDOW, _OTHERS = "in_window", "others"
_CODES = {status: code for code, status in enumerate(STATUSES)}
_STEP = 8
"""A partition and a status as one number: `partition * 8 + code`."""
_SKETCH = (0.0005, 0.999, 1)
"""4,000 cells in ten rows: hundreds of partitions do not meet in all of them. Whether they did is checked."""
_BLOCK = 1_000_000


def observed_log(
    frame: DataFrame, ranges: Ranges, in_window: Column | None = None, schema_ids: Iterable[int] = ()
) -> tuple[DataFrame, Callable[[], Observed | None]]:
    """The decoded frame with `_status` also telling `filtered`, and what was counted once a job has run over it.

    The answer is None when the count was lost. Filters on the result stay above the count, whatever they are about.
    """
    flat = {f"__{name}": f"{POSITION}.{quote(name)}" for name in POSITION_FIELDS}
    kept = [quote(name) for name in frame.columns if name not in (POSITION, STATUS)]
    # Flat below the count and a struct above it, so that fields which nobody uses are never copied.
    below = frame.select(
        *kept,
        *(F.expr(sql).alias(name) for name, sql in flat.items()),
        F.expr(_hash(flat["__partition"], flat["__offset"])).alias("__hash"),
        _code(in_window).alias("__code"),
    )
    observation, ids = Observation(), tuple(schema_ids)
    counted = below.observe(observation, *_metrics(ids))
    position = F.expr(f"struct({', '.join(f'__{name} AS {quote(name)}' for name in POSITION_FIELDS)})")
    cases = " ".join(f"WHEN {code} THEN '{word}'" for word, code in _CODES.items())
    words = F.expr(f"CASE __code {cases} END")
    order = [name for name in frame.columns if name not in (POSITION, STATUS)]
    above = counted.select(*(quote(name) for name in order), position.alias(POSITION), words.alias(STATUS))
    return above.select(*(quote(name) for name in frame.columns)), lambda: _observed(observation, ranges, ids)


def _code(in_window: Column | None) -> Column:
    """The status as a number; nobody can say of a row without time whether it is in the window."""
    row = F.lit(_CODES[Status.ROW])
    if in_window is not None:
        row = (
            F.when(in_window, row).when(in_window.isNull(), _CODES[Status.TIMELESS]).otherwise(_CODES[Status.FILTERED])
        )
    return (
        F.when(F.col(STATUS) == Status.ROW, row)
        .when(F.col(STATUS) == Status.TOMBSTONE, _CODES[Status.TOMBSTONE])
        .when(F.col(STATUS) == Status.FILTERED, _CODES[Status.FILTERED])
        .otherwise(_CODES[Status.QUARANTINED])
    )


def _metrics(schema_ids: tuple[int, ...]) -> list[Column]:
    is_row = f"__code = {_CODES[Status.ROW]}"
    others = f"if({is_row}, NULL, CAST(__partition AS BIGINT) * {_STEP} + __code)"
    error, confidence, seed = _SKETCH
    return [
        *sums_of(F.col("__hash")),
        F.expr(f"count_if({is_row})").alias(_IN_WINDOW),
        F.expr(f"count_min_sketch({others}, {error}D, {confidence}D, {seed})").alias(_OTHERS),
        *(F.expr(f"count_if({SCHEMA_ID} = {number})").alias(f"id{number}") for number in schema_ids),
    ]


def _hash(partition: str, offset: str) -> str:
    return f"xxhash64({partition}, {offset})"


def _observed(observation: Observation, ranges: Ranges, schema_ids: tuple[int, ...]) -> Observed | None:
    found = asked(observation)
    if found is None:
        return None
    others = _sketched(found[_OTHERS], ranges) if found[ROWS] != found[_IN_WINDOW] else {}
    if sum(others.values()) != found[ROWS] - found[_IN_WINDOW]:
        # A sketch never counts too little, so a right sum means that each of its numbers is right.
        return None
    ids = {number: found[f"id{number}"] for number in schema_ids if found[f"id{number}"]}
    return Observed(digest_of_row(found), found[_IN_WINDOW], others, ids)


def _sketched(sketch: bytes, ranges: Ranges) -> Counts:
    from pyspark import SparkContext

    jvm: Any = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]  # it has just run a job
    counts = jvm.org.apache.spark.util.sketch.CountMinSketch.readFrom(bytearray(sketch))
    keys = [(each.partition, status) for each in ranges for status in STATUSES if status is not Status.ROW]
    return {key: counts.estimateCount(key[0] * _STEP + _CODES[key[1]]) for key in keys}


def expected_positions(spark: SparkSession, ranges: Ranges) -> Digest:
    """The digest of every offset of these ranges, each once. One small job, which reads nothing."""
    blocks = [
        f"({each.partition}, {low}L, {min(low + _BLOCK, each.end) - 1}L)"
        for each in ranges
        for low in range(each.start, each.end, _BLOCK)
    ]
    if not blocks:
        return EMPTY
    each = spark.sql(f"SELECT * FROM VALUES {', '.join(blocks)} AS block(partition, first, last)")
    offsets = each.selectExpr("partition", "explode(sequence(first, last)) AS offset")
    return digest_of_row(offsets.agg(*sums_of(F.expr(_hash("partition", "offset")))).collect()[0])


def scan_coverage(
    frame: DataFrame,
    ranges: Ranges,
    policy: GapPolicy,
    in_window: Column | None = None,
    uncommitted: Callable[[Ranges], DataFrame] | None = None,
) -> Coverage:
    """The proof by a scan of its own over a decoded frame: every offset in order, whatever else a job did with them.

    `uncommitted` reads ranges with uncommitted records in them; asked where a gap may be an aborted transaction.
    """
    wanted = {each.partition: each for each in ranges if each.span}
    if not wanted:
        return Coverage()
    scanned = [_scanned(row, wanted[row["partition"]].end) for row in _in_order(frame, ranges, in_window).collect()]
    records = {each.partition: each.records for each in scanned}
    gaps = tuple(each for each in wanted.values() if each.span > records.get(each.partition, 0))
    if not gaps or policy.compacted or policy.isolation is Isolation.UNCOMMITTED or uncommitted is None:
        return explained(ranges, scanned, policy)
    # Distinct: a record that an archive has twice explains no gap.
    counted = uncommitted(gaps).groupBy("partition").agg(F.count_distinct("offset").alias("records")).collect()
    found = {row["partition"]: row["records"] for row in counted}
    return explained(ranges, scanned, policy, {**records, **found})


def count_schema_ids(frame: DataFrame) -> dict[int, int]:
    """Records of a decoded frame by the Avro schema that wrote them."""
    counted = frame.where(F.col(SCHEMA_ID).isNotNull()).groupBy(SCHEMA_ID).count().collect()
    return {row[SCHEMA_ID]: row["count"] for row in counted}


def _in_order(frame: DataFrame, ranges: Ranges, in_window: Column | None) -> DataFrame:
    """One row for each partition: statuses of offsets that are there, how many more than once, and the first gap."""
    starts = " ".join(f"WHEN {each.partition} THEN {each.start - 1}L" for each in ranges)
    flat = frame.select(
        F.expr(f"{POSITION}.partition").alias("partition"),
        F.expr(f"{POSITION}.offset").alias("offset"),
        _code(in_window).alias("code"),
    )
    before = F.lag("offset").over(Window.partitionBy("partition").orderBy("offset"))
    numbered = flat.withColumn("before", F.coalesce(before, F.expr(f"CASE partition {starts} END")))
    return numbered.groupBy("partition").agg(
        *(F.expr(f"count_if(code = {code} AND offset > before)").alias(status) for status, code in _CODES.items()),
        F.expr("count_if(offset = before)").alias("doubled"),
        F.expr("min(if(offset > before + 1, before + 1, NULL))").alias("first_gap"),
        F.max("offset").alias("last"),
    )


def _scanned(row: Row, end: int) -> Scanned:
    gap = row["first_gap"]
    if gap is None and row["last"] + 1 < end:
        gap = row["last"] + 1
    return Scanned(row["partition"], {status: row[status] for status in STATUSES}, row["doubled"], gap)
