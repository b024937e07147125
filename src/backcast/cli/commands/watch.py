from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.request import seconds
from backcast.cli.working import working
from backcast.errors import Refused


def watch(
    run_id: RunId,
    /,
    *,
    once: Annotated[bool, Parameter(help="One look, also when the pipeline declares no time.")] = False,
    every: Annotated[str, Parameter(metavar="DURATION", help="How long between two looks: 30s, 5m, 1h.")] = "5m",
    common: Common = DEFAULTS,
) -> int:
    """Look at what readers see after a publish, for a declared time."""
    pause = seconds(every, "--every")
    with working(common, "watch") as work:
        answer = work.call("watch", "looking", run_id=run_id, once=once, every=pause)

        from backcast.cli.render.watch import render_watch
        from backcast.model.watch import Watch

        seen = Watch.model_validate(answer)
        work.screen.show(seen, render_watch(seen))
    return Refused.exit_code if seen.failed else 0
