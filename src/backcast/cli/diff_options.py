"""Options of the commands that compare."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from backcast.cli.protocol import DIFF_SAMPLES

SIDES = Group("Sides", sort_key=2)
_VERSION = "A version: its number, a tag, a branch, a time, or head."
_PART = "Only rows with this value; the column is not compared. Repeatable."


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a comparison is shown, and where."""

    everything: Annotated[bool, Parameter(name="--all", help="Every chunk and column, also unchanged ones.")] = False
    rows: Annotated[int, Parameter(metavar="N", help="Rows to show of each kind of change.", show_default=True)] = (
        DIFF_SAMPLES
    )
    html: Annotated[Path | None, Parameter(metavar="FILE", help="Write a page that needs nothing else.")] = None


@Parameter(name="*", group=SIDES)
@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared with what."""

    start: Annotated[str | None, Parameter(name="--from", metavar="VERSION", help=f"Left side. {_VERSION}")] = None
    end: Annotated[str | None, Parameter(name="--to", metavar="VERSION", help="Right side, likewise.")] = None
    left: Annotated[tuple[str, ...], Parameter(metavar="COL=VALUE", help=f"Left side. {_PART}")] = ()
    right: Annotated[tuple[str, ...], Parameter(metavar="COL=VALUE", help="Right side, likewise.")] = ()
    ignore: Annotated[tuple[str, ...], Parameter(metavar="COL", help="A column not to compare; repeatable.")] = ()


SHOWN, BOTH_WHOLE = Shown(), Sides()
