"""The result of validation, bound to one staged version and one file change."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from backcast.model.change import StageChange
from backcast.model.digest import Digest
from backcast.model.document import Document, later
from backcast.model.layer import Consequence, Layer
from backcast.model.rule import RuleResult

__all__ = ["Check", "Consequence", "Layer", "Outcome", "PartitionDigest", "Review", "Verdict", "outcome_of"]


class Check(Document):
    """One check: a name, whether it passed, and the numbers in a sentence."""

    name: str
    passed: bool
    detail: str
    layer: Annotated[Layer, later(Layer.TECHNICAL)] = Layer.TECHNICAL
    consequence: Annotated[Consequence, later(Consequence.BLOCK)] = Consequence.BLOCK


class PartitionDigest(Document):
    """Rows and digest of one chunk's part of the table."""

    chunk: str
    digest: Digest


class Review(Document):
    """A person looked at what the gates noticed and accepted it."""

    by: str
    how: str
    """How that person was known: `os-user`, `token`."""
    role: str
    comment: str
    at: datetime


class Outcome(StrEnum):
    ACCEPTED = "accepted"
    REVIEW = "review"
    REJECTED = "rejected"


def outcome_of(checks: tuple[Check, ...]) -> Outcome:
    """Blocking checks first: nobody is asked to accept what cannot be accepted."""
    failed = {check.consequence for check in checks if not check.passed}
    if Consequence.BLOCK in failed:
        return Outcome.REJECTED
    return Outcome.REVIEW if Consequence.REVIEW in failed else Outcome.ACCEPTED


class Verdict(Document):
    """Accepted only when no blocking check failed, and nothing is left for a person to look at.

    Valid only for exactly `staged` and `net_change`.
    """

    run_id: str
    accepted: bool
    base: str | None
    staged: str
    net_change: str
    """Digest of the files added and removed."""
    checks: tuple[Check, ...]
    partitions: tuple[PartitionDigest, ...]
    """Empty when the stage was not read back: the digests of its commits are on record then."""
    rows: int
    at: datetime
    review: Annotated[Review | None, later(None)] = None
    """Who accepted what the gates noticed."""
    results: Annotated[tuple[RuleResult, ...], later(())] = ()
    """Rules and gates with their numbers; each is one of the checks, too."""
    change: Annotated[StageChange | None, later(None)] = None
    """What the stage changes, in numbers that cost nothing; None where they could not be told."""

    @property
    def outcome(self) -> Outcome:
        found = outcome_of(self.checks)
        return Outcome.ACCEPTED if found is Outcome.REVIEW and self.accepted and self.review else found
