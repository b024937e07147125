"""The five ways in which event time can advance while history goes by."""

from __future__ import annotations

from enum import StrEnum


class WatermarkStrategy(StrEnum):
    """How event time advances in a replay, and with that which records are late. Part of the manifest."""

    SORTED = "sorted"
    """In order: the query gets its records sorted by event time, so none is late."""
    PARTITIONS = "partitions"
    """One chunk of time after another, each whole in one batch: whatever order it has inside harms nothing."""
    BOUNDED = "bounded"
    """As in the live stream: behind the newest row, by the declared delay. What comes later is dropped."""
    BATCH = "batch"
    """It does not: all rows of a window are there before it is computed, and none is late."""
    CORRECTIONS = "corrections"
    """What the live stream wrote stands, and only windows that late records touch are computed anew."""
