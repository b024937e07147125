"""Numbers in sentences."""

from __future__ import annotations


def many(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `1,200 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
