"""What an adapter says about a table, its files and its rows at a version."""

from __future__ import annotations

import pytest

from backcast.errors import Drifted, InvalidRequest, UnknownName
from backcast.model.column import TimeColumn, TimeKind
from backcast.model.scope import Predicate, TimeClause
from backcast.model.table import Claim
from backcast.testing.target_lab import Lab
from backcast.testing.target_moves import ALL, days, instants, rows_of, where
from backcast.testing.target_suite import TargetSuite

_KINDS = (
    "ts TIMESTAMP, wall TIMESTAMP_NTZ, `the-day` STRING, ymd INT, ms BIGINT, who STRING, amount DECIMAL(10,2), "
    "ratio FLOAT, ok BOOLEAN"
)
_TEXT = 'it\'s a \\ "back`slash" \n'


class ReadContract(TargetSuite):
    """Facts, files and rows."""

    def test_facts_show_identity_version_and_time(self, lab: Lab) -> None:
        """Rows move the version and not the identity; a version that is gone, or never was, is drift."""
        table = lab.create()
        target = table.target()
        empty = target.facts()
        assert [(c.name, c.type, c.nullable) for c in empty.identity.columns] == [
            ("id", "bigint", True),
            ("day", "date", True),
            ("v", "double", True),
        ]
        assert [f.source for f in empty.identity.partition_fields] == ["day"]
        assert empty.identity.format == lab.format
        table.append((1, 1, 1.0))
        first = target.facts()
        assert first.identity == empty.identity
        assert first.version not in (None, empty.version)
        assert first.committed_at is not None
        table.append((2, 2, 2.0))
        assert target.facts(first.version).version == first.version != target.facts().version
        assert lab.create().target().facts().identity.uuid != first.identity.uuid
        for gone in ("123", "not-a-version"):
            with pytest.raises(Drifted):
                target.facts(gone)

    def test_files_are_narrowed_by_partition_and_by_column_bounds(self, lab: Lab) -> None:
        """Only files that can hold matching rows are listed, with partition, rows and size from metadata."""
        table = lab.three_days()
        target = table.target()
        version = target.facts().version
        two = target.files(version, days(2, 3))
        assert sorted((f.partition, f.rows, f.deletes) for f in two.files) == [
            ("day=2026-01-02", 4, 0),
            ("day=2026-01-03", 4, 0),
        ]
        assert all(f.size > 0 for f in two.files)
        assert target.files(None, ALL).files == ()
        assert target.files(version, days(9, 9)).files == ()
        table.append((900, 1, 900.0))
        assert len(target.files(version, days(1, 1)).files) == 1
        by_bounds = target.files(target.facts().version, where("id", "900"))
        assert [f.rows for f in by_bounds.files] == [1]

    def test_rows_are_read_at_a_version_and_only_those_that_match(self, lab: Lab) -> None:
        """An older version does not see later rows; no version has the schema; unknown columns are named."""
        table = lab.three_days()
        target = table.target()
        version = target.facts().version
        table.append((900, 1, 1.0))
        assert [number for number, _, _ in rows_of(target.read(version, days(1, 1)))] == [0, 3, 6, 9]
        assert target.read(None, days(1, 1)).schema == lab.spark.table(table.name).schema
        assert target.read(None, ALL).count() == 0
        with pytest.raises(UnknownName, match="nothing"):
            target.read(version, where("nothing", "1"))
        with pytest.raises(InvalidRequest, match="bigint"):
            target.read(version, where("id", "one"))

    def test_exactly_the_given_files_are_read(self, lab: Lab) -> None:
        """Also those that the predicate near them does not list."""
        table = lab.three_days()
        target = table.target()
        base = target.facts().version
        table.append((900, 1, 1.0))
        table.append((901, 2, 2.0))
        head = target.facts().version
        arrived = target.files(head, ALL).paths - target.files(base, ALL).paths
        assert rows_of(target.read_files(head, arrived, days(1, 1))) == [(900, 1, 1.0), (901, 2, 2.0)]
        assert target.read_files(head, frozenset(), ALL).count() == 0
        assert target.read_files(None, arrived, ALL).schema == lab.spark.table(table.name).schema

    def test_every_kind_of_column_can_bound_a_scope(self, lab: Lab) -> None:
        """Spark's filter and the format's agree for each type, for quotes and backslashes in values, for odd names."""
        table = lab.create(partitioned=False, columns=_KINDS)
        lab.spark.sql(
            f"INSERT INTO {table.name} SELECT TIMESTAMP'2026-01-01 00:00:00Z', TIMESTAMP_NTZ'2026-01-01 00:00:00', "
            "'2026-01-01', 20260101, 1767225600000, :who, 1.50, CAST(0.5 AS FLOAT), true",
            args={"who": _TEXT},
        )
        target = table.target()
        version = target.facts().version
        inside = _inside()
        everything = Predicate(clauses=tuple(clause for each in inside for clause in each.clauses))
        assert target.read(version, everything).count() == 1
        for each in inside:
            assert len(target.files(version, each).files) == 1, each
        for each in _outside():
            assert target.read(version, each).count() == 0, each
            assert target.files(version, each).files == (), each

    def test_metadata_prove_what_they_can_about_every_row(self, lab: Lab) -> None:
        """Of the files that can hold matching rows, ends included; never more than the rows say, and no float."""
        table = lab.create(columns=f"day DATE, {_KINDS}")
        values = "TIMESTAMP'2026-01-01 00:00:00.000{micros}Z', {wall}, 'x', 20260101, {ms}, {who}, {amount}"
        for day, micros, wall, ms, who, amount in (
            ("01", "000", "TIMESTAMP_NTZ'2026-01-01 00:00:00'", "1", "'anna'", "1.50"),
            ("01", "777", "TIMESTAMP_NTZ'2026-01-01 00:00:00'", "9", f"repeat('z', {_LONG})", "2.25"),
            ("02", "000", "null", "-5", "null", "null"),
        ):
            row = values.format(micros=micros, wall=wall, ms=ms, who=who, amount=amount)
            lab.spark.sql(f"INSERT INTO {table.name} SELECT DATE'2026-01-{day}', {row}, FLOAT('NaN'), true")
        target = table.target()
        version = target.facts().version
        first = where("day", "2026-01-01")
        assert target.proven(version, first, _TRUE) == frozenset(_TRUE)
        assert target.proven(version, first, _FALSE) == frozenset()
        assert target.proven(version, ALL, [_TRUE[0], *_FALSE, *_ONLY_OF_THE_FIRST_DAY]) == {_TRUE[0]}
        assert target.proven(version, first, _ONLY_OF_THE_FIRST_DAY) == frozenset(_ONLY_OF_THE_FIRST_DAY)
        assert target.proven(None, ALL, _FALSE) == frozenset(_FALSE), "no row breaks anything"


