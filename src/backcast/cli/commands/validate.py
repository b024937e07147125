from __future__ import annotations

from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working
from backcast.errors import Refused


def validate(run_id: RunId, /, *, common: Common = DEFAULTS) -> int:
    """Check the stage of a run again and print the verdict."""
    with working(common, "validate") as work:
        answer = work.call("validate", "validating", run_id=run_id)

        from backcast.cli.render.verdict import render_verdict
        from backcast.model.verdict import Verdict

        verdict = Verdict.model_validate(answer)
        work.screen.show(verdict, render_verdict(verdict))
    return 0 if verdict.accepted else Refused.exit_code
