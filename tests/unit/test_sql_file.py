"""A SQL file holds one query; what else is in it is told apart from it without Spark."""

from __future__ import annotations

import pytest

from backcast.errors import InvalidRequest
from backcast.project.sql import one_query


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT 1;\n", "SELECT 1"),
        ("SELECT 1 ;\n-- done; really\n", "SELECT 1"),
        ("SELECT 1; /* a\nb; */ ;", "SELECT 1"),
        ("-- first; line\nSELECT 1", "-- first; line\nSELECT 1"),
        ("SELECT ';', \"it;\", `a;b`, 'it\\'s;'", "SELECT ';', \"it;\", `a;b`, 'it\\'s;'"),
        ("SELECT r'\\', ';' -- x", "SELECT r'\\', ';' -- x"),
        ("\n\nSELECT 1", "\n\nSELECT 1"),
    ],
)
def test_the_query_ends_at_its_semicolon_wherever_others_stand(text: str, query: str) -> None:
    assert one_query("models/daily.sql", text) == query


@pytest.mark.parametrize("after", ["SELECT 2", "x", "-- c\nDROP TABLE t;"])
def test_text_after_the_last_semicolon_names_file_line_and_remedy(after: str) -> None:
    with pytest.raises(InvalidRequest, match=r"models/daily\.sql:2: there is more after the `;`") as caught:
        one_query("models/daily.sql", f"SELECT 1\nFROM events; {after}\n")
    assert "one query" in caught.value.hint


@pytest.mark.parametrize(("text", "got"), [("", "an empty file"), (" ;\n", "an empty file"), ("-- later", "comments")])
def test_a_file_without_a_query_is_told(text: str, got: str) -> None:
    with pytest.raises(InvalidRequest, match=f"models/daily.sql: expected a query, got {got}"):
        one_query("models/daily.sql", text)
