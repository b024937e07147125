"""The part of a run's page that says who and what let it pass: verdict, rules, approvals."""

from __future__ import annotations

from datetime import UTC, datetime

from backcast.model.approval import approval_of, approvals
from backcast.model.evidence import APPROVALS, Evidence
from backcast.model.rule import RuleResult
from backcast.model.verdict import Layer
from backcast.model.words import many
from backcast.page.markup import (
    Content,
    Html,
    Tone,
    badge,
    code,
    details,
    paragraph,
    section,
    table,
    toned,
)

STATES: dict[str, Tone] = {
    "published": "good",
    "accepted": "good",
    "rejected": "bad",
    "failed": "bad",
    "review": "careful",
    "undone": "careful",
    "superseded": "quiet",
    "cancelled": "quiet",
}
_LAYERS = list(Layer)


def moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def verdict_section(evidence: Evidence) -> Html | None:
    verdict = evidence.verdict
    if verdict is None:
        return None
    order = sorted(verdict.checks, key=lambda check: (check.passed, _LAYERS.index(check.layer)))
    rows = [
        (
            _mark(passed=check.passed, failed_is=check.consequence.value),
            check.layer.value,
            check.name,
            check.detail,
        )
        for check in order
    ]
    earlier = len(evidence.verdicts) - 1
    outcome = verdict.outcome.value
    about = f" {moment(verdict.at)}, about staged version "
    said: list[Content] = [badge(outcome, STATES.get(outcome, "bad")), about, code(verdict.staged)]
    if verdict.review is not None:
        review = verdict.review
        said.append(f"; accepted by {review.by} as {review.role}: {review.comment}")
    again = paragraph(f"{many(earlier, 'earlier verdict')} on record", tone="quiet") if earlier else None
    return section("Verdict", paragraph(*said), table(("", "layer", "check", "what was found"), rows), again)


def rules_section(evidence: Evidence) -> Html | None:
    """Rules and gates with their numbers, those that failed first, each with a few of the rows that break it."""
    results = evidence.verdict.results if evidence.verdict is not None else ()
    if not results:
        return None
    order = sorted(results, key=lambda each: (each.passed, _LAYERS.index(each.layer)))
    rows = [
        (
            _mark(passed=each.passed, failed_is=each.consequence.value),
            each.name,
            each.kind,
            each.failing_rows,
            each.failing_partitions or None,
            ", ".join(f"{name} {number}" for name, number in each.numbers.items() if number is not None),
        )
        for each in order
    ]
    head = ("", "rule", "kind", "rows that break it", "partitions or groups", "numbers")
    shown = [_samples(each) for each in order if each.samples]
    return section("Rules and gates", table(head, rows, right=(3, 4)), *shown)


def _samples(result: RuleResult) -> Html:
    names = tuple(dict.fromkeys(name for sample in result.samples for name in sample))
    rows = [tuple(sample.get(name) for name in names) for sample in result.samples]
    return details(f"{result.name}: {many(len(rows), 'row')} of those that break it", table(names, rows))


def _mark(*, passed: bool, failed_is: str) -> Html:
    return toned("\N{CHECK MARK}", "good") if passed else badge(failed_is, "careful" if failed_is == "warn" else "bad")


def approval_section(evidence: Evidence) -> Html:
    words = [event for event in evidence.events if event.name.startswith(APPROVALS)]
    told = _notified(evidence)
    if not words:
        nobody = "Nobody was asked." if not _roles(evidence) else "Nobody has agreed yet."
        return section("Approval", paragraph(nobody), told)
    rows = [
        (
            moment(event.at),
            badge(event.name.removeprefix(APPROVALS), "good" if event.name.endswith("given") else "bad"),
            str(event.data.get("role") or ""),
            str(event.data.get("by") or ""),
            approval_of(event).known_by,
            str(event.data.get("comment") or ""),
        )
        for event in words
    ]
    asked = ", ".join(_roles(evidence)) or "nobody"
    return section(
        "Approval", table(("when", "", "role", "who", "known by", "comment"), rows), told, note=f"Asked for: {asked}."
    )


def _notified(evidence: Evidence) -> Html | None:
    """Who was to be told, and by when; whether they were is not on record."""
    need = evidence.manifest.approval
    if need is None or not need.notify:
        return None
    found = approvals(need, evidence.events, evidence.run.manifest_sha256, None)
    when = "before it is published"
    if found.notify_by is not None:
        when = f"by {moment(found.notify_by)}"
    elif need.within_seconds is not None:
        when = f"within {need.within_seconds / 3600:g} h of the approval"
    return paragraph(f"To be notified: {', '.join(need.notify)}, {when}.")


def _roles(evidence: Evidence) -> tuple[str, ...]:
    need = evidence.manifest.approval
    return () if need is None else need.roles
