"""Findings about inputs that are logs: whether the log still has what the window needs, and will when it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backcast.model.finding import Finding, block, note, warn
from backcast.model.log import LogPin, Ranges
from backcast.model.manifest import InputPin, LivePolicy, Settings, Survival
from backcast.model.words import many

_MOST_NAMED = 3


def log_findings(inputs: Iterable[InputPin], settings: Settings) -> list[Finding]:
    """What the logs among the inputs say."""
    return [finding for pin in inputs if pin.log is not None for finding in _found(pin, pin.log, settings)]


def _found(pin: InputPin, log: LogPin, settings: Settings) -> Iterator[Finding]:
    yield from _kept(pin, log)
    yield from _read(pin, log)
    if settings.live_policy is LivePolicy.RESTAGE:
        yield block(
            "policy.restage-needs-tables",
            f"live policy `restage` reads newer inputs for some chunks, and input {pin.name} is a log",
            "use `live: fail` or `live: keep`",
        )


def _kept(pin: InputPin, log: LogPin) -> Iterator[Finding]:
    """What of the window log and archive still have, and for how long."""
    if pin.survival in (Survival.GONE, Survival.PARTIAL):
        what = "all" if pin.survival is Survival.GONE else "a part"
        nowhere = "" if log.archive is None else f", and {log.archive.place} does not have it either"
        yield block(
            "log.gone" if pin.survival is Survival.GONE else "log.partial",
            f"retention has removed {what} of what input {pin.name} needs: {_named(log.missing)}{nowhere}",
            "ask for a window that the log still has"
            if log.archive is not None
            else "ask for a window that the log still has, or declare an `archive` of the topic that has the rest",
        )
    elif pin.survival is Survival.AT_RISK:
        yield warn(
            "log.at-risk",
            f"retention may remove the first records of {log.topic} at {pin.survives_until:%Y-%m-%d %H:%M} UTC,"
            " before the run may end",
            f"raise retention.ms of {log.topic} until the run is over, or run it now",
        )
    elif pin.survival is Survival.UNKNOWN:
        yield note(
            "log.survival-unknown",
            f"nobody can say how long {log.topic} keeps these records",
            "run soon",
        )
    if log.doubtful:
        yield warn(
            "log.may-be-cut",
            f"the log of {log.topic} begins after the window does: {_named(log.doubtful)} are gone. Time cannot have"
            " removed records that young, but somebody may have deleted them, or kept them for less time before",
            "nothing to do when the topic was idle then; else ask for a window that begins later, or use an archive",
        )
    if log.archive is not None and log.archive.holes:
        yield block(
            "log.archive-holes",
            f"{log.archive.place} lacks records of {log.topic} that the log no longer has, among"
            f" {_named(log.archive.holes)}",
            "mend the archive, or ask for a window without them; when producers use transactions, declare it:"
            " `transactional: true`",
        )


def _read(pin: InputPin, log: LogPin) -> Iterator[Finding]:
    """What of that is read."""
    if log.left is not None:
        yield note(
            "log.left-to-stream",
            f"stream {log.left.stream} has not read {_named(log.left.ranges)} of {log.topic} yet: they are left to it,"
            " for read by both they would be in the table twice",
            f"nothing to do when the stream goes on (backcast stream status {log.left.stream}); if it never will, take"
            " it out of backcast.yaml and plan again",
        )
    if log.by_time and not log.to_end:
        yield note(
            "log.slack",
            f"input {pin.name} is read by record time with the declared slack: a record of the window that was written"
            " later than that, or lies behind later ones in its partition by more, is not read",
            "nothing to do when producers are never that late; else set `to_end: true` on the source",
        )
    if "compact" in log.cleanup:
        yield note(
            "log.compacted",
            f"{log.topic} is compacted: records that newer ones of their key have replaced may be missing already",
            "nothing to do when only the last record of a key counts; else read a topic that keeps all of them",
        )


def _named(ranges: Ranges) -> str:
    named = [f"{each.partition}={each.start}..{each.end}" for each in ranges[:_MOST_NAMED]]
    more = len(ranges) - _MOST_NAMED
    return f"offsets {', '.join(named)}" + (f" and of {many(more, 'partition')} more" if more > 0 else "")
