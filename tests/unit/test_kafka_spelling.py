"""Offsets as people and Spark write them: read exactly, and every complaint names its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backcast.errors import InvalidRequest, UnknownName
from backcast.model.log import OffsetRange, PartitionState, Ranges, TopicFacts
from backcast.sources.kafka.spelling import format_ranges, parse_offsets, resolve_offsets

FACTS = TopicFacts(
    "orders",
    "id",
    (PartitionState(0, 10, 300), PartitionState(1, 0, 80)),
    frozenset({"delete"}),
    None,
    None,
    "CreateTime",
)


def resolved(text: str) -> str:
    return format_ranges(resolve_offsets(parse_offsets(text, "orders"), FACTS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0=100..200,1=50..", "0=100..200,1=50..80"),
        (" 1=..40 , 0=100..200 ", "0=100..200,1=0..40"),
        ("0=..", "0=10..300"),
        ("0=earliest..latest", "0=10..300"),
        ("0=3..5", "0=3..5"),
        ("0=30..31,1=2..3,0=20..22,0=22..23", "0=20..22,0=22..23,0=30..31,1=2..3"),
        ("earliest", "0=10..300,1=0..80"),
        ("earliest..", "0=10..300,1=0..80"),
        ("earliest..latest", "0=10..300,1=0..80"),
        ("latest", "0=300..300,1=80..80"),
        ('{"orders":{"0":23,"1":-2}}', "0=23..300,1=0..80"),
        ('{"orders":{"0":23}}..{"orders":{"0":40}}', "0=23..40"),
        ('{"orders":{"0":23},"others":{"7":1}}..latest', "0=23..300"),
        ('earliest..{"orders":{"1":40}}', "1=0..40"),
        ('{"orders":{"1":40}}..{"orders":{"1":-1}}', "1=40..80"),
    ],
)
def test_what_is_written_becomes_literal_offsets(text: str, expected: str) -> None:
    assert resolved(text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "part 1: '' is not PARTITION=START..END"),
        ("0=5", "part 1: '0=5' is not"),
        ("0=1..2,1=a..3", r"part 2 \(partition 1\), start: 'a' is not an offset"),
        ("0=1..-2", r"part 1 \(partition 0\), end: '-2' is not an offset"),
        ("0=1..2,", "part 2: '' is not"),
        ("x=1..2", "part 1: 'x=1..2' is not"),
        ("0=1..²", r"part 1 \(partition 0\), end: '²'"),
        ("earliest..soon", "end: 'soon' is neither JSON nor earliest nor latest"),
        ('{"orders":', "start: .* is neither JSON"),
        ('{"others":{"0":1}}', "start: there is no"),
        ('{"orders":{"a":1}}', "start: 'a' is not a partition"),
        ('{"orders":{"0":"1"}}', "start, partition 0: '1' is not an offset"),
        ('{"orders":{"0":true}}', "start, partition 0: True is not an offset"),
        ('{"orders":{"0":1}}..{"orders":{"1":1}}', "only one side names partition 0"),
    ],
)
def test_a_complaint_names_the_place(text: str, place: str) -> None:
    with pytest.raises(InvalidRequest, match=place):
        parse_offsets(text, "orders")


def test_bounds_that_the_topic_does_not_have_are_refused() -> None:
    with pytest.raises(UnknownName, match="no partition 7"):
        resolved("7=1..2")
    with pytest.raises(InvalidRequest, match="partition 1 ends at offset 80, before 81"):
        resolved("1=1..81")
    with pytest.raises(InvalidRequest, match=r"partition 0: 100..200 and 199..201 overlap"):
        resolved("0=199..201,0=100..200")
    with pytest.raises(InvalidRequest, match="partition 0: it would start at 200 and end before, at 100"):
        resolved("0=200..100")


@st.composite
def ranges(draw: st.DrawFn) -> Ranges:
    numbers = draw(st.lists(st.integers(0, 10_000), unique=True, min_size=1, max_size=5))
    bounds = {number: sorted(draw(st.tuples(*[st.integers(0, 10**17)] * 2))) for number in sorted(numbers)}
    return tuple(OffsetRange(partition=number, start=start, end=end) for number, (start, end) in bounds.items())


@given(ranges())
def test_what_is_formatted_is_read_back_in_either_spelling(given: Ranges) -> None:
    facts = TopicFacts(
        "orders",
        "id",
        tuple(PartitionState(each.partition, each.start, each.end) for each in given),
        frozenset(),
        None,
        None,
        "",
    )
    assert resolve_offsets(parse_offsets(format_ranges(given), "orders"), facts) == given
    sides = ({str(each.partition): offset for each, offset in zip(given, side, strict=True)} for side in (
        [each.start for each in given], [each.end for each in given]
    ))  # fmt: skip
    spark = "..".join(json.dumps({"orders": side}) for side in sides)
    assert resolve_offsets(parse_offsets(spark, "orders"), facts) == given
