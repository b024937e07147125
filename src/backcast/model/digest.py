"""An order-free fingerprint of a multiset of rows.

The Spark expression that computes it is in `backcast.spark.digest`.
"""

from __future__ import annotations

from backcast.model.document import Document

DIGEST_VERSION = 2
"""Raise when the meaning of the sums changes; digests of different versions never compare equal."""


class Digest(Document):
    """Row count and the sums of the upper and lower 32 bits of each row's 64-bit hash."""

    rows: int
    high: str = "0"
    low: str = "0"
    version: int = DIGEST_VERSION

    def __add__(self, other: Digest) -> Digest:
        """Digest of both multisets together."""
        return Digest(
            rows=self.rows + other.rows,
            high=str(int(self.high) + int(other.high)),
            low=str(int(self.low) + int(other.low)),
            version=min(self.version, other.version),
        )

    @property
    def is_current(self) -> bool:
        """Whether it can be compared with one that is taken now."""
        return self.version == DIGEST_VERSION

    def short(self) -> str:
        """A few characters for a terminal column."""
        return f"{(int(self.high) * 31 + int(self.low)) & 0xFFFFFFFF:08x}"


EMPTY = Digest(rows=0)
