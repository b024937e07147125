"""What a run changed, as its newest verdict counted it: the part of a diff that every bundle has."""

from __future__ import annotations

from typing import Any

from backcast.model.evidence import Evidence

COUNTS = "counts only"


def changes(evidence: Evidence) -> dict[str, Any] | None:
    """None before there is a verdict. It tells of no column and no row; where those were compared is told with it."""
    verdict = evidence.verdict
    if verdict is None:
        return None
    change = verdict.change
    return {
        "base": verdict.base,
        "staged": verdict.staged,
        "looked_at": COUNTS,
        "summary": "the files do not say how many rows there were" if change is None else change.sentence(),
        "change": None if change is None else change.as_json(),
        "columns_and_rows": "diff.json" if evidence.whole_diff else f"backcast diff {evidence.run.run_id}",
    }
