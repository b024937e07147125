from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.carry import Yes, carry_through, refuse_unless_asked
from backcast.cli.checkpoints import Stopped
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, NO_LIMITS, Common, ScopeOptions, StreamName, WhyOptions
from backcast.cli.request import asked_request, user
from backcast.cli.stream_steps import answered, restarted, telling
from backcast.cli.working import Working, screen_of, working
from backcast.errors import BackcastError, Refused

if TYPE_CHECKING:
    from backcast.cli.screen import Screen
    from backcast.model.integrity import Integrity
    from backcast.model.log import Ranges
    from backcast.model.recovery import Recovery
    from backcast.model.restoring import LostWindows


def stream_recover(
    name: StreamName,
    /,
    *,
    without_state: Annotated[
        bool, Parameter(help="Begin without the state of a stateful stream: windows that were open will be wrong.")
    ] = False,
    stopped: Stopped = False,
    look: Annotated[bool, Parameter(help="Only say what was found and what would be done.")] = False,
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Bring back a stream whose checkpoint is lost."""
    from backcast.cli.render.recovery import render_recovery
    from backcast.model.recovery import Way, refuse_losing_state

    screen, after = screen_of(common), None
    if not look:
        refuse_unless_asked("stream recover", common, yes=yes)
    with working(common, "stream-recovery") as work:
        found = _looked_at(work, name)
        if look or not common.json:
            work.screen.show(found, render_recovery(found))
        if look:
            return 0
        _refuse_worse(found)
        if found.way is not Way.START:
            refuse_losing_state(found, without_state=without_state)
            if not yes and not answered(screen, "Put a fresh checkpoint there? The old one is kept aside."):
                screen.note(f"nothing was changed, and stream {name} is not started: the same command asks again")
                return 0
            if found.external and not stopped and not yes:
                stopped = answered(screen, f"Stream {name} is run by somebody else. Is it stopped?")
            given = {"name": name, "found": found.as_json(), "without_state": without_state, "stopped": stopped}
            work.call("stream-recover", "making the checkpoint", **given)
            screen.note(f"a fresh checkpoint is in place: {found.checkpoint}")
        if found.lacking and (found.by_offset or found.by_window):
            with telling(lambda: _waits(found)):
                code = _restore(work, found, common, yes=yes)
            if code or _still_lacking(work, found):
                screen.note(f"{_waits(found)}, which are not in {found.table}")
                return code
            after = _look_again(work, found)
    if found.external:
        _left_to_others(found, after, screen)
    else:
        _resume(found, after, common, screen, yes=yes)
    if found.lacking and not (found.by_offset or found.by_window):
        late = f"backcast late {found.stream} --plan plans the windows that lack them"
        screen.note(f"offsets {_lacking(found)} are not in {found.table}: {late}")
        return Refused.exit_code
    return 0


def _waits(found: Recovery) -> str:
    """For what the archive has not given yet."""
    without = f"{_started(found)} goes on without offsets {_lacking(found)}"
    return f"stream {found.stream} is not started: the same command goes on, and {without}"


def _looked_at(work: Working, name: str) -> Recovery:
    from backcast.model.recovery import Recovery

    found = Recovery.model_validate(work.call("stream-recovery", "looking at checkpoint and log", name=name))
    try:
        return found.model_copy(update={"integrity": _integrity(work, found)})
    except BackcastError as error:
        # Whose table cannot be judged may need the stream all the more.
        work.screen.note(f"nobody knows what the table lacks or has twice: {error}")
        return found


def _integrity(work: Working, found: Recovery) -> Integrity:
    from backcast.model.integrity import Integrity

    given = {"name": found.stream, "found": found.as_json()}
    return Integrity.model_validate(work.call("stream-integrity", "looking at the table", **given))


def _refuse_worse(found: Recovery) -> None:
    """Raises Refused where the stream would do more damage to the table, were it started."""
    if found.integrity is not None and found.integrity.problems:
        worst = found.integrity.problems[0]
        raise Refused(f"{found.table}: {worst.reason}", hint=worst.remedy)


def _restore(work: Working, found: Recovery, common: Common, *, yes: bool) -> int:
    """What retention took before the stream could read it, out of the archive. The exit code of its run."""
    if found.by_window:
        return _restate(work, found, common, yes=yes)
    why = WhyOptions(reason=f"retention took what stream {found.stream} had not read", kind="repair")
    request = asked_request(found.pipeline, None, ScopeOptions(offsets=_lacking(found)), why, NO_LIMITS)
    return carry_through(work, common, request.as_json(), yes=yes, is_last=False)


def _restate(work: Working, found: Recovery, common: Common, *, yes: bool) -> int:
    """The windows that lack it, for a pipeline that replaces."""
    for each in _lost_windows(work, found).requests:
        request = each.model_copy(update={"requested_by": user()})
        code = carry_through(work, common, request.as_json(), yes=yes, is_last=False)
        if code:
            return code
    if unread := _lost_windows(work, found).unread:
        raise Refused(
            f"no run has read offsets {_told(unread)}: the time that these records carry is too far from their window",
            hint="raise `slack` of the source in backcast.yaml, or set `to_end: true`, and repeat this command",
        )
    return 0


def _lost_windows(work: Working, found: Recovery) -> LostWindows:
    from backcast.model.restoring import LostWindows

    given = {"name": found.stream, "found": found.as_json()}
    return LostWindows.model_validate(work.call("stream-lost-windows", "looking for the lost records", **given))


def _still_lacking(work: Working, found: Recovery) -> bool:
    """Who was asked whether the run may add the offsets may have said no."""
    from backcast.model.recovery import Recovery

    now = Recovery.model_validate(work.call("stream-recovery", "looking at the log", name=found.stream))
    return bool(now.lacking)


def _look_again(work: Working, found: Recovery) -> Integrity | None:
    """Rows were added, so the table is another one."""
    from backcast.cli.render.recovery import render_integrity

    if found.integrity is None:
        return None
    after = _integrity(work, found.model_copy(update={"lacking": ()}))
    if not work.screen.json:
        work.screen.show(after, render_integrity(found.integrity, after))
    return after


def _lacking(found: Recovery) -> str:
    return _told(found.lacking)


def _told(ranges: Ranges) -> str:
    return ",".join(f"{each.partition}={each.start}..{each.end}" for each in ranges)


def _resume(found: Recovery, after: Integrity | None, common: Common, screen: Screen, *, yes: bool) -> None:
    """Start the stream, and say what is left to be done about the table."""
    if yes or answered(screen, f"Start stream {found.stream}?"):
        _start(found, after, common, screen)
    else:
        screen.note(f"stream {found.stream} is not started; later: {_started(found)}")
    _tell_left(found, after, screen)


def _left_to_others(found: Recovery, after: Integrity | None, screen: Screen) -> None:
    """A stream that is run by somebody else is started there."""
    from backcast.cli.render.recovery import render_start_elsewhere
    from backcast.model.recovery import Recovered

    screen.show(Recovered(found=found, after=after, stream=None), render_start_elsewhere(found))
    _tell_left(found, after, screen)


def _tell_left(found: Recovery, after: Integrity | None, screen: Screen) -> None:
    left = after or found.integrity
    if left is not None and left.findings:
        codes = ", ".join(each.code for each in left.findings)
        screen.note(f"still to be mended in {found.table}: {codes} (above)")


def _start(found: Recovery, after: Integrity | None, common: Common, screen: Screen) -> None:
    from datetime import UTC, datetime

    from backcast.cli.render.stream import render_stream
    from backcast.model.recovery import Recovered

    with opened(common) as control:
        restarted(control, found.stream, common)
        status = control.stream_status(found.stream)
        told = Recovered(found=found, after=after, stream=status)
        screen.show(told, render_stream(status, datetime.now(UTC)))


def _started(found: Recovery) -> str:
    """What starts the stream."""
    return "its query, where it runs," if found.external else f"backcast stream start {found.stream}"
