"""How far a stream is behind: one line for each partition, then what follows from it."""

from __future__ import annotations

from datetime import datetime

from rich.console import RenderableType

from backcast.cli.render.layout import BAD, CAREFUL, GOOD, QUIET, STRONG, columns, command, indented, page, text
from backcast.cli.render.words import ago, count, duration, moment, number, rate, remaining
from backcast.model.lag import PartitionLag, Standing, StreamLag
from backcast.model.manifest import Survival
from backcast.sources.kafka.spelling import format_ranges

_STYLES = {
    Survival.GONE: BAD,
    Survival.PARTIAL: BAD,
    Survival.AT_RISK: CAREFUL,
    Survival.UNKNOWN: CAREFUL,
    Survival.OK: GOOD,
    Survival.UNBOUNDED: GOOD,
}
_WRONG = (Standing.VANISHED, Standing.AHEAD, Standing.REMADE)


def render_lag(found: StreamLag, most: float | None = None) -> RenderableType:
    """`most`: how many seconds an unread record may wait."""
    right = ("PARTITION", "READ TO", "LOG START", "LOG END", "BEHIND")
    table = columns(*right, "WAITING", "SURVIVAL", right=frozenset(right))
    for each in found.partitions:
        table.add_row(*_row(each, found.measured_at))
    behind = f"{count(found.behind, 'record')} behind" if found.behind else "has read everything"
    batch = f"batch {number(found.batch)}, begun {ago(found.begun, found.measured_at)}"
    under_way = "" if found.planned is None else f", batch {number(found.planned)} under way or broken off"
    return page(
        text((found.stream or found.checkpoint, STRONG), "  ", _word(found, most), (f"  {behind}", STRONG)),
        indented(text((f"topic {found.topic}, {batch}{under_way}", QUIET))),
        text(""),
        table,
        text(""),
        *(text(each) for each in _sentences(found, most)),
        _remedy(found),
    )


def _word(found: StreamLag, most: float | None) -> tuple[str, str]:
    if found.other_topic:
        return "OTHER TOPIC", BAD
    if found.lost:
        return "RECORDS LOST", BAD
    if found.waits_longer(most):
        return "TOO LATE", BAD
    if _risky(found):
        return "AT RISK", CAREFUL
    return "OK", GOOD


def _row(each: PartitionLag, now: datetime) -> tuple[RenderableType, ...]:
    waiting = "" if each.first_unread is None else duration((now - each.first_unread).total_seconds())
    vanished = each.standing is Standing.VANISHED
    fate = str(each.survival) if each.standing in (Standing.KNOWN, Standing.NEW) else each.standing.upper()
    new = " (new)" if each.standing is Standing.NEW else ""
    style = BAD if each.standing in _WRONG else _STYLES[each.survival]
    return (
        text((str(each.partition), STRONG)),
        text(("-", QUIET)) if each.position is None else number(each.position),
        "-" if vanished else number(each.log_start),
        "-" if vanished else number(each.log_end),
        text((number(each.behind), STRONG if each.behind else QUIET)),
        waiting,
        text((f"{fate}{new}", style)),
    )


def _sentences(found: StreamLag, most: float | None) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    if most is not None and found.waits_longer(most):
        waits, asked = duration(found.behind_seconds), duration(most)
        told.append((f"the oldest unread record has been waiting for {waits}, longer than {asked}", BAD))
    if found.behind and found.catch_up_seconds is not None:
        told.append((f"{rate(found.pace or 0)} of late: caught up in {duration(found.catch_up_seconds)}", ""))
    elif found.behind:
        told.append(("too few batches to tell how fast it reads", QUIET))
    removed = [each.survives_until for each in found.partitions if each.behind and each.survives_until is not None]
    if removed:
        first = min(removed)
        when = f"{moment(first)}, {remaining(first, found.measured_at)}"
        told.append((f"retention may take unread records from {when}", CAREFUL if _risky(found) else QUIET))
    new = [each for each in found.partitions if each.standing is Standing.NEW]
    if new:
        told.append((f"{count(len(new), 'partition')} that the checkpoint does not know yet", CAREFUL))
    if found.lost:
        gone = sum(each.span for each in found.lost)
        told.append((f"{count(gone, 'offset')} gone before they were read: {format_ranges(found.lost)}", BAD))
    if found.other_topic:
        wrong = next(each for each in found.partitions if each.standing in _WRONG)
        told.append((_MADE_AGAIN[wrong.standing].format(wrong.partition, found.topic), BAD))
    return told


_MADE_AGAIN = {
    Standing.VANISHED: "the checkpoint knows partition {0}, and {1} has none: the topic was made again",
    Standing.AHEAD: "partition {0} of {1} ends before what the checkpoint has read: the topic was made again",
    Standing.REMADE: "the last record read of partition {0} was written after it was read: {1} was made again",
}


def _risky(found: StreamLag) -> bool:
    return any(each.survival is Survival.AT_RISK for each in found.partitions)


def _remedy(found: StreamLag) -> RenderableType | None:
    """What is lost can come from an archive, if there is one; the plan tells."""
    if found.other_topic or not found.lost or found.pipeline is None:
        return None
    if found.ours:
        return command(f"backcast stream recover {found.stream}")
    asked = f"--offsets {format_ranges(found.lost)}"
    return command(f'backcast plan {found.pipeline} {asked} --kind replay --reason "lost to retention"')
