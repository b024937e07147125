"""A full replay of a stream as one command of several steps: what it is about, and how far it is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from pydantic import Field

from backcast.errors import InvalidRequest, Refused, StateConflict
from backcast.model.column import TimeKind
from backcast.model.document import Document
from backcast.model.live import LiveStep
from backcast.model.manifest import LivePolicy
from backcast.model.states import VISIBLE_STATES, RunState
from backcast.model.stream import StreamSpec, StreamWrite
from backcast.model.table import PublishMode

BEGUN, STOPPED, CAUGHT_UP, PLANNED, PUBLISHED, SWAPPED, RESUMED, DONE = (
    f"full-replay.{name}"
    for name in ("begun", "stopped", "caught-up", "planned", "published", "swapped", "resumed", "done")
)
GIVING_UP, GIVEN_UP = "full-replay.giving-up", "full-replay.given-up"
"""In between the stream that was stopped is started from its own checkpoint."""


class FullReplay(Document):
    """One of them, as its steps tell."""

    stream: str
    pipeline: str
    start: str | None
    """From where on the table is replaced; None: all of it."""
    offsets: dict[int, int] = Field(default_factory=dict)
    """Where it was asked to begin to read. A partition that is not named: where the rows from `start` on need it to."""
    query_id: str
    """Of the query that computes the rows, and goes on as the stream."""
    resume: bool
    """The stream was running and is started again at the end."""
    steps: tuple[str, ...] = ()
    """Names of those that are done, in order."""
    batch: int | None = None
    """The last of the query's batches whose rows are published."""
    ends: dict[int, int] = Field(default_factory=dict)
    """Where both queries stood when they changed places: the next offset of each partition."""
    first_day: str | None = None
    end_day: str | None = None
    run_id: str | None = None
    kept: str | None = None
    """Where the checkpoint lies that the stream had before."""

    def has(self, step: str) -> bool:
        return step in self.steps

    @property
    def stands(self) -> bool:
        """It has stopped the stream, and the checkpoints have not changed places."""
        return self.has(STOPPED) and not (self.has(SWAPPED) or self.has(GIVING_UP))

    @property
    def again(self) -> str:
        """The command that goes on with it."""
        start = f" --from {self.start}" if self.start else ""
        offsets = f" --from-offsets {self.from_offsets}" if self.offsets else ""
        return f"backcast stream replay {self.stream}{start}{offsets}"

    @property
    def from_offsets(self) -> str | None:
        """As it is written: `0=100,1=50`."""
        return ",".join(f"{number}={offset}" for number, offset in sorted(self.offsets.items())) or None


class CaughtUp(Document):
    """How far the query is."""

    batch: int | None
    ends: dict[int, int]
    behind: int
    """Records that the stream had read by then, and it had not. Of a stream that stands its newest batch is not
    counted: the last slice reads that."""
    first_day: str | None = None
    end_day: str | None = None


def unfinished(steps: Iterable[LiveStep]) -> FullReplay | None:
    """The newest full replay of a stream that did not come to its end."""
    found: FullReplay | None = None
    for each in steps:
        if each.name == BEGUN:
            found = FullReplay.model_validate(each.data)
        elif each.name in (DONE, GIVEN_UP):
            found = None
        elif found is not None and each.name.startswith("full-replay."):
            told: dict[str, Any] = {name: each.data[name] for name in _TOLD if name in each.data}
            steps_done = (*found.steps, each.name)
            found = FullReplay.model_validate({**found.as_json(), **told, "steps": steps_done})
    return found


_TOLD = ("resume", "batch", "ends", "first_day", "end_day", "run_id", "kept")
Days = tuple[date, date] | None
"""The first and the last day that have rows; None: there is no row."""


def refuse_unfit(spec: StreamSpec, beside: Iterable[str]) -> None:
    """Raises InvalidRequest or Refused before anything is read: for what would be refused when all is computed.

    `beside` are other streams that write to the same table.
    """
    name, settings, source = spec.name, spec.pipeline.settings, spec.source
    if spec.external:
        hint = f"backcast plan {spec.pipeline.name} --stream {name} --from DAY --to DAY replays a window of it"
        raise InvalidRequest(
            f"stream {name} is run by somebody else: a replay hands its own query over as the stream, and"
            " whether theirs is the same code nobody here can know",
            hint=f"{hint}; or stop it there, take `external: true` away, and type this again",
        )
    if spec.write is StreamWrite.MERGE or settings.publish_mode is not PublishMode.REPLACE:
        how = StreamWrite.MERGE if spec.write is StreamWrite.MERGE else settings.publish_mode
        raise InvalidRequest(
            f"a replay replaces the rows of stream {name}, and pipeline {spec.pipeline.name} or its stream works by"
            f" {how}",
            hint=f"backcast backfill {spec.pipeline.name} --from DAY --to DAY computes a window anew; or use"
            " `publish: {mode: replace}` and `write: append`",
        )
    if settings.live_policy is LivePolicy.RESTAGE:
        raise InvalidRequest(
            f"live policy `restage` of pipeline {spec.pipeline.name} reads newer inputs, and {source.name} is a log",
            hint="use `live: fail` or `live: keep`",
        )
    if spec.dataset.time.kind not in (TimeKind.DATE, TimeKind.TIMESTAMP, TimeKind.TIMESTAMP_NTZ):
        raise InvalidRequest(f"{spec.dataset.time.column} is no date and no timestamp: its days cannot be told")
    if source.time is None:
        raise InvalidRequest(
            f"source {source.name} has no event time, and a run asks for one",
            hint=f"add `time` to sources.{source.name}",
        )
    others = sorted(beside)
    if others:
        raise Refused(
            f"stream {', '.join(others)} writes to {spec.dataset.table} too: a replay of {name} would replace its rows",
            hint=f"backcast backfill {spec.pipeline.name} --from DAY --to DAY --where ... restates a part of the table",
        )


