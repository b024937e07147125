"""Two versions of a dataset, or two parts, compared without any run; and what `diff` says of a run, on both formats."""

from __future__ import annotations

import io
import json
import time
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

import pytest

from backcast.cli.dispatch import dispatch
from backcast.cli.render.diff import render_compared, render_diff
from backcast.demo.shell import in_process
from backcast.errors import InvalidRequest, UnknownName
from backcast.model.diff import Compared, Diff
from backcast.model.pipeline import TableFormat
from backcast.page.diff import compared_page, diff_page
from tests.unit.cli_screens import shown

if TYPE_CHECKING:
    from backcast.control import ControlPlane
    from backcast.testing.shop import Shop

pytestmark = pytest.mark.parametrize("shop", TableFormat, indirect=True, ids=str)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_a_run_tells_chunks_columns_and_rows_that_change(shop: Shop) -> None:
    """And still does once it is published, and undone."""
    control = shop.open()
    plan = control.plan(shop.request())
    control.run(plan.run_id)
    diff = control.diff(plan.run_id, samples=3)
    expected = shop.expected() - shop.rows()
    assert diff.rows is not None
    assert (diff.rows.by, diff.rows.changed, diff.rows.added, diff.rows.removed) == ("key", len(expected), 0, 0)
    assert [each.rows.changed for each in diff.partitions if each.rows] == [2, 2, 2, 2]
    assert [(each.name, each.changed) for each in diff.columns] == [("revenue", 8)]
    assert len(diff.samples) == 3
    assert {tuple(each.key) for each in diff.samples} == {("day", "shop")}
    page = flat(shown(render_diff(diff)))
    for sentence in ("rows: 8 changed by key day, shop", "revenue 8 0 sum", "~ changed day=2026-01-03, shop=S"):
        assert sentence in page, page
    html = diff_page(diff)
    assert "http" not in html.replace("http-equiv", "")
    assert "<svg" in html
    rows = control.diff_rows(plan.run_id)
    assert {row["_change"] for row in rows.collect()} == {"changed"}
    assert rows.where("before.revenue < after.revenue").count() == 8
    told = typed(control, shop, "diff", plan.run_id, "--rows", "3", "--html", f"{shop.root}/diff.html")
    assert Diff.model_validate(told).rows == diff.rows
    assert (shop.root / "diff.html").read_text().count("<svg") == html.count("<svg")
    control.publish(plan.run_id)
    assert control.diff(plan.run_id).rows == diff.rows
    control.undo(plan.run_id)
    assert control.diff(plan.run_id, rows=False).rows is None


def typed(control: ControlPlane, shop: Shop, *arguments: str) -> dict[str, Any]:
    """The one document that a command prints with `--json`. A page that is there is not written over."""
    out = io.StringIO()
    with in_process(control), redirect_stdout(out), redirect_stderr(io.StringIO()):
        again = [*arguments, "--json", "--project", str(shop.root)]
        assert dispatch(again) == 0
        assert dispatch(again) == InvalidRequest.exit_code
    first, _, _ = out.getvalue().partition("\n{")
    document: dict[str, Any] = json.loads(first)
    return document


def test_versions_are_named_by_number_and_by_time(shop: Shop) -> None:
    control = shop.open()
    first = control.world.version("revenue", "head")
    time.sleep(1.1)
    between = datetime.now(UTC).isoformat()
    time.sleep(1.1)
    shop.spark.sql(f"INSERT INTO {shop.revenue} VALUES (DATE'2026-02-01', 'S9', 1, 2.00)")
    shop.spark.sql(f"UPDATE {shop.revenue} SET sales = sales + 1 WHERE day = DATE'2026-01-05' AND shop = 'S0'")
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day = DATE'2026-01-06' AND shop = 'S1'")
    by_number = control.compare("revenue", start=first)
    rows = by_number.rows
    assert rows is not None
    assert (rows.added, rows.removed, rows.changed) == (1, 1, 1)
    assert {each.chunk: each.status for each in by_number.partitions if each.status != "same"} == {
        "2026-01-05": "changed",
        "2026-01-06": "changed",
        "2026-02-01": "added",
    }
    [changed] = [each for each in by_number.samples if each.change == "changed"]
    assert changed.key == {"day": "2026-01-05", "shop": "S0"}
    assert [(cell.column, cell.before, cell.after) for cell in changed.cells] == [("sales", "20", "21")]
    assert control.compare("revenue", start=between).rows == rows
    frame = control.compare_rows("revenue", start=first)
    assert {row["_change"] for row in frame.collect()} == {"added", "removed", "changed"}
    assert frame.where("_change = 'changed'").select("day", "before.sales", "after.sales").collect() == [
        (date(2026, 1, 5), 20, 21)
    ]
    assert control.compare_rows("revenue", start=first, end=first).isEmpty()
    told = typed(control, shop, "compare", "revenue", "--from", first, "--html", f"{shop.root}/compared.html")
    assert Compared.model_validate(told) == by_number
    assert (shop.root / "compared.html").read_text() == compared_page(by_number)
    assert control.compare("revenue", start=first, end=first).rows is None
    page = flat(shown(render_compared(by_number)))
    assert "rows: 1 added, 1 removed, 1 changed by key day, shop" in page
    assert "2026-01-01 .. 2026-01-04" in page
    assert Compared.model_validate_json(by_number.model_dump_json()) == by_number
    assert "Comparison of revenue" in compared_page(by_number)
    for wrong in ("999999999", "2001-01-01", "no-such-tag"):
        with pytest.raises(UnknownName, match="has no version"):
            control.compare("revenue", start=wrong)


