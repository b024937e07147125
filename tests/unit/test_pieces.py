"""Sets of offsets: every one is read once, whatever ranges it came in."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from backcast.model.log import OffsetRange, Ranges
from backcast.model.pieces import coarse, layers, pieces


def of(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)


ranges = st.builds(
    lambda number, start, size: of(number, start, start + size), st.integers(0, 2), st.integers(0, 9), st.integers(0, 4)
)
sets = st.lists(st.lists(ranges, max_size=3).map(tuple), max_size=4)


def offsets(each: list[Ranges] | tuple[Ranges, ...]) -> list[tuple[int, int]]:
    return [(one.partition, offset) for some in each for one in some for offset in range(one.start, one.end)]


@given(sets, sets)
def test_each_offset_of_the_one_set_that_is_not_in_the_other_is_there_once(
    one: list[Ranges], two: list[Ranges]
) -> None:
    found = layers(one, without=two)
    assert Counter(offsets(found)) == Counter(set(offsets(one)) - set(offsets(two)))
    assert all(len({each.partition for each in layer}) == len(layer) for layer in found)


def test_ranges_that_touch_are_one_and_those_that_do_not_take_two_layers() -> None:
    assert layers([(of(0, 0, 5), of(1, 3, 3)), (of(0, 5, 9),)]) == ((of(0, 0, 9),),)
    assert layers([(of(0, 0, 5), of(1, 0, 2)), (of(0, 7, 9),)]) == ((of(0, 0, 5), of(1, 0, 2)), (of(0, 7, 9),))
    assert layers([(of(0, 0, 9),)], without=[(of(0, 3, 5),)]) == ((of(0, 0, 3),), (of(0, 5, 9),))


@given(sets, st.integers(1, 4))
def test_few_pieces_hold_every_offset_and_close_only_the_narrowest_gaps(each: list[Ranges], most: int) -> None:
    exact, found = pieces(each), coarse(each, most)
    assert Counter(offsets([exact])) == Counter(set(offsets(each)))
    assert set(offsets([exact])) <= set(offsets([found]))
    for number in {one.partition for one in found}:
        ours, all_of = (sum(1 for one in some if one.partition == number) for some in (found, exact))
        assert ours == min(most, all_of)
    assert len(offsets([found])) == len(set(offsets([found])))


def test_the_widest_gap_stays_open() -> None:
    apart = (of(0, 0, 1), of(0, 2, 3), of(0, 50, 51), of(0, 53, 54))
    assert coarse([apart], 2) == (of(0, 0, 3), of(0, 50, 54))
    assert coarse([apart], 4) == apart
    assert coarse([apart], 1) == (of(0, 0, 54),)
