from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working
from backcast.errors import InvalidRequest


def quarantine_show(
    run_id: RunId,
    /,
    *,
    limit: Annotated[int, Parameter(help="At most this many records.", show_default=True)] = 20,
    common: Common = DEFAULTS,
) -> None:
    """Show the records that a run set aside, and why."""
    if limit < 1:
        raise InvalidRequest(f"--limit must be at least 1, not {limit}")
    with working(common, "quarantine-show") as work:
        answer = work.call("quarantine-show", "reading the quarantine", run_id=run_id, limit=limit)

        from backcast.cli.render.quarantine import render_records
        from backcast.model.quarantine import QuarantinedRecord

        found = [QuarantinedRecord.model_validate(each) for each in answer]
        work.screen.show(found, render_records(found, limit, run_id))
