"""Whether a data file lies in a scope, from its partition and its column bounds alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from backcast.model.scope import Clause, Predicate
from backcast.spark.iceberg.expressions import clause_expression
from backcast.spark.iceberg.files import Specs
from backcast.spark.iceberg.handle import TableHandle


@dataclass(slots=True)
class _ClauseBounds:
    """Iceberg's evaluators for one clause; those on partitions are made once for each spec."""

    handle: TableHandle
    expression: Any
    strict: Any
    inclusive: Any
    partitions: dict[tuple[int, bool], Any] = field(default_factory=dict)

    def in_partition(self, specs: Specs, data_file: Any, *, strict: bool) -> bool:
        key = (data_file.specId(), strict)
        spec, partitioned = specs.get(key[0])
        if not partitioned:
            return not strict
        if key not in self.partitions:
            projections = self.handle.java("expressions.Projections")
            projection = projections.strict(spec) if strict else projections.inclusive(spec)
            evaluator = self.handle.java("expressions.Evaluator")
            self.partitions[key] = evaluator(spec.partitionType(), projection.project(self.expression))
        return bool(self.partitions[key].eval(data_file.partition()))


class ScopeBounds:
    """Asks of files whether a scope holds all of their rows, or could hold any."""

    def __init__(self, handle: TableHandle, table: Any, scope: Predicate) -> None:
        self._specs = Specs(table)
        types, schema = handle.types(table), table.schema()

        def bounds(clause: Clause) -> _ClauseBounds:
            expression = clause_expression(handle, clause, types)
            strict = handle.java("expressions.StrictMetricsEvaluator")(schema, expression)
            inclusive = handle.java("expressions.InclusiveMetricsEvaluator")(schema, expression)
            return _ClauseBounds(handle, expression, strict, inclusive)

        self._clauses = [bounds(clause) for clause in scope.clauses]

    def holds_all(self, data_file: Any) -> bool:
        """True only when it is proven that every row lies in the scope; each clause may be proven its own way."""
        return all(
            clause.in_partition(self._specs, data_file, strict=True) or clause.strict.eval(data_file)
            for clause in self._clauses
        )

    def may_hold_any(self, data_file: Any) -> bool:
        """False only when it is proven that no row lies in the scope."""
        return all(
            clause.in_partition(self._specs, data_file, strict=False) and clause.inclusive.eval(data_file)
            for clause in self._clauses
        )
