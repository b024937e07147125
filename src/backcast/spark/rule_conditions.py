"""Rules as Spark columns: which rows they look at, which of those break them. A null breaks nothing but not_null."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from backcast.model.rule import Per, Rule, RuleKind
from backcast.model.scope import TimeClause
from backcast.spark.predicates import literal, parse_value, quote, text_literal, to_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from backcast.model.scope import Predicate
    from backcast.spark.predicates import Types

PART = "backcast_part"
_PREVIOUS = "backcast_previous"
_SIZED = ("array", "map")
_PLAIN = re.compile(r"(\^?)([A-Za-z0-9_@ /:,;=<>#%&~!'\"-]+)")


def column(name: str) -> Column:
    return F.col(quote(name))


def where_sql(rule: Rule) -> str | None:
    """The rule's `where` as a part of longer SQL; None when it looks at every row."""
    if rule.where is None:
        return None
    F.expr(rule.where)  # Parsed on its own: what is no condition by itself fails here, and closes no bracket of ours.
    return f"({rule.where}\n)"


def looked_at(rule: Rule) -> Column | None:
    """The rule's `where` as a column; None when it looks at every row."""
    return None if rule.where is None else F.expr(rule.where)


def only(rows: DataFrame, rule: Rule) -> DataFrame:
    """The rows that the rule looks at."""
    where = looked_at(rule)
    return rows if where is None else rows.where(where)


def broken(rule: Rule, types: Types) -> Column:
    """Whether a row breaks the rule, which is one of those that rows can break."""
    return F.expr(broken_sql(rule, types))


def broken_sql(rule: Rule, types: Types, number: int = 0) -> str:
    """The same as SQL, for which the JVM is called once and not a dozen times; `number` as `with_previous` had it."""
    found, where = _broken(rule, types, number), where_sql(rule)
    return f"({found})" if where is None else f"({where} AND ({found}))"


def _broken(rule: Rule, types: Types, number: int) -> str:
    value, kind = quote(rule.column), types[rule.column]
    match rule.kind:
        case RuleKind.NOT_NULL:
            return " OR ".join(f"{quote(name)} IS NULL" for name in rule.columns)
        case RuleKind.RANGE:
            outside = [
                f"{value} {sign} {literal(bound, kind)}"
                for sign, bound in (("<", rule.minimum), (">", rule.maximum))
                if bound is not None
            ]
            # A value that is no number is greater than every number, and in no range.
            nan = [f"isnan({value})"] if kind in ("float", "double") else []
            return " OR ".join(outside + nan)
        case RuleKind.ACCEPTED:
            return f"{value} NOT IN ({', '.join(literal(each, kind) for each in rule.values)})"
        case RuleKind.PATTERN:
            return f"NOT {_matching(value, rule.matches or '')}"
        case RuleKind.LENGTH:
            size = f"{'size' if kind.startswith(_SIZED) else 'length'}({value})"
            return f"{value} IS NOT NULL AND {_outside(size, rule)}"
        case RuleKind.MONOTONIC:
            return f"{value} < {_PREVIOUS}_{number}"
        case _:
            raise ValueError(rule.kind)


def _outside(size: str, rule: Rule) -> str:
    """Counting characters is the expensive part: it is done once, also when there are two bounds."""
    if rule.minimum is None or rule.maximum is None:
        return f"{size} < {int(rule.minimum)}" if rule.minimum is not None else f"{size} > {int(rule.maximum or 0)}"
    low, high = int(rule.minimum), int(rule.maximum)
    return f"abs(CAST({size} AS BIGINT) * 2 - {low + high}L) > {high - low}L"


def _matching(value: str, pattern: str) -> str:
    """Many patterns are a plain text or begin with one: for those no regular expression has to be run."""
    found = _PLAIN.fullmatch(pattern)
    if found is None:
        return f"rlike({value}, {text_literal(pattern)})"
    return f"{'startswith' if found[1] else 'contains'}({value}, {text_literal(found[2])})"


def with_previous(rows: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """The rows, with the last value before each of them for every monotonic rule. Equal orders break nothing.

    Needs the column of parts where a rule is about each of them.
    """
    added = {}
    for number, rule in enumerate(rules):
        if rule.kind is not RuleKind.MONOTONIC:
            continue
        value = quote(rule.column)
        seen = value if rule.where is None else f"CASE WHEN ({rule.where}\n) THEN {value} END"
        groups = [*map(quote, rule.by), *([PART] if rule.per is Per.PARTITION else [])]
        order = ", ".join([*map(quote, rule.order), value])
        partition = f"PARTITION BY {', '.join(groups)} " if groups else ""
        added[f"{_PREVIOUS}_{number}"] = F.expr(f"lag({seen}) IGNORE NULLS OVER ({partition}ORDER BY {order})")
    return rows.withColumns(added) if added else rows


def part_of(parts: Mapping[str, Predicate], types: Types) -> Column:
    """The number of the first part that a row matches. All rows are of one part when there is only one."""
    if len(parts) == 1:
        return F.lit(0)
    ranges = _ranges(parts, types)
    if ranges is not None:
        return F.expr(_searched(ranges))
    # One flat CASE: nested ones overflow the JVM's stack when a year is cut into days.
    cases = " ".join(f"WHEN {to_sql(each, types)} THEN {number}" for number, each in enumerate(parts.values()))
    return F.expr(f"CASE {cases} END")


def _ranges(parts: Mapping[str, Predicate], types: Types) -> list[tuple[str, str, str, int]] | None:
    """Column, first value, end and number of each part in order, if each is one range of the same column."""
    found = []
    for number, part in enumerate(parts.values()):
        clause = part.clauses[0] if len(part.clauses) == 1 else None
        if not isinstance(clause, TimeClause) or len(clause.ranges) != 1:
            return None
        found.append((clause.column, *clause.ranges[0], number))
    ordered = sorted(found, key=lambda each: parse_value(each[1], types[each[0]]))
    ends = [parse_value(end, types[name]) for name, _, end, _ in ordered]
    starts = [parse_value(start, types[name]) for name, start, _, _ in ordered]
    apart = all(end <= start for end, start in zip(ends, starts[1:], strict=False))  # type: ignore[operator]  # of one type
    if len({each[0] for each in found}) > 1 or not apart:
        return None
    kind = types[found[0][0]]
    return [(quote(name), literal(start, kind), literal(end, kind), number) for name, start, end, number in ordered]


def _searched(ranges: list[tuple[str, str, str, int]]) -> str:
    """A search by halves: of a year of days nine are compared with, not all."""
    if len(ranges) == 1:
        ((name, start, end, number),) = ranges
        return f"CASE WHEN {name} >= {start} AND {name} < {end} THEN {number} END"
    middle = len(ranges) // 2
    name, start, _, _ = ranges[middle]
    return f"CASE WHEN {name} < {start} THEN {_searched(ranges[:middle])} ELSE {_searched(ranges[middle:])} END"


def types_of(rows: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in rows.schema.fields}
