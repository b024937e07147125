from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from backcast.cli.carry import Yes, refuse_unless_asked
from backcast.cli.checkpoints import Stopped
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, NO_REASON, Common, ScopeOptions, StreamName, WhyOptions
from backcast.cli.stream_steps import (
    answered,
    left,
    planned,
    publish_run,
    request_of,
    restarted,
    tell_done,
    telling,
)
from backcast.cli.working import Working, screen_of, working
from backcast.errors import Refused

if TYPE_CHECKING:
    from backcast.cli.screen import Screen
    from backcast.control import ControlPlane
    from backcast.model.stream_backfill import StreamBackfill


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class PauseOptions:
    """What becomes of the stream meanwhile."""

    pause: Annotated[bool, Parameter(help="Stop the stream meanwhile, also where that is not needed.")] = False
    stopped: Stopped = False
    give_up: Annotated[bool, Parameter(help="Forget an unfinished one; a stream that it paused is started again.")] = (
        False
    )


AS_NEEDED = PauseOptions()


def stream_backfill(
    name: StreamName,
    /,
    *,
    start: Annotated[str, Parameter(name="--from", metavar="DAY", help="First day or time in the dataset's zone.")],
    end: Annotated[str, Parameter(name="--to", metavar="DAY", help="Where it ends; this day is not part of it.")],
    why: WhyOptions = NO_REASON,
    pausing: PauseOptions = AS_NEEDED,
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Restate a window of a stream's table, pausing it if need be."""
    from backcast.model.stream_backfill import VERIFIED

    screen = screen_of(common)
    refuse_unless_asked("stream backfill", common, yes=yes)
    with opened(common) as control, control.stream_backfill_alone(name):
        if pausing.give_up:
            return _give_up(control, name, start, end, common)
        asked = control.stream_backfill(name, start, end, pause=pausing.pause)
        screen.note(f"{asked.way}: {asked.why}")
        tell_done(screen, asked.steps)
        again = asked.has(VERIFIED)
        with telling(lambda: _left(control, asked)):
            if asked.external:
                asked = _stopped_by_others(control, asked, screen, said=pausing.stopped, yes=yes)
            if asked.way == "pause":
                asked = _paused(control, asked, screen)
            published = _published(control, asked, common, why, yes=yes)
            if published is None:
                screen.note(f"the table is as it was; {_left(control, asked)}")
                return 0
        if published.external:
            published = _left_to_others(control, published, screen, again=again)
        else:
            _resumed(control, published, common)
        return _shown(control, published, common)


def _left(control: ControlPlane, asked: StreamBackfill) -> str:
    stands = asked.resume and not control.stream_status(asked.stream).alive
    return left(asked.stream, "starts the stream again and ends here" if asked.resume else "ends here", stands=stands)


def _give_up(control: ControlPlane, name: str, start: str, end: str, common: Common) -> int:
    """The run stays as it is; a stream that was stopped for it runs again."""
    from backcast.cli.render.stream import render_stream
    from backcast.model.stream_backfill import GIVEN_UP, GIVING_UP

    asked = control.stream_backfill_given_up(name, start, end)
    if asked.resume:
        control.stream_backfill_step(name, GIVING_UP)
        restarted(control, name, common)
    control.stream_backfill_step(name, GIVEN_UP)
    screen, found = screen_of(common), control.stream_status(name)
    screen.note(f"given up; {_stays(control, asked.run_id)}")
    if asked.external:
        screen.note(f"stream {name} can be started again where it runs")
    screen.show(found, render_stream(found, datetime.now(UTC)))
    return 0


def _stays(control: ControlPlane, run_id: str | None) -> str:
    """What becomes of the run of one that is given up: nothing, and what to type where that is not meant."""
    from backcast.model.states import RunState, allowed

    if run_id is None:
        return "nothing was planned, and the table is as it was"
    state = control.status(run_id).run.state
    if allowed(state, RunState.UNDOING):
        return f"run {run_id} stays {state}: backcast undo {run_id} takes its rows back"
    if allowed(state, RunState.CANCELLING):
        return f"run {run_id} stays {state}, and the table as it was: backcast cancel {run_id} drops it"
    return f"run {run_id} stays {state}: backcast status {run_id}"


def _stopped_by_others(
    control: ControlPlane, asked: StreamBackfill, screen: Screen, *, said: bool, yes: bool
) -> StreamBackfill:
    """Others stop it; that it stands is looked at, and is on record with the batch behind which it does."""
    name = asked.stream
    if not control.stream_backfill_to_stop(name):
        return asked
    checkpoint = control.stream_status(name).checkpoint
    screen.note(f"stream {name} is run by somebody else: stop it there, and leave it stopped (checkpoint {checkpoint})")
    said = said or (not yes and answered(screen, "Is it stopped?"))
    screen.note("looking whether its checkpoint stands still")
    found = control.stream_backfill_stopped(name, stopped=said) or asked
    ends = ", ".join(f"{partition}={end}" for partition, end in sorted(found.ends.items()))
    screen.note(f"it stands behind batch {found.batch}: {ends}")
    if asked.run_id:
        screen.note(f"run {asked.run_id} was planned while it stood elsewhere: backcast cancel {asked.run_id}")
    return found


def _left_to_others(control: ControlPlane, asked: StreamBackfill, screen: Screen, *, again: bool) -> StreamBackfill:
    """It is over when the stream goes on, and with the next call: to wait for others is not a command's."""
    from backcast.model.stream_backfill import DONE, RESUMED

    name = asked.stream
    if not control.stream_backfill_rests(name):
        asked = control.stream_backfill_step(name, RESUMED) or asked
    if again or asked.has(RESUMED):
        control.stream_backfill_step(name, DONE)
    return asked


def _paused(control: ControlPlane, asked: StreamBackfill, screen: Screen) -> StreamBackfill:
    """Stopped behind a batch, and its checkpoint copied."""
    from backcast.model.stream_backfill import BACKED_UP, STOPPED

    if not asked.has(STOPPED):
        screen.note("stopping the stream behind its batch")
        asked = control.stream_backfill_stop(asked.stream) or asked
    if not asked.has(BACKED_UP):
        copy = control.checkpoint_backup(asked.stream)
        control.stream_backfill_refuse_moved(asked.stream)
        screen.note(f"checkpoint backed up: {copy.path}")
        asked = control.stream_backfill_step(asked.stream, BACKED_UP, backup=copy.path) or asked
    return asked


def _published(
    control: ControlPlane, asked: StreamBackfill, common: Common, why: WhyOptions, *, yes: bool
) -> StreamBackfill | None:
    """Planned, run, published and looked at; None when somebody said no."""
    from backcast.model.stream_backfill import PLANNED, PUBLISHED, VERIFIED

    if asked.has(VERIFIED):
        return asked
    with working(common, "plan") as work:
        if not asked.has(PLANNED):
            found = _planned(control, asked, work, why)
            if found is None:
                return None
            asked = found
        run_id = asked.run_id or ""
        if not asked.has(PUBLISHED):
            if not yes and not answered(work.screen, f"Run {run_id} and publish it?"):
                return None
            publish_run(work, run_id, lambda: control.stream_backfill_refuse_moved(asked.stream))
            asked = control.stream_backfill_step(asked.stream, PUBLISHED) or asked
        seen = work.call("watch", "looking at what readers see", run_id=run_id, once=True, every=300.0)
        _refuse_wrong(seen)
        return control.stream_backfill_step(asked.stream, VERIFIED) or asked


def _planned(control: ControlPlane, asked: StreamBackfill, work: Working, why: WhyOptions) -> StreamBackfill | None:
    scope, otherwise = ScopeOptions(asked.start, asked.end), f"backfill of stream {asked.stream}"
    plan = planned(work, request_of(asked.pipeline, scope, why, otherwise))
    return control.stream_backfill_planned(asked.stream, plan)


def _refuse_wrong(seen: dict[str, object]) -> None:
    from backcast.model.watch import Watch

    found = Watch.model_validate(seen)
    if found.newest is not None and found.failed:
        wrong = "; ".join(f"{each.name}: {each.detail}" for each in found.newest.wrong)
        raise Refused(
            f"run {found.run_id} is published, and a look at the table failed: {wrong}",
            hint=f"backcast watch {found.run_id} --once shows every check; backcast undo {found.run_id} takes it back",
        )


def _resumed(control: ControlPlane, asked: StreamBackfill, common: Common) -> None:
    from backcast.model.stream_backfill import DONE, RESUMED

    if asked.resume and not asked.has(RESUMED):
        restarted(control, asked.stream, common)
        control.stream_backfill_step(asked.stream, RESUMED)
    control.stream_backfill_step(asked.stream, DONE)


def _shown(control: ControlPlane, asked: StreamBackfill, common: Common) -> int:
    from backcast.cli.render.stream import render_backfill

    screen = screen_of(common)
    screen.show(asked, render_backfill(asked, control.stream_status(asked.stream), datetime.now(UTC)))
    return 0
