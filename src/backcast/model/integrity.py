"""Whether the table of a stream is sound before, and after, the stream is brought back. Pure."""

from __future__ import annotations

from backcast.model.document import Document
from backcast.model.finding import Finding, Severity, block, note, warn
from backcast.model.gaps import Fate, Gaps
from backcast.model.health import Health
from backcast.model.log import Ranges, span
from backcast.model.pieces import layers, pieces
from backcast.model.time import Interval, local
from backcast.model.words import many


class Integrity(Document):
    """What `check` and `gaps` find in the newest rows of a stream's dataset."""

    health: Health
    gaps: Gaps
    ahead: Ranges
    """Offsets from where the stream would go on that rows carry already; from the first to the last of a partition."""
    findings: tuple[Finding, ...]

    @property
    def problems(self) -> tuple[Finding, ...]:
        """Those that would become worse if the stream went on."""
        return tuple(each for each in self.findings if each.severity is Severity.BLOCK)


def findings_of(
    health: Health,
    gaps: Gaps,
    ahead: Ranges,
    *,
    appends: bool,
    archived: bool = False,
    owed: Ranges = (),
    windows: str = "",
) -> tuple[Finding, ...]:
    """Each with what mends it. `appends`: what the stream reads twice is in the table twice. `archived`: an archive may
    give what the log has lost; of that `owed` is what the recovery itself takes from there. `windows`: the command that
    plans windows from it, where no offsets can be planned.
    """
    found = [*_ahead(ahead, gaps.dataset, appends=appends), *_keys(health), *_missing(health, gaps)]
    if gone := tuple(each.range for each in gaps.holes if each.fate is Fate.GONE):
        reason = f"{_no_row(gone)}: the topic no longer has all of them"
        found.append(warn("table.offsets-gone", reason, _from_archive(gone, owed, gaps, windows, archived=archived)))
    if gaps.unanswered:
        found.append(
            note(
                "table.offsets-not-asked",
                f"the topic did not say what it has at offsets without a row: {gaps.unanswered}",
                f"later: backcast gaps {gaps.dataset}",
            )
        )
    return tuple(found)


def changes(before: Integrity, after: Integrity) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """What is mended, and what is there now that was not, told otherwise included."""
    codes = {each.code for each in after.findings}
    mended = tuple(each for each in before.findings if each.code not in codes)
    return mended, tuple(each for each in after.findings if each not in before.findings)


def _ahead(ahead: Ranges, dataset: str, *, appends: bool) -> list[Finding]:
    if not ahead:
        return []
    reason = f"rows carry offsets {_offsets(ahead)}, which the stream has not read"
    if not appends:
        return [note("table.read-ahead", f"{reason} yet", "nothing to do: its merge takes each of them once")]
    return [
        block(
            "table.read-ahead",
            f"{reason}: it would add them a second time",
            f"undo the run that added them (backcast list --dataset {dataset}), or delete these rows",
        )
    ]


def _keys(health: Health) -> list[Finding]:
    keys, found = health.keys, []
    if keys is not None and keys.doubles:
        reason = f"{many(keys.doubles, 'key')} more than once, e.g. {keys.example}"
        remedy = f"a pipeline that replaces windows would mend them, and none fills {health.dataset}: declare one"
        if keys.where:
            where = _days(keys.where[0], health.zone)
            reason = (
                f"{many(keys.doubles, 'key')} more than once in {many(len(keys.where), 'place')}, the first {where}"
            )
            reason += f", e.g. {keys.example}"
        if keys.where and health.restated_by:
            remedy = f"{_plan(health.restated_by[0], keys.where[0], health.zone)} --kind repair --reason 'doubled keys'"
        found.append(warn("table.doubled-keys", reason, remedy))
    if keys is not None and keys.nulls:
        reason = f"{many(keys.nulls, 'row')} with a null in {', '.join(keys.columns)}"
        found.append(warn("table.null-keys", reason, f"backcast check {health.dataset}; a rule would keep them out"))
    return found


def _missing(health: Health, gaps: Gaps) -> list[Finding]:
    found, remedy = [], _fix(gaps)
    if health.without_time:
        reason = f"{many(health.without_time, 'row')} without a time that can be read"
        found.append(warn("table.no-time", reason, f"backcast check {health.dataset}"))
    for code, missing, noun in (
        ("table.missing-time", gaps.gaps, gaps.grain.value),
        ("table.missing-hours", gaps.hours, "hour"),
    ):
        if missing:
            first = _days(missing[0].window, gaps.zone)
            reason = f"{many(sum(each.pieces for each in missing), noun)} without a row, the first {first}"
            found.append(warn(code, reason, remedy))
    if there := tuple(each.range for each in gaps.holes if each.fate is Fate.THERE):
        found.append(warn("table.offset-holes", f"{_no_row(there)}: the topic has records there", remedy))
    return found


def _no_row(ranges: Ranges) -> str:
    return f"no row carries {many(span(ranges), 'offset')}, the first {_offsets(ranges[:1])}"


def _from_archive(gone: Ranges, owed: Ranges, gaps: Gaps, windows: str, *, archived: bool) -> str:
    left = pieces(layers((gone,), without=(owed,)))
    if not archived:
        return "if anybody has kept them, declare that as the archive of the topic"
    if not left:
        return "nothing: the recovery takes them from the archive"
    rest = "the others" if owed else "they"
    plan = windows or f"backcast plan {gaps.pipeline} --offsets {_offsets(left)} --kind repair"
    return f"{rest} may be in the archive: {plan}"


def _offsets(ranges: Ranges) -> str:
    return ",".join(f"{each.partition}={each.start}..{each.end}" for each in ranges)


def _fix(gaps: Gaps) -> str:
    if not gaps.requests:
        return f"backcast gaps {gaps.dataset} tells where; no pipeline fills it"
    return f"backcast gaps {gaps.dataset} --plan plans exactly that"


def _plan(pipeline: str, window: Interval, zone: str) -> str:
    first, last = _bounds(window, zone)
    return f"backcast plan {pipeline} --from {first} --to {last}"


def _days(window: Interval, zone: str) -> str:
    return " to ".join(_bounds(window, zone))


def _bounds(window: Interval, zone: str) -> tuple[str, str]:
    walls = [local(each, zone) for each in (window.start, window.end)]
    days = all(wall.time() == wall.time().min for wall in walls)
    first, last = (f"{wall:%Y-%m-%d}" if days else f"{wall:%Y-%m-%dT%H:%M}" for wall in walls)
    return first, last
