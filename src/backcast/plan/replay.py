"""How a stream's result is computed anew: as a batch where that gives the same rows, else by a query from its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backcast.errors import InvalidRequest, PlanRefused
from backcast.model.finding import Finding, block, note, warn
from backcast.model.late import LateFound
from backcast.model.manifest import InputPin
from backcast.model.pipeline import Job
from backcast.model.replay import Difference, Mend, ReplayPin
from backcast.model.request import Request
from backcast.model.states import Execution
from backcast.model.table import PublishMode
from backcast.model.time import Interval, joined
from backcast.model.watermark import WatermarkStrategy
from backcast.model.words import many
from backcast.plan.windows import requested_windows
from backcast.world import Replaying

_SAME = "its logic gives the same rows as a batch, which sees every row of a window before it is computed"
_WARMED = "with warm-up its logic gives the same rows as a batch, which reads records from around the window too"
_PACES = "a replay reads the {} partitions of its topic at another pace than they were written"
_IN_ORDER = "in order of event time no record is late"
_ASKED = {
    WatermarkStrategy.SORTED: f"asked for: {_IN_ORDER}",
    WatermarkStrategy.PARTITIONS: "asked for: a chunk of time is there whole before the next one begins",
    WatermarkStrategy.BOUNDED: "asked for: what the live stream would drop is dropped",
}
_THEN = {
    WatermarkStrategy.SORTED: "records are sorted into files of the run first: that reads them twice and takes disk;"
    " late ones are included",
    WatermarkStrategy.PARTITIONS: "records go into one file of the run for each chunk first, which takes disk; late"
    " ones are included, and state is forgotten between chunks only",
    WatermarkStrategy.BOUNDED: "its batches need not be those of the live query: rows near the watermark may count here"
    " and not there",
}


def planned_replay(request: Request, replaying: Replaying, now: datetime) -> ReplayPin:
    """Raises InvalidRequest for a stream of another pipeline, and for one that cannot be replayed; PlanRefused for a
    strategy that cannot give the right rows.
    """
    stream = replaying.stream
    if stream.pipeline.name != request.pipeline:
        raise InvalidRequest(
            f"stream {stream.name} runs pipeline {stream.pipeline.name}, not {request.pipeline}",
            hint=f"backcast plan {stream.pipeline.name} --stream {stream.name} ...",
        )
    if stream.pipeline.settings.publish_mode is not PublishMode.REPLACE:
        raise InvalidRequest(
            f"the result of a stream replaces a window, and pipeline {request.pipeline} publishes by"
            f" {stream.pipeline.settings.publish_mode}",
            hint="leave --stream out, or use `publish: {mode: replace}`",
        )
    if request.takeover:
        return replaying.caught_up()
    windows = requested_windows(request, stream.dataset.time.zone)
    whole = Interval(start=windows[0].start, end=windows[-1].end)
    job = Job(run_id="plan", execution=Execution.DRY_RUN, window=whole, clock=now)
    warm = bool(stream.pipeline.warm_up_before or stream.pipeline.warm_up_after)
    logic = Logic.of(replaying.differences(job), warm=warm)
    if request.watermark is WatermarkStrategy.CORRECTIONS:
        return _corrections(replaying, windows, logic, now)
    strategy, because = _chosen(request, replaying, logic, job)
    if strategy is WatermarkStrategy.BATCH:
        return ReplayPin(stream=stream.name, strategy=strategy, because=because, beyond=logic.beyond)
    chosen = {"strategy": strategy, "because": because, "beyond": logic.beyond}
    return replaying.pin(whole.start).model_copy(update=chosen)


@dataclass(frozen=True, slots=True)
class Logic:
    """What a stream's differences from a batch come to, a sentence each."""

    different: tuple[str, ...]
    """A batch gives other rows, and a query from the stream's state does not."""
    same: str
    """Why a batch gives the same rows, where nothing is different."""
    neither: tuple[str, ...] = ()
    """Whatever computes them, these rows are others."""
    beyond: bool = False
    """Rows of a window may need records from behind it."""

    @classmethod
    def of(cls, found: Sequence[Difference], *, warm: bool) -> Logic:
        """`warm`: the pipeline declares a warm-up."""
        beyond = any(each.beyond for each in found)
        by = {mend: tuple(each.because for each in found if each.mend is mend) for mend in Mend}
        near = by[Mend.WARM_UP]
        if near and not warm:
            cold = tuple(f"{each}, and the pipeline declares no `warm_up` for a batch" for each in near)
            return cls((*by[Mend.STATE], *cold), "", by[Mend.NOTHING], beyond)
        same = "; ".join((f"{_WARMED}: {', '.join(near)}" if near else _SAME, *_but(by[Mend.NOTHING])))
        return cls(by[Mend.STATE], same, by[Mend.NOTHING], beyond)

    @property
    def why(self) -> str:
        """Of a query."""
        return "; ".join((*self.different, *self.neither))


def _but(neither: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"but {each}" for each in neither)


