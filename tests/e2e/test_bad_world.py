"""A world that fails: names that are not there, a full disk. A clear error, an untouched table, and a way to go on."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from backcast.errors import PlanRefused, Unavailable, UnknownName
from backcast.model.request import Request
from backcast.model.scope import ValueClause
from backcast.model.states import RunState
from backcast.testing.shop import Shop
from tests.e2e.test_exact import Copy


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of four megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill(ballast: Path) -> None:
    """Take what room is left, to the last byte."""
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"0" * 4096)


def test_a_full_disk_stops_the_run_and_it_goes_on_once_there_is_room(
    shop: Shop, lake_root: Path, small_disk: Path
) -> None:
    copy = Copy(shop, lake_root, f"PARTITIONED BY (days(sold_at)) LOCATION '{small_disk}/copy'")
    before, wanted = copy.rows(), copy.expected("to_date(s.sold_at) IN ('2026-01-04', '2026-01-05')")
    plan = copy.control.plan(Request(pipeline="copy", start="2026-01-04", end="2026-01-06"))
    ballast = small_disk / "ballast"
    fill(ballast)
    with pytest.raises(Unavailable, match="No space left on device"):
        copy.control.run(plan.run_id)
    assert copy.rows() == before
    ballast.unlink()
    assert copy.control.run(plan.run_id).state is RunState.ACCEPTED
    copy.control.publish(plan.run_id)
    assert copy.rows() == wanted


def test_names_that_are_not_there_are_named_with_what_there_is(shop: Shop) -> None:
    control = shop.open()
    with pytest.raises(UnknownName, match="revenu") as caught:
        control.plan(Request(pipeline="revenu", start="2026-01-01", end="2026-01-02"))
    assert "revenue" in caught.value.message + caught.value.hint
    with pytest.raises(UnknownName, match="nothing-1"):
        control.status("nothing-1")
    where = (ValueClause(column="tenant", values=("T-41",)),)
    with pytest.raises(PlanRefused, match="'tenant'") as refused:
        control.plan(shop.request().model_copy(update={"where": where}))
    assert "shop" in refused.value.hint
    shop.spark.sql(f"DROP TABLE {shop.revenue}")
    with pytest.raises(UnknownName, match="revenue"):
        shop.open().plan(shop.request())


def test_a_table_that_row_level_deletes_touch_is_refused(shop: Shop) -> None:
    """Merge-on-read and format version 3 are refused at plan time, for now."""
    shop.spark.sql(
        f"ALTER TABLE {shop.revenue} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'format-version'='2')"
    )
    shop.spark.sql(f"DELETE FROM {shop.revenue} WHERE day = '2026-01-04' AND shop = 'S1'")
    codes = {each.code for each in shop.open().plan(shop.request()).findings}
    assert {"target.merge-on-read", "target.delete-files"} <= codes
    shop.spark.sql(f"ALTER TABLE {shop.revenue} SET TBLPROPERTIES ('format-version'='3')")
    assert "target.format-v3" in {each.code for each in shop.open().plan(shop.request()).findings}
