from __future__ import annotations

from backcast.cli.agreed import Confirmed, agreed
from backcast.cli.ending import show_status
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of, working


def publish(run_id: RunId, /, *, yes: Confirmed = False, common: Common = DEFAULTS) -> None:
    """Make a validated stage visible in one commit."""
    confirmed = agreed(common, screen_of(common), run_id, yes=yes)
    if confirmed is None:
        return
    with working(common, "publish") as work:
        answer = work.call("publish", "publishing", run_id=run_id, yes=confirmed)

        from backcast.model.run import Publication

        show_status(common, work.screen, Publication.model_validate(answer))
