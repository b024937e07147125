from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.carry import Yes, refuse_unless_asked
from backcast.cli.commands.stream_backfill import agreed, publish_run
from backcast.cli.commands.stream_start import started_in_background
from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, NO_REASON, Common, ScopeOptions, StreamName, WhyOptions
from backcast.cli.request import to_request
from backcast.cli.working import Working, screen_of, working
from backcast.errors import BackcastError, Failed

if TYPE_CHECKING:
    from backcast.control import ControlPlane
    from backcast.model.full_replay import CaughtUp, FullReplay

_PATIENCE = 5
"""Slices that may come no nearer to the stream before that is told."""


def stream_replay(
    name: StreamName,
    /,
    *,
    start: Annotated[
        str | None,
        Parameter(name="--from", metavar="DAY", help="Replace the table from this day on; all of it if not given."),
    ] = None,
    within: Annotated[int, Parameter(help="Stop the stream once the replay is so many records behind it.")] = 1000,
    why: WhyOptions = NO_REASON,
    give_up: Annotated[
        bool, Parameter(help="Forget an unfinished one; a stream that it stopped is started again.")
    ] = False,
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Compute a stream's table anew; the query that did goes on."""
    from backcast.cli.render.stream import render_stream
    from backcast.model.full_replay import RESUMED

    screen = screen_of(common)
    refuse_unless_asked("stream replay", common, yes=yes)
    with opened(common) as control:
        asked = control.stream_replay(name, start)
        if give_up:
            _give_up(control, asked, common)
        else:
            if asked.steps:
                screen.note(f"goes on behind: {', '.join(each.partition('.')[2] for each in asked.steps)}")
            try:
                done = _published(control, asked, within, why, common, yes=yes)
            except BackcastError as error:
                error.hint = "; ".join(filter(None, (error.hint, _left(asked))))
                raise
            if done is None:
                screen.note(f"nothing was changed; {_left(asked)}")
                return 0
            done = control.stream_replay_swap(name)
            screen.note(f"the stream goes on as the replay's query; its checkpoint before: {done.kept}")
            _restarted(control, done, common)
            control.stream_replay_step(name, RESUMED)
            control.stream_replay_end(name)
        found = control.stream_status(name)
        screen.show(found, render_stream(found, datetime.now(UTC)))
    return 0


def _left(asked: FullReplay) -> str:
    return f"stream {asked.stream} may be stopped: the same command goes on, and with --give-up it starts it again"


def _published(
    control: ControlPlane, asked: FullReplay, within: int, why: WhyOptions, common: Common, *, yes: bool
) -> FullReplay | None:
    """Caught up, planned, run and published; None when somebody said no."""
    from backcast.model.full_replay import CAUGHT_UP, PLANNED, PUBLISHED, STOPPED

    if asked.has(PUBLISHED):
        return asked
    name = asked.stream
    with working(common, "stream-replay-slice") as work:
        if not asked.has(STOPPED):
            _catch_up(work, name, within)
            if control.stream_status(name).alive:
                work.screen.note("stopping the stream behind its batch")
                control.stream_stop(name)
            asked = control.stream_replay_step(name, STOPPED)
        if not asked.has(CAUGHT_UP):
            found = _slice(work, name, last=True)
            asked = control.stream_replay_step(name, CAUGHT_UP, **found.as_json())
            ends = ", ".join(f"{key}={value}" for key, value in sorted(found.ends.items()))
            work.screen.note(f"caught up with the stream at {ends}, batch {found.batch}")
        if not asked.has(PLANNED):
            asked = _planned(control, work, asked, why)
        if not yes and not agreed(work, asked.run_id or ""):
            return None
        publish_run(work, asked.run_id or "")
        return control.stream_replay_step(name, PUBLISHED)


def _catch_up(work: Working, name: str, within: int) -> None:
    """In slices, each up to where the stream stands when it begins, until little is left. Raises Failed if never."""
    least, tries = None, 0
    while True:
        found = _slice(work, name)
        work.screen.note(f"batch {found.batch}: {found.behind:,} records behind the stream")
        if found.behind <= within:
            return
        nearer = least is None or found.behind < least
        least, tries = (found.behind, 0) if nearer else (least, tries + 1)
        if tries >= _PATIENCE:
            raise Failed(
                f"the replay comes no nearer to the stream than {least:,} records",
                hint=f"give it more cores, raise `most_per_trigger`, or accept a longer stop: --within {found.behind}",
            )


def _slice(work: Working, name: str, *, last: bool = False) -> CaughtUp:
    from backcast.model.full_replay import CaughtUp

    return CaughtUp.model_validate(work.call("stream-replay-slice", "replaying", name=name, last=last))


def _planned(control: ControlPlane, work: Working, asked: FullReplay, why: WhyOptions) -> FullReplay:
    from backcast.cli.render.plan import render_plan
    from backcast.errors import PlanRefused
    from backcast.model.finding import Severity
    from backcast.model.full_replay import PLANNED
    from backcast.model.report import Plan

    reason = why.reason or f"full replay of stream {asked.stream}"
    request = to_request(asked.pipeline, ScopeOptions(asked.first_day, asked.end_day), replace(why, reason=reason))
    request = control.stream_replay_request(asked.stream, request)
    plan = Plan.model_validate(work.call("plan", "planning", request=request.as_json(), record=True))
    if not work.screen.json:
        work.screen.show(plan, render_plan(plan, next_step=False))
    if plan.refused:
        blocking = [finding for finding in plan.findings if finding.severity is Severity.BLOCK]
        raise PlanRefused("; ".join(each.reason for each in blocking), hint=blocking[0].remedy)
    return control.stream_replay_step(asked.stream, PLANNED, run_id=plan.run_id)


def _give_up(control: ControlPlane, asked: FullReplay, common: Common) -> None:
    """What it staged is cancelled, and a stream that it stopped runs again as before."""
    from backcast.model.full_replay import PUBLISHED

    if asked.run_id is not None and not asked.has(PUBLISHED):
        with working(common, "cancel") as work:
            work.call("cancel", "cancelling", run_id=asked.run_id)
    control.stream_replay_end(asked.stream, given_up=True)
    _restarted(control, asked, common)
    screen_of(common).note("given up; the table is as it was")


def _restarted(control: ControlPlane, asked: FullReplay, common: Common) -> None:
    if asked.resume and not control.stream_status(asked.stream).alive:
        started_in_background(control, find_project(common.project), common.profile, asked.stream)
