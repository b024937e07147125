from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working


def diff(
    run_id: RunId,
    /,
    *,
    everything: Annotated[bool, Parameter(name="--all", help="Every chunk, also unchanged ones.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Compare the stage of a run with the table, chunk by chunk."""
    with working(common, "diff") as work:
        answer = work.call("diff", "comparing", run_id=run_id)

        from backcast.cli.render.diff import render_diff
        from backcast.model.diff import Diff

        found = Diff.model_validate(answer)
        work.screen.show(found, render_diff(found, everything=everything))
