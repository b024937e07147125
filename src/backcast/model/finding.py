"""Findings of pre-flight: what was noticed, why it matters, what to do about it."""

from __future__ import annotations

from enum import StrEnum

from backcast.model.document import Document


class Severity(StrEnum):
    BLOCK = "block"
    WARN = "warn"
    NOTE = "note"


class Finding(Document):
    """`code` is stable and greppable; `reason` and `remedy` are one sentence each."""

    code: str
    severity: Severity
    reason: str
    remedy: str


def block(code: str, reason: str, remedy: str) -> Finding:
    return Finding(code=code, severity=Severity.BLOCK, reason=reason, remedy=remedy)


def warn(code: str, reason: str, remedy: str) -> Finding:
    return Finding(code=code, severity=Severity.WARN, reason=reason, remedy=remedy)


def note(code: str, reason: str, remedy: str) -> Finding:
    return Finding(code=code, severity=Severity.NOTE, reason=reason, remedy=remedy)
