from __future__ import annotations

from backcast.cli.ending import show_status
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working


def publish(run_id: RunId, /, *, common: Common = DEFAULTS) -> None:
    """Make a validated stage visible in one commit."""
    with working(common, "publish") as work:
        answer = work.call("publish", "publishing", run_id=run_id)

        from backcast.model.run import Publication

        show_status(common, work.screen, Publication.model_validate(answer))
