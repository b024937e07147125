from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of
from backcast.errors import InvalidRequest

_GROUP = Group("Limits", sort_key=1, help="Each as its key of `throttle` in backcast.yaml; `none` takes it away.")
Number = int | Literal["none"] | None


def _limit(text: str, metavar: str = "N") -> Parameter:
    return Parameter(metavar=metavar, show_choices=False, help=text)


@Parameter(name="*", group=_GROUP)
@dataclass(frozen=True, slots=True)
class Limits:
    """What is to change; None stays as it is."""

    rows_per_second: Annotated[Number, _limit("Rows a second.")] = None
    per_partition: Annotated[Number, _limit("Records a second of each partition of a topic.")] = None
    bytes_per_minute: Annotated[Number, _limit("Bytes a minute that are written.")] = None
    commits_per_hour: Annotated[Number, _limit("Jobs that commit to the stage in any hour.")] = None
    parallel_jobs: Annotated[Number, _limit("Jobs at the same time, of all processes.")] = None
    pause: Annotated[str | None, _limit("Between two jobs: 90s, 30m, 12h.", "TIME")] = None
    hours: Annotated[str | None, _limit("In which jobs begin: 22:00-06:00, or with a zone behind it.", "HOURS")] = None
    live_lag: Annotated[Number, _limit("Records that a live stream of the table may be behind.")] = None


_AS_IT_IS = Limits()


def throttle(run_id: RunId, /, *, limits: Limits = _AS_IT_IS, common: Common = DEFAULTS) -> None:
    """Show what holds a run back, or change it while it is under way."""
    given = {name: value for name, value in asdict(limits).items() if value is not None}
    if "pause" in given:
        given["pause_seconds"] = _seconds(given.pop("pause"))
    wanted = {name: None if value == "none" else value for name, value in given.items()}
    with opened(common) as control:
        found = control.throttle(run_id, **wanted)
    from backcast.cli.render.throttle import render_throttled

    screen_of(common).show(found, render_throttled(found, datetime.now(UTC)))


def _seconds(pause: str) -> int | str:
    if pause == "none":
        return pause
    from backcast.model.time import parse_duration

    try:
        return int(parse_duration(pause).total_seconds())
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"--pause: {error}") from error
