"""How a stream's result is computed anew: as a batch where that gives the same rows, else by a query from its state."""

from __future__ import annotations

from datetime import datetime

from backcast.errors import InvalidRequest
from backcast.model.finding import Finding, note, warn
from backcast.model.pipeline import Job
from backcast.model.replay import ReplayPin, WatermarkStrategy
from backcast.model.request import Request
from backcast.model.states import Execution
from backcast.model.table import PublishMode
from backcast.model.time import Interval
from backcast.plan.windows import requested_windows
from backcast.world import Replaying

_SAME = "its logic gives the same rows as a batch, which sees every row of a window before it is computed"


def planned_replay(request: Request, replaying: Replaying, now: datetime) -> ReplayPin:
    """Raises InvalidRequest for a stream of another pipeline, and for one that cannot be replayed."""
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
    different = replaying.differences(job)
    if not different and not request.as_stream:
        return ReplayPin(stream=stream.name, strategy=WatermarkStrategy.BATCH, because=_SAME)
    because = "; ".join(different) or "asked for, though a batch would give the same rows"
    return replaying.pin(whole.start).model_copy(update={"because": because})


def replay_findings(replay: ReplayPin | None, start: datetime) -> list[Finding]:
    if replay is None:
        return []
    if not replay.streamed:
        return [
            note(
                "replay.as-batch",
                f"computed as a batch: {_SAME}",
                "rows that the live stream dropped as late are included; --as-stream replays it as it would drop them",
            )
        ]
    found = [
        note(
            "replay.as-stream",
            f"computed by a streaming query of its own: {replay.because}",
            "its batches need not be those of the live query: rows near the watermark may count here and not there",
        )
    ]
    if replay.batch is None:
        found.append(
            warn(
                "replay.cold",
                f"it starts without state: no batch of {replay.checkpoint} lies before {start:%Y-%m-%d %H:%M} UTC",
                "what earlier records left in the state is missing: take a window that begins later, or accept that",
            )
        )
    return found
