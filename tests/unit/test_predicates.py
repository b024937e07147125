"""Values that were typed become literals of the column's own type, or a clear error."""

from __future__ import annotations

import pytest

from backcast.errors import InvalidRequest, UnknownName
from backcast.model.scope import Predicate, ValueClause
from backcast.spark.predicates import literal, to_sql


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("300", "tinyint"),
        ("-32769", "smallint"),
        ("9223372036854775808", "bigint"),
        ("1.5", "int"),
        ("1.234", "decimal(10,2)"),
        ("nan", "double"),
        ("2026-02-30", "date"),
        ("2026-01-01T00:00Z", "timestamp_ntz"),
        ("yes", "boolean"),
        ("x", "array<int>"),
    ],
)
def test_a_value_that_the_column_cannot_hold_is_refused_before_spark_sees_it(text: str, kind: str) -> None:
    with pytest.raises(InvalidRequest):
        literal(text, kind)


def test_a_bound_beyond_the_range_of_an_int_column_compares_as_a_bigint() -> None:
    assert literal("2208988800", "int") == "2208988800"


def test_signs_of_sql_in_a_value_or_a_name_stay_part_of_it() -> None:
    clause = ValueClause(column="ten`ant", values=("a' OR '1'='1",))
    text = to_sql(Predicate(clauses=(clause,)), {"ten`ant": "string"})
    assert text == "(`ten``ant` IN (CAST(X'6127204f52202731273d2731' AS STRING)))"
    with pytest.raises(UnknownName):
        to_sql(Predicate(clauses=(clause,)), {"tenant": "string"})
