from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.carry import Yes, refuse_unless_asked
from backcast.cli.commands.backfill import backfill
from backcast.cli.commands.stream_start import started_in_background
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, ScopeOptions, StreamName, WhyOptions
from backcast.cli.working import screen_of, working
from backcast.errors import Refused

if TYPE_CHECKING:
    from backcast.cli.screen import Screen
    from backcast.model.recovery import Recovery


def stream_recover(
    name: StreamName,
    /,
    *,
    without_state: Annotated[
        bool, Parameter(help="Begin without the state of a stateful stream: windows that were open will be wrong.")
    ] = False,
    look: Annotated[bool, Parameter(help="Only say what was found and what would be done.")] = False,
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Bring back a stream whose checkpoint is lost."""
    from backcast.cli.render.recovery import render_recovery
    from backcast.model.recovery import Recovery, Way

    screen = screen_of(common)
    if not look:
        refuse_unless_asked("stream recover", common, yes=yes)
    with working(common, "stream-recovery") as work:
        found = Recovery.model_validate(work.call("stream-recovery", "looking at table, checkpoint and log", name=name))
        if look or not common.json:
            work.screen.show(found, render_recovery(found))
        if look:
            return 0
        if found.way is not Way.START:
            if not yes and not _agreed(screen, "Put a fresh checkpoint there? The old one is kept aside."):
                screen.note("nothing was changed")
                return 0
            given = {"name": name, "found": found.as_json(), "without_state": without_state}
            work.call("stream-recover", "making the checkpoint", **given)
    if not found.lacking:
        return _resume(found, common, screen, yes=yes)
    if not found.by_offset:
        _resume(found, common, screen, yes=yes)
        screen.note(f"offsets {_lacking(found)} are not in {found.table}: backcast late {found.stream} --plan")
        return Refused.exit_code
    code = _restore(found, common, yes=yes)
    if code:
        screen.note(
            f"offsets {_lacking(found)} are not in {found.table}, and the stream is not started: the same command tries"
            f" again, backcast stream start {found.stream} goes on without them"
        )
        return code
    return _resume(found, common, screen, yes=yes)


def _restore(found: Recovery, common: Common, *, yes: bool) -> int:
    """What retention took before the stream could read it, out of the archive. The exit code of its run."""
    why = WhyOptions(reason=f"retention took what stream {found.stream} had not read", kind="repair")
    return backfill(found.pipeline, scope=ScopeOptions(offsets=_lacking(found)), why=why, yes=yes, common=common)


def _lacking(found: Recovery) -> str:
    return ",".join(f"{each.partition}={each.start}..{each.end}" for each in found.lacking)


def _resume(found: Recovery, common: Common, screen: Screen, *, yes: bool) -> int:
    if not yes and not _agreed(screen, f"Start stream {found.stream}?"):
        screen.note(f"later: backcast stream start {found.stream}")
        return 0
    with opened(common) as control:
        started_in_background(control, find_project(common.project), common.profile, found.stream, accept=False)
        from datetime import UTC, datetime

        from backcast.cli.render.stream import render_stream

        status = control.stream_status(found.stream)
        screen.show(status, render_stream(status, datetime.now(UTC)))
    return 0


def _agreed(screen: Screen, question: str) -> bool:
    screen.err.print(f"{question} [y/N] ", end="")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
