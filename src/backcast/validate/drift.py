"""How far the values of a column have moved between base and stage: pure, from counts by bucket."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from backcast.ports.rules import Bucket

_BINS = 10
_NAN = 10**9
_OFFSET, _PER_POWER = 70_000, 64


@dataclass(frozen=True, slots=True)
class Distance:
    """Total variation distance: the share of rows that would have to change their value to get from one to the other.
    And the values that moved most.
    """

    distance: float
    label: str
    before: float
    after: float


def distance(
    base: Mapping[int | None, Bucket], stage: Mapping[int | None, Bucket], *, ordered: bool
) -> Distance | None:
    """None when the base has no row. Ordered buckets are joined into about ten, each with as many rows of the base."""
    if ordered:
        bins = _bins(base)
        base, stage = _joined(base, bins), _joined(stage, bins)
    before, after = (sum(bucket.rows for bucket in side.values()) for side in (base, stage))
    if not before:
        return None
    worst, total = Distance(0.0, "", 0.0, 0.0), 0.0
    for key in base.keys() | stage.keys():
        was = base[key].rows / before if key in base else 0.0
        became = stage[key].rows / after if key in stage and after else 0.0
        total += abs(was - became)
        if abs(was - became) > abs(worst.before - worst.after):
            label = (base.get(key) or stage[key]).label
            worst = Distance(0.0, "null" if key is None else label, was, became)
    # Against a stage without rows everything has moved.
    share = total / 2 if after else 1.0
    return Distance(share, worst.label, worst.before, worst.after)


def _bins(base: Mapping[int | None, Bucket]) -> list[int]:
    """Where the bins begin, besides the first."""
    keys = sorted(key for key in base if key is not None and key != _NAN)
    rows = sum(base[key].rows for key in keys)
    found: list[int] = []
    seen = 0
    for key in keys:
        if seen >= (len(found) + 1) * rows / _BINS:
            found.append(key)
        seen += base[key].rows
    return found


def _joined(side: Mapping[int | None, Bucket], bins: list[int]) -> dict[int | None, Bucket]:
    found: dict[int | None, Bucket] = {}
    for key in sorted(side, key=lambda each: (each is None, each or 0)):
        if key is None or key == _NAN:
            found[key] = Bucket(side[key].rows, "not a number")
            continue
        at = bisect_right(bins, key)
        rows = found[at].rows if at in found else 0
        found[at] = Bucket(rows + side[key].rows, _label(bins, at, named=side[key].label))
    return found


def _label(bins: list[int], at: int, *, named: str) -> str:
    if named:
        return f"around {named}"
    if not bins:
        return "all values"
    if at == 0:
        return f"below {_value(bins[0]):,.4g}"
    low = f"{_value(bins[at - 1]):,.4g}"
    return f"from {low} on" if at == len(bins) else f"{low} to {_value(bins[at]):,.4g}"


def _value(bucket: int) -> float:
    """Where the bucket of numbers begins, as `spark/rule_scan.py` numbers them."""
    if bucket == 0:
        return 0.0
    size = float(2.0 ** (min(abs(bucket) - _OFFSET, 1023 * _PER_POWER) / _PER_POWER))
    return size if bucket > 0 else -size
