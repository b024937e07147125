from __future__ import annotations

from backcast.cli.diff_options import SHOWN, Shown
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import working


def diff(run_id: RunId, /, *, shown: Shown = SHOWN, common: Common = DEFAULTS) -> None:
    """Compare the stage of a run with the table: chunks, columns, rows."""
    from backcast.cli.pages import check_new, write_page

    check_new(shown.html)
    with working(common, "diff") as work:
        answer = work.call("diff", "comparing", run_id=run_id, samples=max(shown.rows, 0))

        from backcast.cli.render.diff import render_diff
        from backcast.model.diff import Diff
        from backcast.page.diff import diff_page

        found = Diff.model_validate(answer)
        write_page(work.screen, shown.html, lambda: diff_page(found))
        work.screen.show(found, render_diff(found, everything=shown.everything))
