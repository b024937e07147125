"""What the flow asks of Spark about rows it does not look into itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from backcast.model.analysis import Analysis
    from backcast.model.column import TimeColumn
    from backcast.model.digest import Digest
    from backcast.model.lineage import Stamped
    from backcast.model.scope import Predicate
    from backcast.model.table import Column
    from backcast.model.time import Grain
    from backcast.ports.inputs import Sifted


class Engine(Protocol):
    """What the flow asks of Spark about rows it does not look into itself."""

    def analyse(self, rows: DataFrame, topics: Sequence[DataFrame] = ()) -> Analysis:
        """Read the analysed plan, made of these topics among others; runs no job."""

    def cancelled_when(self, over: Callable[[], bool]) -> AbstractContextManager[Callable[[], bool]]:
        """Jobs that this thread begins inside end with an error once that holds; it is asked about twice a second.

        Gives whether it was. Jobs of other threads go on.
        """

    def conform(
        self, rows: DataFrame, columns: tuple[Column, ...], without_empty_texts: frozenset[str] = frozenset()
    ) -> DataFrame:
        """The rows in the table's column order and types, as it will store them; only widening casts.

        Raises Refused on any other difference.
        """

    def stamp(self, rows: DataFrame, values: Mapping[str, Stamped]) -> DataFrame:
        """The rows with these constant columns added."""

    def sifted(self, rows: DataFrame, columns: frozenset[str], topics: frozenset[str]) -> Sifted:
        """Rows that are not rejected, without the columns that tell it unless the table has them; and the records of
        the others, which should be of these topics.
        """

    def refuse_strangers(self, rejected: DataFrame, topics: frozenset[str]) -> None:
        """Raises ChunkFailed when a rejected record is of none of these topics."""

    def newest(self, rows: DataFrame, key: tuple[str, ...], version: str) -> DataFrame:
        """Of the rows with one key the one with the greatest version."""

    def within(self, rows: DataFrame, keep: Predicate, spare: Predicate) -> DataFrame:
        """Rows that match `keep`.

        Rows that match only `spare` are cut; any other row makes the job fail and names itself.
        """

    def observed(self, rows: DataFrame) -> tuple[DataFrame, Callable[[], Digest | None]]:
        """The rows, and after they were written their digest; None when it could not be had."""

    def digests(self, rows: DataFrame, parts: Mapping[str, Predicate]) -> dict[str, Digest]:
        """Rows and digest of each part, in one job.

        A row belongs to the first part that it matches; an empty part has the empty digest.
        """

    def counted_by_time(self, rows: DataFrame, column: TimeColumn, grain: Grain) -> tuple[dict[datetime, int], int]:
        """How many rows each piece of time has, by the wall clock time at which it starts; and how many have none."""

    def shaken(self, rows: DataFrame) -> DataFrame:
        """The same rows in another order and in other tasks. Runs no job."""

    def digest_again(self, rows: DataFrame) -> Digest:
        """The digest of the rows, computed with another parallelism than usual."""

    def key_problems(self, rows: DataFrame, key: tuple[str, ...]) -> tuple[int, int, str]:
        """Rows with a null in the key, keys that occur more than once, and one example."""

    def doubled(self, rows: DataFrame, key: tuple[str, ...]) -> DataFrame:
        """Those of the rows that share their key with another. Runs no job."""

    def shared_keys(self, left: DataFrame, right: DataFrame, key: tuple[str, ...]) -> list[str]:
        """A few keys that both sides have."""

    def changed_keys(self, before: DataFrame, after: DataFrame, key: tuple[str, ...], version: str) -> DataFrame:
        """Keys that only one side has, or that have another version there. Runs no job."""

    def missing_keys(self, left: DataFrame, right: DataFrame, key: tuple[str, ...]) -> tuple[int, list[str]]:
        """How many rows of the left side have a key that the right side lacks, and a few of those keys."""