def _chosen(request: Request, replaying: Replaying, logic: Logic, job: Job) -> tuple[WatermarkStrategy, str]:
    """The strategy that was asked for, if it gives the right rows, or the cheapest one that does; and why."""
    stream, why, different = replaying.stream.name, logic.why, logic.different
    asked = request.watermark
    if asked is WatermarkStrategy.BATCH and different:
        wrong = "; ".join(different)
        raise PlanRefused(f"a batch would give other rows than stream {stream}: {wrong}", hint="use --watermark sorted")
    if asked is WatermarkStrategy.BATCH and request.as_stream:
        raise InvalidRequest("--watermark batch contradicts --as-stream", hint="leave one of them out")
    if asked is WatermarkStrategy.PARTITIONS and (ordered := replaying.in_order(job)):
        raise PlanRefused(
            f"the records of a chunk come in no order, and stream {stream} needs one: {'; '.join(ordered)}",
            hint="use --watermark sorted",
        )
    if asked is not None and asked is not WatermarkStrategy.BATCH:
        return asked, "; ".join(filter(None, (why, _ASKED[asked])))
    if not different and not request.as_stream:
        return WatermarkStrategy.BATCH, logic.same
    if not different:
        same = "asked for, though a batch would give the same rows"
        return WatermarkStrategy.BOUNDED, "; ".join((same, *_but(logic.neither)))
    partitions = replaying.partitions()
    if partitions > 1:
        return WatermarkStrategy.SORTED, f"{why}; {_PACES.format(partitions)}, and {_IN_ORDER}"
    return WatermarkStrategy.BOUNDED, f"{why}; its topic has one partition, in the order in which the stream read it"


def _corrections(replaying: Replaying, windows: Sequence[Interval], logic: Logic, now: datetime) -> ReplayPin:
    """Of the pieces that late records touch, those that the stream will not write to any more."""
    stream, grain = replaying.stream, replaying.stream.dataset.grain.value
    found = replaying.late(windows, now)
    if not found.windows:
        still = f"; {many(found.left_open, grain)} of it will still be written by the stream" if found.left_open else ""
        raise PlanRefused(
            f"stream {stream.name} is not known to have dropped a record of this window{still}",
            hint=f"backcast late {stream.name} tells what its table lacks; other strategies compute the whole window",
        )
    touched = joined(found.windows)
    how = WatermarkStrategy.SORTED if logic.different else WatermarkStrategy.BATCH
    pin = (
        replaying.pin(touched[0].start)
        if logic.different
        else ReplayPin(stream=stream.name, strategy=WatermarkStrategy.CORRECTIONS, because="")
    )
    why = f"{logic.why}; {_IN_ORDER}" if logic.different else logic.same
    return pin.model_copy(
        update={
            "strategy": WatermarkStrategy.CORRECTIONS,
            "computed": how,
            "because": f"{_touching(found, grain)}; {why}",
            "beyond": logic.beyond,
            "windows": touched,
            "late": found.late,
            "unknown": found.unknown,
        }
    )


def _touching(found: LateFound, grain: str) -> str:
    told = [many(found.late, "record") + " that it dropped as late"] if found.late else []
    told += [many(found.unknown, "record") + " that it may have dropped"] if found.unknown else []
    verb = "touches" if found.late + found.unknown == 1 else "touch"
    return f"{' and '.join(told)} {verb} {many(len(found.windows), grain)}"


_CUT_END = warn(
    "replay.cut-end",
    "what belongs to the last rows of the window may come behind it, and nothing is read there: a session is cut, a"
    " join finds no match, state is closed early",
    "declare `warm_up: {after: ...}`, as long as they reach",
)


def replay_findings(
    replay: ReplayPin | None,
    inputs: Sequence[InputPin],
    start: datetime,
    after: timedelta = timedelta(),
    recompute: int = 0,
) -> list[Finding]:
    """`after`: the pipeline's warm-up behind the window."""
    if replay is None:
        return []
    found = [_CUT_END] if replay.beyond and not after else []
    if replay.strategy is WatermarkStrategy.CORRECTIONS:
        found.append(
            note(
                "replay.corrections",
                f"only what late records touch is computed anew: {replay.because}",
                "all other windows stay as the stream wrote them; leave --watermark out to compute them too",
            )
        )
    elif not replay.streamed:
        found.append(
            note(
                "replay.as-batch",
                f"computed as a batch: {replay.because}",
                "rows that the live stream dropped as late are included; --as-stream replays it as it would drop them",
            )
        )
    else:
        found.append(
            note(
                "replay.as-stream",
                f"computed by a streaming query of its own: {replay.because}",
                _THEN[replay.order],
            )
        )
    if not replay.streamed:
        return found
    if recompute:
        found.append(
            warn(
                "replay.not-recomputed",
                f"no chunk is computed twice, as `recompute: {recompute}` asks: a query from a state runs once",
                "whether its rows depend on order or on chance is not found out; a batch, where it will do, is checked",
            )
        )
    if replay.order is WatermarkStrategy.BOUNDED and not replay.takeover:
        found += _bounded(inputs)
    if replay.batch is None:
        found.append(
            warn(
                "replay.cold",
                f"it starts without state: no batch of {replay.checkpoint} lies before {start:%Y-%m-%d %H:%M} UTC",
                "what earlier records left in the state is missing: take a window that begins later, or accept that",
            )
        )
    return found


def _bounded(inputs: Sequence[InputPin]) -> list[Finding]:
    """What a query that reads the topic itself gets wrong, or cannot get."""
    logs = [each.log for each in inputs if each.log is not None]
    found = [
        block(
            "replay.archived",
            f"the log of {log.topic} no longer has all of these records, and a query cannot read its archive",
            "use --watermark sorted: it reads both",
        )
        for log in logs
        if log.archive is not None and log.archive.ranges
    ]
    found += [
        warn(
            "replay.skewed",
            f"{_PACES.format(len(log.partitions))}: records that the live stream took may be late in it, and dropped",
            "use --watermark sorted, unless that is what you want",
        )
        for log in logs
        if len(log.partitions) > 1
    ]
    return found
