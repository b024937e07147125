from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.carry import Yes, carry_through, refuse_unless_asked
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.request import told, user
from backcast.cli.working import working


def quarantine_retry(
    run_id: RunId,
    /,
    *,
    reason: Annotated[str, Parameter(metavar="TEXT", help="What was mended, in a sentence.")] = "",
    ticket: Annotated[str, Parameter(metavar="ID", help="Ticket that asks for it; else that of the run.")] = "",
    yes: Yes = False,
    common: Common = DEFAULTS,
) -> int:
    """Take records that a run set aside up again, in a new run."""
    refuse_unless_asked("quarantine retry", common, yes=yes)
    why = {"reason": told(reason), "ticket": told(ticket), "requested_by": user()}
    with working(common, "quarantine-retry") as work:
        request = work.call("quarantine-retry", "reading the quarantine", run_id=run_id, **why)
        return carry_through(work, common, request, yes=yes)