def test_two_parts_are_compared_without_the_columns_that_name_them(shop: Shop) -> None:
    """A partition of one day against one that was kept as of that day, in another dataset."""
    control = shop.open()
    form = shop.format
    table = f"{shop.namespace}.kept" if form is TableFormat.ICEBERG else f"delta.`{shop.root}/lake/kept`"
    shop.spark.sql(
        f"CREATE TABLE {table} USING {form} AS SELECT DATE'2026-01-04' AS as_of_date, day AS dt, shop, sales,"
        f" revenue FROM {shop.revenue} WHERE day = DATE'2026-01-04'"
    )
    shop.spark.sql(f"UPDATE {table} SET revenue = 0 WHERE shop = 'S3'")
    place = f"table: {table}" if form is TableFormat.ICEBERG else "path: lake/kept"
    config = shop.root / "backcast.yaml"
    config.write_text(config.read_text().replace("pipelines:\n", f"  kept: {{{place}}}\npipelines:\n", 1))
    control = shop.open()
    found = control.compare(
        "revenue", "kept", left={"day": "2026-01-04"}, right={"as_of_date": "2026-01-04"}, ignore=["dt"]
    )
    assert found.rows is not None
    assert (found.rows.by, found.rows.key, found.rows.changed) == ("key", ("shop",), 1)
    assert found.columns_changed.sentences() == []
    parts = control.compare("revenue", left={"day": ["2026-01-04"]}, right={"day": "2026-01-05"})
    assert parts.rows is not None
    assert parts.left.where == ("day=2026-01-04",)
    with pytest.raises(InvalidRequest, match="compared with"):
        control.compare("revenue")
    with pytest.raises(UnknownName, match="to ignore"):
        control.compare("revenue", start="head", ignore=["nothing"])


def test_a_schema_that_changed_between_versions_is_explained(shop: Shop) -> None:
    control = shop.open()
    first = control.world.version("revenue", "head")
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMN currency STRING")
    shop.spark.sql(f"INSERT INTO {shop.revenue} VALUES (DATE'2026-01-05', 'S9', 1, 2.00, 'EUR')")
    found = control.compare("revenue", start=first)
    assert found.columns_changed.sentences() == ["column currency (string) was added"]
    assert found.rows is not None
    assert (found.rows.added, found.rows.changed) == (1, 0)


def test_tolerance_and_masking_come_from_the_dataset(shop: Shop) -> None:
    config = shop.root / "backcast.yaml"
    told = "key: [day, shop]\n    masked: [Shop]\n    diff: {tolerance: {revenue: 0.5, sales: 50%}}"
    config.write_text(config.read_text().replace("key: [day, shop]", told))
    control = shop.open()
    first = control.world.version("revenue", "head")
    shop.spark.sql(f"UPDATE {shop.revenue} SET revenue = revenue + 0.5 WHERE day = DATE'2026-01-05'")
    shop.spark.sql(f"UPDATE {shop.revenue} SET sales = sales * 3 WHERE day = DATE'2026-01-06' AND shop = 'S1'")
    found = control.compare("revenue", start=first)
    assert found.rows is not None
    assert (found.rows.tolerated, found.rows.changed) == (2, 1)
    assert {each.key["shop"] for each in found.samples} == {"***"}
    assert "S1" not in found.model_dump_json()
    config.write_text(config.read_text().replace("masked: [Shop]", "masked: [note]"))
    with pytest.raises(UnknownName, match="`masked` of dataset revenue names column 'note'"):
        shop.open().compare("revenue", start=first)
    shop.spark.sql(f"ALTER TABLE {shop.revenue} ADD COLUMN note STRING")
    assert shop.open().compare("revenue", start=first, end=first).samples == ()
