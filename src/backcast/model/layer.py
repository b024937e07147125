"""What a check is about, and what it means that it failed."""

from __future__ import annotations

from enum import StrEnum


class Layer(StrEnum):
    """What a check is about, in the order in which verdicts show them."""

    TECHNICAL = "technical"
    SCHEMA = "schema"
    QUALITY = "quality"
    RECONCILIATION = "reconciliation"
    REASONABLENESS = "reasonableness"


class Consequence(StrEnum):
    """What a failed check means: the stage is rejected, a person must look, or it is only told."""

    BLOCK = "block"
    REVIEW = "review"
    WARN = "warn"
