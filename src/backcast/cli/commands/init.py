from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from backcast.cli.locate import short_path
from backcast.cli.options import DEFAULTS, Common
from backcast.cli.working import screen_of


def init(
    folder: Annotated[Path, Parameter(metavar="DIR", help="Where to write it; default: here.")] = Path(),
    /,
    *,
    delta: Annotated[bool, Parameter(help="With Delta tables instead of Iceberg tables.")] = False,
    common: Common = DEFAULTS,
) -> None:
    """Write a small working project into a folder."""
    from backcast.cli.render.init import render_init
    from backcast.model.pipeline import TableFormat
    from backcast.project.init import init_project

    done = init_project(folder, table_format=TableFormat.DELTA if delta else TableFormat.ICEBERG)
    place = short_path(done.root)
    document = {"root": str(done.root), "written": list(done.written), "kept": list(done.kept)}
    screen_of(common).show(document, render_init(place, done.written, done.kept))