_LONG = 50
"""More characters than the statistics of a format hold."""
_TRUE = (
    Claim("day", not_null=True),
    Claim("ts", least="2026-01-01T00:00:00", greatest="2026-01-01T00:00:00.001"),
    Claim("ymd", least="20260101", greatest="20260101"),
    Claim("who", least="a"),
    Claim("ratio", not_null=True),
)
_FALSE = (
    Claim("ts", greatest="2026-01-01T00:00:00.000776"),
    Claim("ms", greatest="8"),
    Claim("ms", least="2"),
    Claim("who", greatest="z" * (_LONG - 1)),
    Claim("amount", least="1.51"),
    Claim("ratio", least="0"),
    Claim("nobody", not_null=True),
)
_ONLY_OF_THE_FIRST_DAY = (
    Claim("wall", not_null=True),
    Claim("ms", least="1", greatest="9"),
    Claim("amount", not_null=True),
    Claim("amount", least="1.50", greatest="2.25"),
)


def _between(column: TimeColumn, low: str, high: str) -> Predicate:
    return Predicate(clauses=(TimeClause(time=column, ranges=((low, high),)),))


def _inside() -> tuple[Predicate, ...]:
    """One predicate per column that the one row matches."""
    wall = TimeColumn(column="wall", kind=TimeKind.TIMESTAMP_NTZ)
    text = TimeColumn(column="the-day", kind=TimeKind.STRING, format="yyyy-MM-dd")
    number = TimeColumn(column="ymd", kind=TimeKind.INTEGER, format="yyyyMMdd")
    millis = TimeColumn(column="ms", kind=TimeKind.INTEGER, format="epoch_millis")
    return (
        instants("ts", "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000001Z"),
        _between(wall, "2026-01-01T00:00:00.000000", "2026-01-01T01:00:00.000000"),
        _between(text, "2026-01-01", "2026-01-02"),
        _between(number, "20260101", "20260102"),
        _between(millis, "1767225600000", "1767225600001"),
        where("who", "x", _TEXT),
        where("amount", "1.5"),
        where("ratio", "0.5"),
        where("ok", "true"),
    )


def _outside() -> tuple[Predicate, ...]:
    """Predicates that the row's bounds rule out."""
    return (
        instants("ts", "2026-01-01T00:00:00.001000Z", "2026-01-02T00:00:00.000000Z"),
        where("who", "x", _TEXT.upper()),
        where("amount", "1.51"),
        Predicate(clauses=(TimeClause(time=TimeColumn(column="ts"), ranges=()),)),
    )
