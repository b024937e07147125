"""`doctor` tells what does not work, each thing by its name and with what to do, and goes on with the rest."""

from __future__ import annotations

from backcast.testing.shop import Shop


def test_broken_code_a_missing_table_and_a_missing_column_are_three_probes(shop: Shop) -> None:
    well = {probe.name: probe for probe in shop.open().doctor()}
    assert all(probe.ok for probe in well.values()), well
    assert {"store", "disk", "memory", "spark", "pipeline revenue", "catalog lake", "dataset revenue"} <= well.keys()

    code = shop.root / "pipelines" / "revenue.py"
    code.write_text("import nowhere_to_be_found\n" + code.read_text())
    shop.spark.sql(f"DROP TABLE {shop.sales}")
    shop.spark.sql(f"ALTER TABLE {shop.revenue} RENAME COLUMN shop TO store")
    ill = {probe.name: probe for probe in shop.open().doctor() if not probe.ok}
    assert ill.keys() == {"pipeline revenue", "dataset sales", "dataset revenue"}
    assert "pipelines/revenue.py:1" in ill["pipeline revenue"].detail
    assert "no column shop" in ill["dataset revenue"].detail
    assert all(probe.remedy for probe in ill.values())
