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
    common: Common = DEFAULTS,
) -> None:
    """Write a small working project into a folder."""
    from backcast.cli.render.init import render_init
    from backcast.project.init import init_project

    done = init_project(folder)
    place = short_path(done.root)
    document = {"root": str(done.root), "written": list(done.written), "kept": list(done.kept)}
    screen_of(common).show(document, render_init(place, done.written, done.kept))
