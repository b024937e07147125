from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from backcast.cli.opened import opened
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of


def explain(
    dataset: Annotated[str, Parameter(help="Name of a dataset in backcast.yaml, or of one that was there once.")],
    /,
    *,
    partition: Annotated[
        str | None,
        Parameter(metavar="PART", help="A year, month, day or hour: 2025, 2025-04, 2025-04-17, 2025-04-17T05."),
    ] = None,
    at: Annotated[
        str | None, Parameter(metavar="TIME", help="Instead of a part, one moment: 2025-04-17T05:30Z.")
    ] = None,
    common: Common = DEFAULTS,
) -> None:
    """Say why a part of a dataset is as it is."""
    from backcast.cli.render.explain import render_explanation

    with opened(common) as control:
        found = control.explain(dataset, partition=partition, at=at)
    screen_of(common).show(found, render_explanation(found))
