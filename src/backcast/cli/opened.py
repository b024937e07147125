"""The control plane in this process, for commands that need neither Spark nor user code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backcast.cli.locate import find_project

if TYPE_CHECKING:
    from backcast.cli.options import Common
    from backcast.control import ControlPlane


@contextmanager
def opened(common: Common) -> Iterator[ControlPlane]:
    from backcast.project.api import open_project

    control = open_project(find_project(common.project), profile=common.profile)
    try:
        yield control
    finally:
        control.world.close()
