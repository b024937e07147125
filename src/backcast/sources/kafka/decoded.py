"""What a decoder hands back: one side of every record (its value or its key) as SQL over a frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a record: the frame's column with its bytes, and a word for it."""

    column: str
    """`__value` or `__key`."""
    word: str

    def named(self, name: str) -> str:
        """A working column of this side's decoder."""
        return f"{self.column}_{name}"


VALUE = Side("__value", "value")
KEY = Side("__key", "key")


@dataclass(frozen=True, slots=True)
class Decoded:
    """The frame with working columns of the decoder besides its own, and what to make of them."""

    frame: DataFrame
    columns: dict[str, str]
    """Name of each decoded column, with SQL."""
    sound: str
    """SQL: whether the bytes could be decoded. Says nothing where there are none. Never null."""
    problem: str
    """SQL: why not. Costly: only asked where they could not."""
    counted: dict[int, str] = field(default_factory=dict)
    """Avro: SQL that tells records of a writer schema, by its id."""
