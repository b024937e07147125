from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.new_files import write_new
from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common, RunId
from backcast.cli.working import screen_of


def report(
    run_id: RunId,
    /,
    *,
    out: Annotated[Path, Parameter(metavar="FILE", help="The HTML file to write; it must not exist.")],
    common: Common = DEFAULTS,
) -> None:
    """Write a readable page about a run."""
    from backcast.cli.render.evidence import render_report
    from backcast.page.run import run_page

    with opened(common) as control:
        found = control.evidence(run_id)
    page = run_page(found).encode()
    write_new(out, page)
    document = {"run_id": found.run.run_id, "file": str(out), "bytes": len(page)}
    screen_of(common).show(document, render_report(found.run.run_id, str(out)))
