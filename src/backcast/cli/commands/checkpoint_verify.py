from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.checkpoints import CheckpointName, Stateless, looking
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of, working
from backcast.errors import Refused


def checkpoint_verify(
    checkpoint: CheckpointName,
    /,
    *,
    load: Annotated[bool, Parameter(help="Have Spark load the state, too. Needs a project.")] = False,
    stateless: Stateless = False,
    common: Common = DEFAULTS,
) -> int:
    """Find damaged files, and what Spark makes of them."""
    if load:
        with working(common, "checkpoint-verify") as work:
            answer = work.call("checkpoint-verify", "loading the state", checkpoint=checkpoint, stateless=stateless)
        from backcast.model.checkpoint import Verification

        found = Verification.model_validate(answer)
    else:
        with looking(common) as control:
            found = control.checkpoint_verify(checkpoint, stateless=stateless)
    from backcast.cli.render.checkpoint_damage import render_verification

    screen_of(common).show(found, render_verification(found, checkpoint))
    return 0 if found.sound else Refused.exit_code
