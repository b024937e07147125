from __future__ import annotations

from backcast.cli.ending import exit_code, show_status
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working


def retry(run_id: RunId, /, *, common: Common = DEFAULTS) -> int:
    """Put failed chunks back and run again."""
    with working(common, "retry") as work:
        answer = work.call("retry", "staging", run_id=run_id)

        from backcast.model.run import Run

        ended = Run.model_validate(answer)
        show_status(common, work.screen, ended)
    return exit_code(ended.state)
