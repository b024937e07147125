"""Whose approval counted at a moment, told from plain events: the rules of `model/approval.py` for bundles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

_GRACE = timedelta(hours=1)
"""Approvals are asked for before a run lists files and waits for its turn, and the change of state is on record after
that: an approval that expired in between did count. `docs/evidence.md` says so.
"""


def counting(words: Sequence[Mapping[str, Any]], need: Mapping[str, Any], at: str) -> list[str]:
    """The roles in which people had agreed: one of each person and each account, neither expired nor one's own."""
    said = [word["data"] for word in words]
    newest = [
        (word, word["data"])
        for place, word in enumerate(words)
        if not any(_same(word["data"], other) for other in said[place + 1 :])
    ]
    own = frozenset() if need.get("own_runs", True) else frozenset(need.get("planned_by") or ())
    moment = datetime.fromisoformat(at) - _GRACE
    return [
        str(data["role"])
        for word, data in newest
        if not own & {data["by"], *_accounts(data)} and moment < _expiry(word, need)
    ]


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(one["by"] == other["by"] or _accounts(one) & _accounts(other))


def _accounts(data: Mapping[str, Any]) -> frozenset[str]:
    return frozenset({str(data["account"]), str(data.get("login") or data["account"])})


def _expiry(word: Mapping[str, Any], need: Mapping[str, Any]) -> datetime:
    latest = datetime.fromisoformat(word["at"]) + timedelta(seconds=int(need["expires_seconds"]))
    told = word["data"].get("expires_at")
    return latest if told is None else min(latest, datetime.fromisoformat(told))
