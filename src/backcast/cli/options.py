"""Options that several commands share. Nothing here may load pydantic, pyspark or SQLAlchemy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Group, Parameter

SIGNING_KEY = "BACKCAST_SIGNING_KEY"
"""The variable that may hold the private key, as text."""

COMMON = Group("Common options", sort_key=9)
SCOPE = Group("Scope", sort_key=2)
WHY = Group("Why", sort_key=3)
LIMITS = Group("Budget", sort_key=4)
FIX = Group("Fix", sort_key=5)

KindName = Literal[
    "restatement", "backfill", "replay", "reprocessing", "repair", "migration", "bootstrap", "reconciliation"
]
StrategyName = Literal["sorted", "partitions", "bounded", "batch", "corrections"]
RunId = Annotated[str, Parameter(help="Run id; a unique beginning is enough.")]
RequestFile = Annotated[
    Path | None, Parameter(name="--request", metavar="FILE", help="Read pipeline, scope, reason and budget from here.")
]
PipelineName = Annotated[str, Parameter(help="Name of a pipeline in backcast.yaml.")]
StreamName = Annotated[str, Parameter(help="Name of a stream in backcast.yaml.")]
TopicName = Annotated[str, Parameter(help="A source of backcast.yaml, or the topic that one of them reads.")]


@Parameter(name="*", group=COMMON)
@dataclass(frozen=True, slots=True)
class Common:
    """What every command takes."""

    project: Annotated[
        Path | None,
        Parameter(metavar="DIR", help="Folder with backcast.yaml; default: this one or the nearest parent."),
    ] = None
    profile: Annotated[str | None, Parameter(metavar="NAME", help="Profile of backcast.yaml, such as dev or prod.")] = (
        None
    )
    json: Annotated[bool, Parameter(help="Print one JSON document on stdout, also for errors.")] = False
    no_color: Annotated[bool, Parameter(help="No colours; so does the variable NO_COLOR.")] = False
    verbose: Annotated[bool, Parameter(help="Tracebacks with unexpected errors.")] = False


@Parameter(name="*", group=SCOPE)
@dataclass(frozen=True, slots=True)
class ScopeOptions:
    """Which rows may change: a window or a list of days, and a predicate."""

    start: Annotated[
        str | None,
        Parameter(name="--from", metavar="DAY", help="First day or time in the dataset's zone: 2025-01-31T05:00."),
    ] = None
    end: Annotated[
        str | None, Parameter(name="--to", metavar="DAY", help="Where it ends; this day is not part of it.")
    ] = None
    on: Annotated[tuple[str, ...], Parameter(metavar="DAY", help="One day; repeat it for several.")] = ()
    dates: Annotated[
        str | None, Parameter(metavar="LIST", help="Days with commas between, or a file with one day per line.")
    ] = None
    exclude: Annotated[tuple[str, ...], Parameter(metavar="DAY", help="A day to leave out; repeatable.")] = ()
    where: Annotated[
        tuple[str, ...],
        Parameter(metavar="COL=VALUE", help="Only these rows. The same column twice means any of its values."),
    ] = ()
    offsets: Annotated[
        str | None, Parameter(metavar="RANGES", help="Offsets of the topic: 0=100..200,1=50.. or earliest.")
    ] = None
    record_time: Annotated[
        str | None, Parameter(metavar="FROM..TO", help="Records of the topic by the time that they carry themselves.")
    ] = None
    checkpoint: Annotated[
        str | None, Parameter(metavar="DIR", help="From where the stream with this checkpoint stands to the log's end.")
    ] = None
    stream: Annotated[
        str | None,
        Parameter(metavar="NAME", help="Compute what this stream wrote anew, from its state if need be."),
    ] = None
    as_stream: Annotated[
        bool, Parameter(help="With --stream: replay it as a stream also where a batch gives the same rows.")
    ] = False
    watermark: Annotated[
        StrategyName | None,
        Parameter(
            metavar="HOW",
            help="With --stream: how event time advances: sorted, partitions, bounded, batch or corrections.",
        ),
    ] = None


@Parameter(name="*", group=WHY)
@dataclass(frozen=True, slots=True)
class WhyOptions:
    """What is recorded about the reason."""

    reason: Annotated[str, Parameter(metavar="TEXT", help="Why history changes, in a sentence.")] = ""
    ticket: Annotated[str, Parameter(metavar="ID", help="Ticket that asks for it.")] = ""
    affected: Annotated[
        int | None, Parameter(metavar="ROWS", help="How many rows are known to be wrong: the plan may know better.")
    ] = None
    kind: Annotated[KindName, Parameter(metavar="KIND", help="What this is called on record.", show_default=True)] = (
        "restatement"
    )


@Parameter(name="*", group=LIMITS)
@dataclass(frozen=True, slots=True)
class LimitOptions:
    """The most that a run may write, cost and take."""

    max_rows: Annotated[int | None, Parameter(metavar="ROWS", help="Stop when more rows than this are staged.")] = None
    max_cost: Annotated[
        float | None, Parameter(metavar="MONEY", help="Stop when it costs more, by the prices of the policy.")
    ] = None
    max_duration: Annotated[
        str | None, Parameter(metavar="TIME", help="Stop when its jobs took longer: 90s, 30m, 12h.")
    ] = None


@Parameter(name="*", group=FIX)
@dataclass(frozen=True, slots=True)
class FixOptions:
    """Whether what was found is planned, and why."""

    plan: Annotated[bool, Parameter(help="Record the plan for exactly what was found.")] = False
    reason: Annotated[str, Parameter(metavar="TEXT", help="With --plan: why it came to that, in a sentence.")] = ""
    ticket: Annotated[str, Parameter(metavar="ID", help="With --plan: ticket that asks for it.")] = ""


DEFAULTS = Common()
NO_FIX = FixOptions()
NO_LIMITS = LimitOptions()
NO_SCOPE = ScopeOptions()
NO_REASON = WhyOptions()
