"""Where a run stands, for a person who was just woken up."""

from __future__ import annotations

from datetime import datetime

from rich.console import Group, RenderableType

from backcast.cli.render.layout import (
    BAD,
    CAREFUL,
    GOOD,
    QUIET,
    STATE_STYLES,
    STRONG,
    blocks,
    command,
    indented,
    page,
    section,
    text,
)
from backcast.cli.render.plan import change_lines, hand_over_text, live_rows_sentence, why_lines
from backcast.cli.render.strip import ChunkStrip
from backcast.cli.render.throttle import throttle_lines
from backcast.cli.render.verdict import failures
from backcast.cli.render.watch import watched
from backcast.cli.render.words import ago, count, duration, moment, number, rate, remaining, time_of_day
from backcast.model.replay import FAST
from backcast.model.report import Status
from backcast.model.run import Chunk, Lease, Publication
from backcast.model.states import RunState
from backcast.model.verdict import Outcome

_SHOWN_FAILURES = 3
_SHOWN_CHUNKS = 3
OUTCOMES = {
    Outcome.ACCEPTED: ("✓ accepted", GOOD),
    Outcome.REVIEW: ("? under review", CAREFUL),
    Outcome.REJECTED: ("✗ rejected", BAD),
}
_BEFORE_PUBLISH = frozenset(
    {
        RunState.PLANNED,
        RunState.APPROVED,
        RunState.RUNNING,
        RunState.STAGED,
        RunState.REVIEW,
        RunState.ACCEPTED,
    }
)


def render_status(status: Status, now: datetime) -> RenderableType:
    run = status.run
    return page(
        text(
            (run.run_id, STRONG),
            "  ",
            (run.state.upper(), STATE_STYLES[run.state]),
            (f"  {ago(run.updated_at, now)}, {moment(run.updated_at)}", QUIET),
        ),
        indented(text(status.because)),
        text(""),
        blocks(
            [
                ("change", change_lines(status.manifest)),
                ("chunks", _chunks(status)),
                ("read", _read(status)),
                ("at work", _at_work(status)),
                ("throttle", throttle_lines(status.throttled, now)),
                ("restaged", _restaged(status)),
                ("replay", _replayed(status)),
                ("set aside", _set_aside(status)),
                ("canary", _canary(status)),
                ("verdict", _verdict(status)),
                ("approval", _approvals(status, now)),
                ("live rows", [live_rows_sentence(status.manifest.settings)] if _matters(status) else []),
                ("published", _publication(status, now)),
                ("watch", _watch(status)),
                ("hand-over", _hand_over(status)),
                ("why", why_lines(status.manifest)),
            ]
        ),
        _failures(status),
        _failed_checks(status),
        _next(status),
    )


def _next(status: Status) -> RenderableType | None:
    """After a publish nothing must be done; taking it back is an offer. Before one, look at the difference."""
    following = status.next_command
    match status.run.state:
        case _ if not following:
            return None
        case RunState.PUBLISHED:
            if not following.startswith("backcast watch "):
                return command(following, label="To take it back")
            if status.undo_until is None:
                return command(following)
            return Group(command(following), command(f"backcast undo {status.run.run_id}", label="To take it back"))
        case RunState.ACCEPTED | RunState.REVIEW:
            return command(f"backcast diff {status.run.run_id}", following)
        case RunState.RUNNING | RunState.FAILED if status.canary is not None:
            return command(f"backcast diff {status.run.run_id}", following)
        case _:
            return command(following)


def _hand_over(status: Status) -> list[RenderableType]:
    """Where a stream goes on after a bootstrap that readers see."""
    if status.run.state is not RunState.PUBLISHED:
        return []
    found = [pin.log.hand_over for pin in status.manifest.inputs if pin.log is not None and pin.log.hand_over]
    told = f"backcast kafka handover {status.run.run_id}"
    return [text(f"a stream goes on at {hand_over_text(each)}: ", (told, STRONG)) for each in found]


