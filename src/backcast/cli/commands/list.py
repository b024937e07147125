from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of
from backcast.errors import InvalidRequest


def list_(
    *,
    dataset: Annotated[str | None, Parameter(metavar="NAME", help="Only runs that change this dataset.")] = None,
    open_only: Annotated[bool, Parameter(name="--open", help="Only runs that are not over.")] = False,
    limit: Annotated[int, Parameter(help="At most this many.", show_default=True)] = 50,
    common: Common = DEFAULTS,
) -> None:
    """List runs, newest first."""
    if limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {limit}")
    with opened(common) as control:
        runs = control.list(dataset=dataset, open_only=open_only, limit=limit)
        if dataset is not None and not runs:
            # Runs of a dataset that is no longer declared are listed too; a name that nobody knows is a mistake.
            control.world.dataset(dataset)
    from backcast.cli.render.runs import render_runs

    screen_of(common).show(runs, render_runs(runs, limit, datetime.now(UTC)))
