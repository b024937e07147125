from __future__ import annotations

from backcast.cli.ending import show_status
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working


def cancel(run_id: RunId, /, *, common: Common = DEFAULTS) -> None:
    """Give a run up and drop its stage; the table stays as it is."""
    with working(common, "cancel") as work:
        answer = work.call("cancel", "cancelling", run_id=run_id)

        from backcast.model.run import Run

        show_status(common, work.screen, Run.model_validate(answer))
