"""Whether a request says why it was made. Pure."""

from __future__ import annotations

import re

from backcast.model.finding import Finding, block
from backcast.model.policy import Policy
from backcast.model.request import Request

_EMPTY = re.compile(
    "a|an|and|asdf?|backfill|bar|because|bugs?|change|data|do|fix(ed|es|ing)?|foo|for|it|me|my|na|none|null|please|"
    "qwerty|reason|redo|replay|reprocess(ing)?|rerun|restatement|retry|run|some|stuff|test(s|ing)?|that|the|things?|"
    "this|tmp|todo|update|wip|x+"
)
"""Words that say nothing alone."""
_WORD = re.compile(r"[^\W\d_]{2,}")
LEAST = 15
"""Characters of a reason that a request file may have at least."""


def reason_problem(reason: str, least: int = LEAST) -> str | None:
    """What is wrong with a reason; None for one that says something."""
    text = reason.strip()
    words = {word.lower() for word in _WORD.findall(text)}
    if not text:
        return "it says no reason"
    if len(text) < least:
        return f"the reason {text!r} is shorter than {least} characters"
    telling = [word for word in words if not _EMPTY.fullmatch(word)]
    if len(telling) < 2 or any(re.search(r"(.)\1{4,}", word) for word in words):
        return f"the reason {text!r} does not say what was wrong"
    return None


def why_findings(request: Request, policy: Policy | None, *, least: int | None = None) -> list[Finding]:
    """What the policy wants to know about a request, and is not told."""
    found = []
    wanted = least if least is not None else (0 if policy is None else policy.reason)
    problem = reason_problem(request.reason, wanted) if wanted else None
    if problem is not None:
        found.append(block("request.reason", problem, 'say what was wrong, such as "refunds were counted as sales"'))
    pattern = None if policy is None else policy.ticket
    if pattern is not None and not re.fullmatch(pattern, request.ticket):
        said = f"the ticket {request.ticket!r} is none" if request.ticket else "it names no ticket"
        found.append(
            block(
                "request.ticket", f"{said} of the form {pattern}", "name one: --ticket, or `ticket` in a request file"
            )
        )
    return found
