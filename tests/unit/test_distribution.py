"""Rows are shuffled before they are written only where the inputs' files do not keep them together already."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backcast.model.column import TimeColumn, TimeKind
from backcast.model.manifest import InputPin, Survival
from backcast.model.pipeline import Dataset, InputSpec, Relation
from backcast.model.table import PartitionField, TableIdentity
from backcast.model.time import Grain
from backcast.plan.distribution import arrive_together
from backcast.plan.windows import Partitioning, partitioning

DAY = TimeColumn(column="day", kind=TimeKind.DATE)
AT = TimeColumn(column="at")
MIB = 1024**2


def field(source: str, transform: str) -> PartitionField:
    return PartitionField(source=source, transform=transform, name=source)


def output(*fields: PartitionField, column: TimeColumn = DAY) -> tuple[Partitioning, tuple[PartitionField, ...]]:
    return partitioning(column, fields), fields


def together(inputs: list[tuple[InputSpec, InputPin]], out: tuple[Partitioning, tuple[PartitionField, ...]]) -> bool:
    return arrive_together(inputs, *out, partitions=10)


def read(
    *fields: PartitionField, files: int = 10, size: int = 0, column: TimeColumn = DAY
) -> tuple[InputSpec, InputPin]:
    table = "lake.shop.events"
    identity = TableIdentity(
        name=table, format="iceberg", format_version=2, uuid="u", columns=(), partition_fields=fields, spec_id=0
    )
    pin = InputPin(
        name="events",
        dataset="events",
        identity=identity,
        version="1",
        windowed=True,
        survival=Survival.OK,
        survives_until=datetime(2026, 1, 1, tzinfo=UTC),
        files=files,
        rows=1,
        bytes=size,
    )
    return InputSpec("events", Dataset("events", table, time=column, grain=Grain.DAY)), pin


BY_DAY = field("day", "identity")


def test_files_that_lie_in_one_day_each_keep_rows_of_a_day_together() -> None:
    assert together([read(BY_DAY)], output(BY_DAY))
    assert together([read(BY_DAY)], output(field("day", "month")))


@pytest.mark.parametrize(
    ("why", "given", "out"),
    [
        ("the input is not partitioned by time", read(), output(BY_DAY)),
        ("a file may hold every day of its month", read(field("day", "month")), output(BY_DAY)),
        ("the output is not partitioned by time", read(BY_DAY), output()),
        ("many small files would become as many", read(BY_DAY, files=21, size=21 * MIB), output(BY_DAY)),
        (
            "a day in UTC is no day in Tokyo",
            read(field("at", "day"), column=AT),
            output(BY_DAY, column=TimeColumn(column="day", kind=TimeKind.DATE, zone="Asia/Tokyo")),
        ),
    ],
)
def test_otherwise_rows_are_brought_together_first(
    why: str, given: tuple[InputSpec, InputPin], out: tuple[Partitioning, tuple[PartitionField, ...]]
) -> None:
    assert not together([given], out), why


def test_a_table_that_is_divided_further_is_not_written_as_it_comes() -> None:
    """Each of many big files of a day would become one for every shard."""
    fields = (BY_DAY, field("shard", "identity"))
    assert not together([read(BY_DAY, files=500, size=500 * 64 * MIB)], output(*fields))


def test_many_big_files_need_no_shuffle_either() -> None:
    assert together([read(BY_DAY, files=500, size=500 * 64 * MIB)], output(BY_DAY))


def test_reference_data_does_not_count_and_alone_tells_nothing() -> None:
    whole = InputSpec("codes", Relation("codes", "lake.shop.codes"), windowed=False)
    assert together([read(BY_DAY), (whole, read()[1])], output(BY_DAY))
    assert not together([(whole, read()[1])], output(BY_DAY))
