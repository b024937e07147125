"""What Iceberg's metrics of files prove about every row of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from backcast.spark.iceberg.expressions import java_value
from backcast.spark.predicates import balanced, parse_value

if TYPE_CHECKING:
    from backcast.model.table import Claim
    from backcast.spark.iceberg.handle import TableHandle
    from backcast.spark.predicates import Types


def proven(handle: TableHandle, table: Any, files: Iterable[Any], claims: Sequence[Claim]) -> frozenset[Claim]:
    """Claims that hold for all rows of all these files: one call for each file, as long as all of them do."""
    types, schema = handle.types(table), table.schema()
    evaluator = handle.java("expressions.StrictMetricsEvaluator")
    both = getattr(handle.java("expressions.Expressions"), "and")
    told = [claim for claim in claims if _can_be_told(claim, types) and not _is_uuid(claim, schema)]
    expressions = {claim: _expression(handle, claim, types) for claim in told}
    single = {claim: evaluator(schema, each) for claim, each in expressions.items()}
    left, joined = dict(expressions), None
    for data_file in files:
        if not left:
            break
        joined = joined or evaluator(schema, balanced(list(left.values()), both))
        if not joined.eval(data_file):
            left = {claim: each for claim, each in left.items() if single[claim].eval(data_file)}
            joined = None
    return frozenset(left)


def _can_be_told(claim: Claim, types: Types) -> bool:
    """Bounds leave out values that are no numbers, and not every writer counts those."""
    return claim.column in types and (claim.not_null or types[claim.column] not in ("float", "double"))


def _is_uuid(claim: Claim, schema: Any) -> bool:
    """Text to Spark, and ordered as something else."""
    return not claim.not_null and str(schema.findType(claim.column)) == "uuid"


def _expression(handle: TableHandle, claim: Claim, types: Types) -> Any:
    expressions, name = handle.java("expressions.Expressions"), claim.column
    ends = (("greaterThanOrEqual", claim.least), ("lessThanOrEqual", claim.greatest))
    parts = [
        getattr(expressions, operation)(name, java_value(parse_value(end, types[name])))
        for operation, end in ends
        if end is not None
    ]
    if claim.not_null:
        parts.append(expressions.notNull(name))
    return balanced(parts, getattr(expressions, "and")) if parts else expressions.alwaysTrue()
