"""What the commands about checkpoints share: which one is meant, where it is to go, which table it writes to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from backcast.cli.locate import find_project
from backcast.cli.opened import opened
from backcast.errors import ConfigError

if TYPE_CHECKING:
    from backcast.cli.options import Common
    from backcast.cli.protocol import Verb
    from backcast.model.checkpoint import Change
    from backcast.verbs.checkpoints import CheckpointReading

CheckpointName = Annotated[str, Parameter(help="Folder of a checkpoint, or the name of a declared stream.")]
Stopped = Annotated[bool, Parameter(help="You made sure that the stream does not run; only for one that others run.")]
Stateless = Annotated[bool, Parameter(help="The query keeps no state; only where nobody can see whether it was lost.")]
POINT = Group("Where it goes on", sort_key=2)
SINK = Group("Sink", sort_key=3)


@Parameter(name="*", group=SINK)
@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What is known about the table that the stream writes to."""

    sink: Annotated[
        str | None, Parameter(metavar="DATASET", help="What it writes to; a declared stream says so itself.")
    ] = None
    unchecked_sink: Annotated[
        bool, Parameter(help="Do not ask the table; you know what it does with batches that come again.")
    ] = False


NO_SINK = SinkOptions()


@Parameter(name="*", group=POINT)
@dataclass(frozen=True, slots=True)
class MomentOptions:
    """A moment of event time, and how far the query's watermark stays behind the newest row."""

    before: Annotated[
        str | None,
        Parameter(
            metavar="TIME", help="After the newest batch whose watermark, and the delay, lie before this moment."
        ),
    ] = None
    delay: Annotated[
        str | None,
        Parameter(metavar="10m", help="Of the query's watermark, as its code has it; a declared one says so itself."),
    ] = None


NO_MOMENT = MomentOptions()


@Parameter(name="*", group=POINT)
@dataclass(frozen=True, slots=True)
class StateOptions:
    """What is known, or wanted, of the state of a fork."""

    fresh_state: Annotated[bool, Parameter(help="Begin there with batch 0 and no state.")] = False
    stateless: Stateless = False


AS_IT_IS = StateOptions()


@contextmanager
def looking(common: Common) -> Iterator[CheckpointReading]:
    """The project's control plane; without a project, whatever can be told about a folder."""
    try:
        find_project(common.project)
    except ConfigError:
        if common.project is not None:
            raise
        from backcast.project.clock import SystemClock
        from backcast.verbs.checkpoints import FolderCheckpoints

        yield FolderCheckpoints(SystemClock())
        return
    with opened(common) as control:
        yield control


def change(common: Common, verb: Verb, waiting: str, checkpoint: str, sink: SinkOptions, **given: Any) -> None:
    """Have a checkpoint changed, in a Spark child where there is state to load or a table to ask, and show it."""
    from backcast.cli.render.checkpoint_change import render_change
    from backcast.cli.working import screen_of, working
    from backcast.model.checkpoint import Change
    from backcast.verbs.checkpoints import SinkChoice

    arguments = {"checkpoint": checkpoint, "sink": sink.sink, "unchecked": sink.unchecked_sink, **given}
    with opened(common) as control:
        needs_spark = control.checkpoint_needs_spark(checkpoint, SinkChoice(sink.sink, sink.unchecked_sink))
        if not needs_spark:
            changed: Change = performed(control, verb, arguments)
            screen_of(common).show(changed, render_change(changed))
            return
    with working(common, verb) as work:
        changed = Change.model_validate(work.call(verb, waiting, **arguments))
        work.screen.show(changed, render_change(changed))


def performed(control: Any, verb: str, given: dict[str, Any]) -> Any:
    """A verb that changes a checkpoint, out of plain values."""
    from backcast.verbs.checkpoints import SinkChoice, Where

    name, sink = given["checkpoint"], SinkChoice(given["sink"], given["unchecked"])
    where = Where(given.get("batch"), given.get("before"), given.get("offset"), given.get("delay"))
    match verb:
        case "checkpoint-restore":
            return control.checkpoint_restore(name, given["backup"], sink=sink, stopped=given["stopped"])
        case "checkpoint-rewind":
            stopped, stateless = given["stopped"], given["stateless"]
            return control.checkpoint_rewind(name, where, sink=sink, stopped=stopped, stateless=stateless)
        case _:
            fresh, stateless = given["fresh_state"], given["stateless"]
            return control.checkpoint_fork(name, given["to"], where, sink=sink, fresh_state=fresh, stateless=stateless)


def absolute(folder: Path) -> str:
    """A child works in the same folder, but need not."""
    return str(folder) if ":" in str(folder) else str(folder.expanduser().absolute())
