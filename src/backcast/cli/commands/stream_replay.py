from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.carry import Yes, refuse_unless_asked
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, NO_REASON, Common, ScopeOptions, StreamName, WhyOptions
from backcast.cli.stream_steps import answered, left, planned, publish_run, request_of, restarted, tell_done
from backcast.cli.working import Working, screen_of, working
from backcast.errors import BackcastError, Failed
from backcast.model.words import many

if TYPE_CHECKING:
    from backcast.control import ControlPlane
    from backcast.model.full_replay import CaughtUp, FullReplay
    from backcast.model.report import Plan

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
    from_offsets: Annotated[
        str | None,
        Parameter(metavar="OFFSETS", help="Read from here on, 0=100,1=50: days that need no earlier record."),
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
    with opened(common) as control, control.stream_replay_alone(name):
        if give_up:
            _give_up(control, name, start, from_offsets, common)
        else:
            asked = control.stream_replay(name, start, from_offsets)
            if asked.offsets:
                kept = f"from {asked.start} on: older ones may need records before these offsets, and stay"
                screen.note(f"replaces rows {kept if asked.start else 'of all days'}")
            tell_done(screen, asked.steps)
            try:
                done = _published(control, asked, within, why, common, yes=yes)
            except BackcastError as error:
                error.hint = "; ".join(filter(None, (error.hint, _left(control, asked))))
                raise
            if done is None:
                screen.note(f"nothing was changed; {_left(control, asked)}")
                return 0
            done = control.stream_replay_swap(name)
            screen.note(f"the stream goes on as the replay's query; its checkpoint before: {done.kept}")
            if done.resume:
                restarted(control, name, common)
            control.stream_replay_step(name, RESUMED)
            control.stream_replay_end(name)
        found = control.stream_status(name)
        screen.show(found, render_stream(found, datetime.now(UTC)))
    return 0


def _left(control: ControlPlane, asked: FullReplay) -> str:
    """What is to be done about one that did not come to its end."""
    from backcast.model.full_replay import STOPPED

    asked = control.stream_replay(asked.stream, asked.start, asked.from_offsets)
    again = "starts it again as it was" if asked.has(STOPPED) and asked.resume else "forgets it"
    return left(asked.stream, again, stands=asked.has(STOPPED))


def _published(
    control: ControlPlane, asked: FullReplay, within: int, why: WhyOptions, common: Common, *, yes: bool
) -> FullReplay | None:
    """Caught up, planned, run and published; None when somebody said no."""
    from backcast.model.full_replay import CAUGHT_UP, PUBLISHED, STOPPED

    if asked.has(PUBLISHED):
        return asked
    name = asked.stream
    with working(common, "stream-replay-slice") as work:
        if not asked.has(STOPPED):
            found = _catch_up(work, name, within)
            if not _rehearsed(control, work, asked, why, found, yes=yes):
                return None
            if control.stream_status(name).alive:
                work.screen.note("stopping the stream behind its batch")
            asked = control.stream_replay_stop(name)
        if not asked.has(CAUGHT_UP):
            found = _slice(work, name, last=True)
            asked = control.stream_replay_step(name, CAUGHT_UP, **found.as_json())
            ends = ", ".join(f"{key}={value}" for key, value in sorted(found.ends.items()))
            work.screen.note(f"caught up with the stream at {ends}, batch {found.batch}")
        run_id = control.stream_replay_run(name) or _planned(control, work, asked, why)
        if not yes and not answered(work.screen, f"Run {run_id} and publish it?"):
            return None
        publish_run(work, run_id)
        return control.stream_replay_step(name, PUBLISHED)


def _catch_up(work: Working, name: str, within: int) -> CaughtUp:
    """In slices, each up to where the stream stands when it begins, until little is left. Raises Failed if never."""
    least, tries = None, 0
    while True:
        found = _slice(work, name, within)
        work.screen.note(f"{_told(found.batch)}: {many(found.behind, 'record')} behind the stream")
        if found.behind <= within:
            return found
        nearer = least is None or found.behind < least
        least, tries = (found.behind, 0) if nearer else (least, tries + 1)
        if tries >= _PATIENCE:
            raise Failed(
                f"the replay comes no nearer to the stream than {least:,} records",
                hint="give it more cores, raise `most_per_trigger`, loosen `throttle`, or accept a longer stop:"
                f" --within {found.behind}",
            )


def _told(batch: int | None) -> str:
    return "nothing to read yet" if batch is None else f"batch {batch}"


def _slice(work: Working, name: str, within: int = 0, *, last: bool = False) -> CaughtUp:
    from backcast.model.full_replay import CaughtUp

    return CaughtUp.model_validate(work.call("stream-replay-slice", "replaying", name=name, within=within, last=last))


def _rehearsed(
    control: ControlPlane, work: Working, asked: FullReplay, why: WhyOptions, found: CaughtUp, *, yes: bool
) -> bool:
    """What a plan would refuse is known before anything stops, and whom the stream would wait for. Raises PlanRefused;
    False when somebody said no.
    """
    if found.batch is None:
        return True
    plan = _plan(control, work, asked, why, found)
    _refuse(plan)
    need = plan.manifest.approval
    if need is None or not need.roles:
        return True
    people = " and ".join(need.roles)
    work.screen.note(f"policy asks for {people}: the stream stands from its stop until they have agreed to the run")
    return yes or answered(work.screen, f"Stop stream {asked.stream} all the same?")


def _planned(control: ControlPlane, work: Working, asked: FullReplay, why: WhyOptions) -> str:
    from backcast.model.full_replay import PLANNED

    plan = _plan(control, work, asked, why, None)
    _refuse(plan)
    control.stream_replay_step(asked.stream, PLANNED, run_id=plan.run_id)
    return plan.run_id


def _plan(control: ControlPlane, work: Working, asked: FullReplay, why: WhyOptions, found: CaughtUp | None) -> Plan:
    """On record, unless it is made of what was found so far."""
    days = found or asked
    scope = ScopeOptions(days.first_day, days.end_day)
    request = request_of(asked.pipeline, scope, why, f"full replay of stream {asked.stream}")
    return planned(work, control.stream_replay_request(asked.stream, request, found), record=found is None)


def _refuse(plan: Plan) -> None:
    from backcast.errors import PlanRefused
    from backcast.model.finding import Severity

    if plan.refused:
        blocking = [finding for finding in plan.findings if finding.severity is Severity.BLOCK]
        raise PlanRefused("; ".join(each.reason for each in blocking), hint=blocking[0].remedy)


def _give_up(control: ControlPlane, name: str, start: str | None, offsets: str | None, common: Common) -> None:
    """What it staged is cancelled, and a stream that it stopped runs again as before."""
    from backcast.model.full_replay import STOPPED

    asked, run_id = control.stream_replay_given_up(name, start, offsets)
    if run_id is not None:
        with working(common, "cancel") as work:
            work.call("cancel", "cancelling", run_id=run_id)
    asked = control.stream_replay_giving_up(name)
    again = asked.has(STOPPED) and asked.resume
    if again:
        restarted(control, name, common)
    control.stream_replay_end(name, given_up=True)
    screen_of(common).note(f"given up; the table is as it was{', and the stream goes on as before' if again else ''}")
