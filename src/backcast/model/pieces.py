"""Sets of offsets: what several ranges cover together, and what of it others do not.

A read of a log takes one range of each partition. A set that has more pieces than that is read in layers, and one that
has very many is read with what lies between them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise, zip_longest

from backcast.model.log import OffsetRange, Ranges


def layers(each: Iterable[Ranges], without: Iterable[Ranges] = ()) -> tuple[Ranges, ...]:
    """Every offset of the ranges that is in none of the others, once: as few ranges as possible, and as few layers."""
    others = _pieces(without)
    left = [_left(pieces, others.get(number, [])) for number, pieces in sorted(_pieces(each).items())]
    return tuple(tuple(one for one in layer if one is not None) for layer in zip_longest(*left))


def pieces(each: Iterable[Ranges]) -> Ranges:
    """Every offset of the ranges once, in order; any number of pieces of each partition."""
    return tuple(one for _, found in sorted(_pieces(each).items()) for one in found)


def coarse(each: Iterable[Ranges], most: int) -> Ranges:
    """The same with the narrowest gaps closed, so that no partition has more pieces than that."""
    found: list[OffsetRange] = []
    for number, exact in sorted(_pieces(each).items()):
        gaps = [later.start - earlier.end for earlier, later in pairwise(exact)]
        wide = set(sorted(range(len(gaps)), key=lambda index: -gaps[index])[: most - 1])
        start = exact[0].start
        for index, (earlier, later) in enumerate(pairwise(exact)):
            if index in wide:
                found.append(_range(number, start, earlier.end))
                start = later.start
        found.append(_range(number, start, exact[-1].end))
    return tuple(found)


def _pieces(each: Iterable[Ranges]) -> dict[int, list[OffsetRange]]:
    """By partition, in order; they neither touch nor overlap."""
    found: dict[int, list[OffsetRange]] = {}
    for one in sorted((item for ranges in each for item in ranges if item.span), key=lambda item: item.start):
        pieces = found.setdefault(one.partition, [])
        if pieces and one.start <= pieces[-1].end:
            pieces[-1] = _range(one.partition, pieces[-1].start, max(pieces[-1].end, one.end))
        else:
            pieces.append(one)
    return found


def _left(pieces: list[OffsetRange], others: list[OffsetRange]) -> list[OffsetRange]:
    found = []
    for each in pieces:
        start = each.start
        for other in (one for one in others if one.end > each.start and one.start < each.end):
            if start < other.start:
                found.append(_range(each.partition, start, other.start))
            start = other.end
        if start < each.end:
            found.append(_range(each.partition, start, each.end))
    return found


def _range(partition: int, start: int, end: int) -> OffsetRange:
    return OffsetRange(partition=partition, start=start, end=end)