def scope_of(stream: str, table: Days, replayed: Days, start: str | None) -> tuple[str, str]:
    """The days to replace: all that either has rows of. A day more at each end: one of the dataset's zone is not one of
    UTC. Raises Refused for rows that the topic does not account for.
    """
    found = [each for each in (table, replayed) if each is not None]
    if not found:
        raise Refused("neither the table nor the replay has a row", hint="look at the topic: backcast kafka offsets")
    first, last = min(each[0] for each in found), max(each[1] for each in found)
    if start is None and table is not None and (replayed is None or replayed[0] > table[0]):
        begins = "none" if replayed is None else f"rows from {replayed[0]} on"
        keep = "" if replayed is None else f"--from {replayed[0]} keeps what lies before; "
        raise Refused(
            f"the table has rows from {table[0]} on, and the topic gives {begins}: the older ones would be replaced by"
            " nothing",
            hint=f"backcast stream replay {stream} --give-up, then again: {keep}--from {table[0]} replaces them too",
        )
    return start or str(first - timedelta(days=1)), str(last + timedelta(days=2))


def refuse_open(stream: str, watermark: datetime | None, since: datetime | None) -> None:
    """Raises Refused while windows from before the day may be open: the query has not read all that belongs to them,
    and would write them when they close. None: it keeps no state, or begins with the log.
    """
    if watermark is not None and since is not None and watermark < since:
        raise Refused(
            f"windows of stream {stream} from before {since:%Y-%m-%d %H:%M} UTC are still open (its watermark is"
            f" {watermark:%Y-%m-%d %H:%M} UTC): they would be written without the records that lie further back",
            hint=f"backcast stream replay {stream} --give-up, then again from an earlier day",
        )


def refuse_giving_up(there: FullReplay, state: RunState | None) -> None:
    """Raises StateConflict once readers see its rows, or its query is the stream."""
    if there.has(SWAPPED):
        raise StateConflict(
            f"the replay's query is stream {there.stream} already: there is nothing left to give up",
            hint=f"{there.again} ends it",
        )
    if state in VISIBLE_STATES or state in (RunState.PUBLISHING, RunState.UNDOING):
        raise StateConflict(
            f"run {there.run_id} is {state}: the stream would write its rows a second time",
            hint=f"{there.again} goes on; or backcast undo {there.run_id} first",
        )


def refuse_another(there: FullReplay, start: str | None, offsets: Mapping[int, int]) -> None:
    """Raises StateConflict unless these are what it was begun with. Offsets give the day where nobody says it."""
    same_day = there.start == start or (bool(offsets) and start is None)
    if there.offsets != offsets or not same_day:
        raise StateConflict(
            f"a full replay of stream {there.stream} is not over",
            hint=f"{there.again} goes on with it",
        )


def gone(stream: str, folder: object, then: str) -> Refused:
    """What the replay has computed so far is not there any more."""
    return Refused(
        f"{folder} no longer has the query of the replay of stream {stream}: did the disk go away with a container?",
        hint=f"bring the folder back and type the same command again; or {then}",
    )


def refuse_mixed(steps: Iterable[LiveStep], pipeline: str, ran: tuple[str, str], code: str) -> None:
    """Raises Refused for a start from the old checkpoint, by a replay that is given up, with other code than it ran
    with. `ran` are version and digest of that.
    """
    there = unfinished(steps)
    if there is None or not there.has(GIVING_UP) or ran[1] == code:
        return
    name, version = there.stream, f"version {ran[0]}, code {ran[1][:12]}"
    raise Refused(
        f"pipeline {pipeline} is not what stream {name} ran with ({version}; now code {code[:12]}): windows that its"
        " state has half filled would close with both",
        hint=f"deploy {version} again, then {there.again} --give-up; or with the code of"
        f" now backcast stream replay {name}; if both are meant, backcast stream start {name} --accept-checkpoint",
    )
