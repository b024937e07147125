from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.ending import show_status
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working


def undo(
    run_id: RunId,
    /,
    *,
    rewrite: Annotated[
        bool, Parameter(help="Write the old rows again when the published files were compacted or changed since.")
    ] = False,
    common: Common = DEFAULTS,
) -> None:
    """Take a publish back in one commit; rows that arrived since stay."""
    with working(common, "undo") as work:
        answer = work.call("undo", "undoing", run_id=run_id, rewrite=rewrite)

        from backcast.model.run import Publication

        show_status(common, work.screen, Publication.model_validate(answer))