def _approvals(status: Status, now: datetime) -> list[RenderableType]:
    """Who agreed, in which role, and who is still missing."""
    found = status.approvals
    if found is None:
        return []
    lines: list[RenderableType] = []
    for each in found.given:
        comment = f": {each.comment}" if each.comment else ""
        known = f"  {each.known_by}, {ago(each.at, now)}"
        lines.append(text(("✓ ", GOOD), f"{each.by} as {each.role}{comment}", (known, QUIET)))
    expiries = [each.expires_at for each in found.given if each.expires_at is not None]
    if expiries and _matters(status):
        lines.append(text((f"counts until {moment(min(expiries))}", QUIET)))
    for role in found.missing:
        why = found.why_missing(role)
        said = f"{role}: {why}" if why else f"{role} is missing"
        lines.append(text(("✗ ", BAD), said))
    if found.refused is not None:
        lines.append(text(("✗ ", BAD), f"rejected by {found.refused.by}: {found.refused.comment}"))
    if found.notify:
        before = " before it is published" if _matters(status) else ""
        by = f" by {moment(found.notify_by)}" if found.notify_by is not None else before
        lines.append(text(f"notify {', '.join(found.notify)}{by}"))
    return lines


def _matters(status: Status) -> bool:
    return status.run.state in _BEFORE_PUBLISH


def _chunks(status: Status) -> list[RenderableType]:
    counts = status.counts
    total = counts.pending + counts.held + counts.running + counts.staged + counts.failed
    lines: list[RenderableType] = []
    if status.run.state is RunState.CANCELLED:
        return []
    if counts.pending == total and status.run.state in (RunState.PLANNED, RunState.APPROVED):
        return ["none computed yet"]
    if counts.staged == total:
        return [f"{'all ' if total > 1 else ''}{count(total, 'chunk')} staged, {count(status.output_rows, 'row')}"]
    if status.strip:
        lines.append(ChunkStrip(status.strip))
    else:
        named = {
            "staged": counts.staged,
            "running": counts.running,
            "failed": counts.failed,
            "pending": counts.pending,
            "held back": counts.held,
        }
        lines.append(", ".join(f"{number(amount)} {name}" for name, amount in named.items() if amount))
    pace = [f"{count(status.output_rows, 'row')} staged"]
    if status.rows_per_second is not None:
        pace.append(rate(status.rows_per_second))
    if status.seconds_left is not None and counts.pending + counts.running:
        pace.append(f"about {duration(status.seconds_left)} left")
    return [*lines, ", ".join(pace)]


def _read(status: Status) -> list[RenderableType]:
    """Of inputs by window, as far as chunks are staged."""
    logs = {pin.name for pin in status.manifest.inputs if pin.log is not None}
    found = [(each, count(each.rows, "offset" if each.input in logs else "row")) for each in status.inputs]
    return [f"{'' if each.exact else 'at most '}{counted} of {each.input}" for each, counted in found]


def _at_work(status: Status) -> list[RenderableType]:
    driver = [_process(status.holder)] if status.holder else []
    return [*driver, *(_process(each, "worker ") for each in status.workers)]


def _process(lease: Lease, what: str = "") -> RenderableType:
    return text(f"{what}{lease.holder.process}", (f", lease until {time_of_day(lease.expires_at)}", QUIET))


def _restaged(status: Status) -> list[RenderableType]:
    """That live rows in scope changed the run, and whether they are in its result."""
    restaged = status.restaged
    if restaged is None:
        return []
    total = len(status.manifest.chunks)
    again = "all chunks" if restaged.chunks == total else f"{number(restaged.chunks)} of {count(total, 'chunk')}"
    rows = count(restaged.live_rows, "live row")
    found = status.verdict is not None and status.verdict.accepted and status.verdict.base == restaged.base
    return [
        text(f"{count(restaged.times, 'time')}, last {again}", (f"  on version {restaged.base}", QUIET)),
        f"{rows} in scope, {'found in the result' if found else 'not proven to be in the result'}",
    ]


def _replayed(status: Status) -> list[RenderableType]:
    """How fast the stream's past went by; when it was slow, what makes it faster."""
    told = status.replayed
    if told is None:
        return []
    batches = count(told.batches, "batch", "batches")
    took = f"{duration(told.event_seconds)} of events in {duration(told.seconds)}, {batches}"
    lines: list[RenderableType] = [
        text(f"{took}: ", (f"{told.speed:,.1f} times as fast as they happened", CAREFUL if told.slow else GOOD))
    ]
    if told.slow:
        advice = f"less than {FAST} times: raise most_per_trigger of the stream, or give Spark more cores"
        lines.append(text((advice, QUIET)))
    return lines


