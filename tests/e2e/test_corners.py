"""Odd tables, odd requests and odd transforms: the right rows, or a refusal that says why, and an untouched table."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from backcast.attest.archive import unpacked
from backcast.attest.bundle import bundle
from backcast.errors import PlanRefused, UndoRefused
from backcast.model.scope import ValueClause
from backcast.model.states import RunState
from backcast.testing.shop import Shop

DAY = ("2026-01-04", "2026-01-05")


def edit(shop: Shop, file: str, old: str, new: str) -> None:
    path = shop.root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_value_scope_over_files_older_than_its_partition_field_is_cut_row_by_row(shop: Shop) -> None:
    """Files of the older spec hold other shops too: those rows stay as they are."""
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD PARTITION FIELD shop")
    shop.live("2026-01-04", "S1")
    before = shop.rows()
    restated = Counter(row for row in shop.expected(*DAY) if str(row[0]) == DAY[0] and row[1] == "S1")
    wanted = Counter({row: n for row, n in before.items() if str(row[0]) != DAY[0] or row[1] != "S1"}) + restated
    control = shop.open()
    request = shop.request(*DAY).model_copy(update={"where": (ValueClause(column="shop", values=("S1",)),)})
    publication = control.backfill(request)
    assert shop.rows() == wanted
    (verdict,) = json.loads(unpacked(bundle(control.evidence(publication.run_id)))["verdicts.json"])
    had = sum(n for row, n in before.items() if str(row[0]) == DAY[0] and row[1] == "S1")
    change = {"before": had, "after": restated.total(), "chunks": [], "rewritten": False}
    assert verdict["change"] == change, "nobody asked for a diff, and the bundle of a backfill tells as much as is free"
    control.undo(publication.run_id)
    assert shop.rows() == before


@pytest.mark.parametrize(
    ("declared", "wrong"),
    [
        ("column: sold_at, kind: timestamp", "column: sold_at, kind: date"),
        ("column: sold_at, kind: timestamp", "column: sold_at, kind: timestamp_ntz"),
        ("column: day, kind: date", "column: day, kind: string, format: yyyy-MM-dd"),
    ],
)
def test_a_time_column_of_another_type_than_declared_is_refused(shop: Shop, declared: str, wrong: str) -> None:
    """Both compare without complaint, and in another zone than UTC the scope would be hours off."""
    edit(shop, "backcast.yaml", declared, wrong)
    with pytest.raises(PlanRefused, match="but declared as kind"):
        shop.open().plan(shop.request(*DAY))


def test_two_columns_of_one_name_are_refused_by_the_plan(shop: Shop) -> None:
    edit(
        shop, "pipelines/revenue.py", '.alias("revenue"))', '.alias("revenue")).selectExpr("*", "upper(shop) AS shop")'
    )
    plan = shop.open().plan(shop.request(*DAY))
    assert plan.refused
    assert "more than one column called shop" in plan.findings[0].reason


def test_an_undo_that_would_have_to_compare_maps_is_refused(shop: Shop) -> None:
    """Spark cannot compare rows with maps one by one; an undo by files needs no comparison and still works."""
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMN tags MAP<STRING, STRING>")
    edit(
        shop,
        "pipelines/revenue.py",
        '.alias("revenue"))',
        '.alias("revenue")).selectExpr("*", "map(\'k\', shop) AS tags")',
    )
    control = shop.open()
    run_id = control.backfill(shop.request(*DAY)).run_id
    control.undo(run_id)
    control.publish(run_id)
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day = DATE'{DAY[0]}' AND shop = 'S1'")
    with pytest.raises(UndoRefused, match="tags holds maps"):
        control.undo(run_id, rewrite=True)
    assert control.status(run_id).run.state is RunState.PUBLISHED
