"""Spark's driver gets its memory from the machine, or from the container that holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from backcast.spark.settings import default_driver_gib, machine_memory

GIB = 1024**3
MACHINE = machine_memory(())


@pytest.mark.parametrize(("machine", "driver"), [(1, 1), (4, 1), (5, 2), (10, 4), (16, 6), (20, 8), (512, 8)])
def test_the_driver_takes_two_fifths_from_1_to_8_gib(machine: int, driver: int) -> None:
    assert default_driver_gib(machine * GIB) == driver


@pytest.mark.parametrize(
    ("limit", "found"),
    [("max\n", MACHINE), (f"{MACHINE * 2}\n", MACHINE), ("268435456\n", 268435456), ("9223372036854771712\n", MACHINE)],
    ids=["unlimited", "more than the machine", "less", "unlimited as the first version says it"],
)
def test_a_container_that_has_less_than_its_machine_counts(tmp_path: Path, limit: str, found: int) -> None:
    (tmp_path / "limit").write_text(limit)
    assert machine_memory((tmp_path / "absent", tmp_path / "limit")) == found