def _set_aside(status: Status) -> list[RenderableType]:
    """Records of a topic that are not in the result, and where to look."""
    if not status.quarantined or status.run.state is RunState.CANCELLED:
        return []
    look = f"backcast quarantine show {status.run.run_id}"
    return [text((count(status.quarantined, "record"), CAREFUL), (f"  {look}", QUIET))]


def _canary(status: Status) -> list[RenderableType]:
    """What the chunks that went first are like, while the others wait."""
    canary = status.canary
    if canary is None:
        return []
    passed = sum(1 for each in canary.checks if each.passed)
    names = ", ".join(canary.chunks[:_SHOWN_CHUNKS]) + (" ..." if len(canary.chunks) > _SHOWN_CHUNKS else "")
    outcome, checks = OUTCOMES[canary.outcome], count(len(canary.checks), "check")
    lines: list[RenderableType] = [text(outcome, f"  {passed} of {checks} passed in {names}")]
    return [*lines, "nothing else is computed before you go on"] if canary.outcome is not Outcome.REJECTED else lines


def _verdict(status: Status) -> list[RenderableType]:
    verdict = status.verdict
    if verdict is None:
        return []
    passed = sum(1 for each in verdict.checks if each.passed)
    first = text(
        OUTCOMES[verdict.outcome],
        f"  {passed} of {count(len(verdict.checks), 'check')} passed, {count(verdict.rows, 'row')}",
    )
    return [first, *(each.detail for each in verdict.checks if each.passed and each.name.startswith("offsets"))]


def _publication(status: Status, now: datetime) -> list[RenderableType]:
    publication = status.publication
    if publication is None:
        return []
    lines: list[RenderableType] = [_published_line(publication)]
    if publication.undone_at is not None:
        return [*lines, text(f"undone {moment(publication.undone_at)} as version {publication.undo_version}")]
    if status.run.superseded_by:
        lines.append(text((f"superseded by {status.run.superseded_by}", CAREFUL)))
    if status.undo_until is not None:
        left = remaining(status.undo_until, now)
        style = BAD if left == "over" else GOOD
        lines.append(text(f"undo until {moment(status.undo_until)}  ", (left, style)))
    return lines


def _watch(status: Status) -> list[RenderableType]:
    watch = status.watch
    if watch is None:
        return []
    if watch.newest is None:
        return [text(f"{watched(watch)}: ", (f"backcast watch {watch.run_id}", STRONG))]
    outcome = ("✗ failed", BAD) if watch.failed else ("✓ as it should be", GOOD)
    return [text(outcome, (f"  {watched(watch)}", QUIET))]


def _published_line(publication: Publication) -> RenderableType:
    again = f", publish number {publication.generation}" if publication.generation > 1 else ""
    files = f"{count(len(publication.added), 'file')} in, {number(len(publication.removed))} out"
    return text(f"{moment(publication.published_at)}, {files}{again}", (f"  version {publication.version}", QUIET))


def _failures(status: Status) -> RenderableType | None:
    failed = status.failed_chunks
    if not failed:
        return None
    by_error: dict[str, list[Chunk]] = {}
    for chunk in failed:
        by_error.setdefault(chunk.error, []).append(chunk)
    lines: list[tuple[str, list[RenderableType]]] = []
    for error, chunks in list(by_error.items())[:_SHOWN_FAILURES]:
        others = f"and {count(len(chunks) - 1, 'other chunk')}, " if len(chunks) > 1 else ""
        tries = f"{others}after {count(max(each.attempts for each in chunks), 'attempt')}"
        lines.append((chunks[0].chunk_id, [text((tries, QUIET)), *(text(line) for line in _first_lines(error))]))
    if len(by_error) > _SHOWN_FAILURES:
        more = f"and {number(len(by_error) - _SHOWN_FAILURES)} more errors: backcast status {status.run.run_id} --json"
        lines.append(("", [more]))
    return section(f"{count(len(failed), 'failed chunk')}", blocks(lines))


def _first_lines(error: str, limit: int = 4) -> list[str]:
    lines = [line for line in error.strip().splitlines() if line.strip()]
    return [*lines[:limit], "..."] if len(lines) > limit else lines


def _failed_checks(status: Status) -> RenderableType | None:
    seen = status.watch.newest if status.watch is not None and status.watch.failed else None
    if seen is not None or status.canary is not None:
        return failures((seen or status.canary).checks)  # type: ignore[union-attr]  # one of them is there
    verdict = status.verdict
    return None if verdict is None else failures(verdict.checks, verdict.results, verdict.review)
