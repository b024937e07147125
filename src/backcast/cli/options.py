"""Options that several commands share. Nothing here may load pydantic, pyspark or SQLAlchemy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

COMMON = Group("Common options", sort_key=9)
SCOPE = Group("Scope", sort_key=2)
WHY = Group("Why", sort_key=3)

KindName = Literal[
    "restatement", "backfill", "replay", "reprocessing", "repair", "migration", "bootstrap", "reconciliation"
]
RunId = Annotated[str, Parameter(help="Run id; a unique beginning is enough.", show_default=False)]

PipelineName = Annotated[str, Parameter(help="Name of a pipeline in backcast.yaml.", show_default=False)]


@Parameter(name="*", group=COMMON)
@dataclass(frozen=True, slots=True)
class Common:
    """What every command takes."""

    project: Annotated[
        Path | None, Parameter(help="Folder with backcast.yaml; default: this one or the nearest parent.")
    ] = None
    profile: Annotated[str | None, Parameter(help="Profile of backcast.yaml, such as dev or prod.")] = None
    json: Annotated[bool, Parameter(help="Print one JSON document on stdout, also for errors.")] = False
    no_color: Annotated[bool, Parameter(help="No colours; so does the variable NO_COLOR.")] = False
    verbose: Annotated[bool, Parameter(help="Tracebacks with unexpected errors.")] = False


@Parameter(name="*", group=SCOPE)
@dataclass(frozen=True, slots=True)
class ScopeOptions:
    """Which rows may change: a window or a list of days, and a predicate."""

    start: Annotated[
        str | None, Parameter(name="--from", help="First day or time, in the dataset's zone: 2025-01-31, 2025-01-31T05:00.")
    ] = None
    end: Annotated[str | None, Parameter(name="--to", help="Where it ends; this day is not part of it.")] = None
    on: Annotated[tuple[str, ...], Parameter(help="One day; repeat it for several.", show_default=False)] = ()
    dates: Annotated[
        str | None, Parameter(help="Days with commas between, or a file with one day per line.")
    ] = None
    exclude: Annotated[tuple[str, ...], Parameter(help="A day to leave out; repeatable.", show_default=False)] = ()
    where: Annotated[
        tuple[str, ...],
        Parameter(help="COLUMN=VALUE: only these rows. The same column twice means any of the values.", show_default=False),
    ] = ()


@Parameter(name="*", group=WHY)
@dataclass(frozen=True, slots=True)
class WhyOptions:
    """What is recorded about the reason."""

    reason: Annotated[str, Parameter(help="Why history changes, in a sentence.", show_default=False)] = ""
    ticket: Annotated[str, Parameter(help="Ticket that asks for it.", show_default=False)] = ""
    kind: Annotated[KindName, Parameter(help="What this is called on record.")] = "restatement"


DEFAULTS = Common()
NO_SCOPE = ScopeOptions()
NO_REASON = WhyOptions()
