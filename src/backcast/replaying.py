"""A stream's result computed anew: what its plan and its run take instead of the pipeline's own topic and transform."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backcast.errors import InvalidRequest
from backcast.model.replay import REPLAYED, replayed
from backcast.model.source import LogSource
from backcast.plan.replay import planned_replay

if TYPE_CHECKING:
    from backcast.model.manifest import InputPin, Manifest
    from backcast.model.pipeline import InputSpec, PipelineSpec
    from backcast.model.replay import ReplayPin
    from backcast.model.request import Request
    from backcast.ports import Input
    from backcast.ports.pace import Pace
    from backcast.world import Transform, World


@dataclass(frozen=True, slots=True)
class PlannedWith:
    """What a plan looks at."""

    replay: ReplayPin | None
    input: Callable[[InputSpec], Input]
    transform: Transform

    @property
    def streamed(self) -> bool:
        """Whether a query of its own computes the rows."""
        return self.replay is not None and self.replay.streamed


def planned_with(world: World, request: Request, spec: PipelineSpec) -> PlannedWith:
    """As the pipeline says, unless the request names a stream whose logic only a stream can compute."""
    if request.stream is None:
        if request.watermark is not None:
            raise InvalidRequest(
                f"--watermark {request.watermark} says how a stream is replayed, and no stream is named",
                hint="name it with --stream, or leave --watermark out",
            )
        return PlannedWith(None, world.input, world.transform(spec.name))
    replaying = world.replaying(request.stream)
    replay = planned_replay(request, replaying, world.clock.now())
    if not replay.streamed:
        return PlannedWith(replay, world.input, world.transform(spec.name))
    return PlannedWith(replay, lambda each: _input(world, replay, each), replaying.planning())


def input_of(world: World, manifest: Manifest, spec: InputSpec) -> Input:
    """What the run reads; of a stream that is replayed the topic, as its query does."""
    return _input(world, manifest.streamed, spec)


def transform_of(
    world: World, run_id: str, manifest: Manifest, inputs: tuple[InputPin, ...], pace: Pace | None = None
) -> Transform:
    """What computes the run's rows; a query of its own at that pace."""
    if manifest.streamed is None:
        return world.transform(manifest.pipeline)
    return world.replaying(manifest.streamed.stream).transform(run_id, manifest, inputs, pace)


def record_replay(world: World, run_id: str, manifest: Manifest, inputs: tuple[InputPin, ...]) -> None:
    """Once, when the query has come to its end."""
    if manifest.streamed is None:
        return
    runs = world.store().runs
    told = world.replaying(manifest.streamed.stream).transform(run_id, manifest, inputs).told()
    if told is not None and replayed(runs.events(run_id)) is None:
        runs.record(run_id, REPLAYED, **told.as_json(), speed=round(told.speed, 1))


def _input(world: World, replay: ReplayPin | None, spec: InputSpec) -> Input:
    if replay is None or (not isinstance(spec.dataset, LogSource) and spec.name not in replay.tables):
        return world.input(spec)
    replaying = world.replaying(replay.stream)
    return replaying.input(replay) if isinstance(spec.dataset, LogSource) else replaying.table(replay, spec)
