"""Which rows of a transform's result belong to a job, which are cut, and which must not be there at all."""

from __future__ import annotations

from backcast.model.scope import Predicate, TimeClause
from backcast.spark.predicates import Types, quote, text_literal, to_sql


def kept(keep: Predicate, spare: Predicate, types: Types) -> str:
    """A condition that is true for rows to keep, false for spare ones, and that fails on any other row.

    One text for the JVM to parse: built of columns it takes a hundred calls.
    """
    times = [clause for clause in keep.clauses if isinstance(clause, TimeClause)]
    cases = [f"WHEN {to_sql(keep, types)} THEN true"]
    if times[1:]:
        # Rows of the window in another window's partition: cut like warm-up, they would be lost unseen.
        misplaced = Predicate(clauses=tuple(clause for clause in keep.clauses if clause not in times[1:]))
        cases.append(f"WHEN {to_sql(misplaced, types)} THEN {_refused('in a partition of another window', times)}")
    cases.append(f"WHEN {to_sql(spare, types)} THEN false")
    return f"CASE {' '.join(cases)} ELSE {_refused('outside the window and its warm-up', times)} END"


def _refused(where: str, times: list[TimeClause]) -> str:
    names = (each.time.column for each in times)
    values = (f"{text_literal(f'{name} = ')}, coalesce(CAST({quote(name)} AS STRING), 'NULL')" for name in names)
    row = ", ".join(f"concat({each})" for each in values)
    told = f"concat('BACKCAST_OUT_OF_SCOPE a row lies {where}: ', concat_ws(', ', {row}))"
    return f"CAST(raise_error({told}) AS BOOLEAN)"
