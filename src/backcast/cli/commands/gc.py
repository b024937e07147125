from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import working


def gc(
    *,
    dry_run: Annotated[bool, Parameter(help="List what would go, and do nothing.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Drop stages and tags that no run needs any more."""
    with working(common, "gc") as work:
        answer = work.call("gc", "collecting", dry_run=dry_run)

        from backcast.cli.render.gc import render_gc
        from backcast.model.report import GcReport

        report = GcReport.model_validate(answer)
        work.screen.show(report, render_gc(report))
