"""Columns whose values are never shown. Their names count whatever their case: too much hidden is no leak."""

from __future__ import annotations

from collections.abc import Iterable


def hides(masked: Iterable[str], *columns: str) -> bool:
    """Whether one of these columns is masked."""
    return not {each.lower() for each in masked}.isdisjoint(each.lower() for each in columns)


def not_among(masked: Iterable[str], columns: Iterable[str]) -> list[str]:
    """Masked columns that are none of these."""
    known = {each.lower() for each in columns}
    return sorted(each for each in masked if each.lower() not in known)
