"""Inputs at an older version: named, or as of a moment."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.errors import PlanRefused
from backcast.model.manifest import Semantics
from backcast.model.pipeline import InputSpec, Relation
from backcast.sources.tables import TableInput
from backcast.testing.target_delta import DeltaLab
from backcast.testing.target_iceberg import IcebergLab
from backcast.testing.target_moves import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("table_format", ["iceberg", "delta"])
def test_an_input_is_read_at_the_version_that_is_named_or_was_the_newest_then_as_long_as_it_is_there(
    spark: SparkSession, namespace: str, tmp_path: Path, table_format: str
) -> None:
    """Not there: expired, cleaned up, before the first, or yet to come."""
    table = (IcebergLab(spark, namespace) if table_format == "iceberg" else DeltaLab(spark, tmp_path)).create()
    table.append((1, 1, 1.0))
    target = table.target()
    first = target.facts()
    assert first.committed_at is not None
    table.append((2, 1, 2.0))
    now = datetime.now(UTC)
    newest = InputSpec("days", Relation("days", table.name), windowed=False)
    then = replace(newest, as_of=first.committed_at, semantics=Semantics.AS_RECORDED)
    for spec, told in ((replace(newest, version=first.version), "as the pipeline names it"), (then, "as of 20")):
        pin = TableInput(spec, target).pin({}, now)
        assert pin.asked.startswith(told)
        assert (pin.version, pin.semantics, pin.rows) == (first.version, spec.semantics, 1)
        assert rows_of(TableInput(spec, target).read(pin, {}).rows) == [(1, 1, 1.0)]
    assert TableInput(replace(newest, as_of=now), target).pin({}, now).rows == 2
    plain = TableInput(newest, target).pin({}, now).as_json()
    assert not {"asked", "semantics", "read"} & plain.keys(), "manifests that name no version keep their bytes"

    for bad, why in (
        (replace(newest, version="4711"), "expired, or never was"),
        (replace(newest, as_of=first.committed_at - timedelta(days=1)), "there is no version as of"),
        (replace(newest, as_of=now + timedelta(days=1)), "yet to come"),
    ):
        with pytest.raises(PlanRefused, match=why):
            TableInput(bad, target).pin({}, now)
    table.delete("id = 1")
    table.expire(table.expiries[0])
    with pytest.raises(PlanRefused, match="expired" if table_format == "iceberg" else "cleaned up"):
        TableInput(replace(newest, version=first.version), target).pin({}, now)
