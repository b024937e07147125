from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.diff_options import BOTH_WHOLE, SHOWN, Shown, Sides
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import working


def compare(
    dataset: Annotated[str, Parameter(help="Name of a dataset in backcast.yaml: the left side.")],
    other: Annotated[str | None, Parameter(help="Another dataset for the right side.")] = None,
    /,
    *,
    sides: Sides = BOTH_WHOLE,
    shown: Shown = SHOWN,
    common: Common = DEFAULTS,
) -> None:
    """Compare two versions of a dataset, or two parts."""
    from backcast.cli.pages import check_new, write_page
    from backcast.cli.request import picked
    from backcast.errors import InvalidRequest

    left, right = picked(sides.left, "--left"), picked(sides.right, "--right")
    if bool(left) != bool(right) and other is None:
        raise InvalidRequest("--left and --right belong together", hint="name a part for each side")
    if other is None and not (left or sides.start or sides.end):
        raise InvalidRequest(
            f"what is {dataset} to be compared with?", hint="add --from VERSION, or --left and --right, or a dataset"
        )
    check_new(shown.html)
    given = {"dataset": dataset, "other": other, "start": sides.start, "end": sides.end}
    picks = {"left": left, "right": right, "ignore": list(sides.ignore), "samples": max(shown.rows, 0)}
    with working(common, "compare") as work:
        answer = work.call("compare", "comparing", **given, **picks)

        from backcast.cli.render.diff import render_compared
        from backcast.model.diff import Compared
        from backcast.page.diff import compared_page

        found = Compared.model_validate(answer)
        write_page(work.screen, shown.html, lambda: compared_page(found))
        work.screen.show(found, render_compared(found, everything=shown.everything))
