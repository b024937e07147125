"""The reader of a project in which nothing was planned yet: looking must not make a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from backcast.errors import UnknownName

if TYPE_CHECKING:
    from backcast.model.live import LiveBatch, LiveStep, LiveStream, Stop
    from backcast.model.manifest import Manifest
    from backcast.model.run import Chunk, Event, Lease, Publication, Run, StageRecord
    from backcast.model.verdict import Verdict


class NoRuns:
    """A `RunReader` that knows no run."""

    def run(self, run_id: str) -> Run:
        _unknown(run_id)

    def runs(self, *, dataset: str | None = None, open_only: bool = False, limit: int = 50) -> list[Run]:
        return []

    def manifest(self, run_id: str) -> Manifest:
        _unknown(run_id)

    def manifest_text(self, run_id: str) -> str:
        _unknown(run_id)

    def chunks(self, run_id: str) -> list[Chunk]:
        _unknown(run_id)

    def events(self, run_id: str, after: int = 0) -> list[Event]:
        _unknown(run_id)

    def verify_events(self, run_id: str) -> int | None:
        _unknown(run_id)

    def verdict(self, run_id: str) -> Verdict | None:
        _unknown(run_id)

    def verdicts(self, run_id: str) -> list[Verdict]:
        _unknown(run_id)

    def publications(self, run_id: str) -> list[Publication]:
        _unknown(run_id)

    def stage_records(self, run_id: str) -> list[StageRecord]:
        _unknown(run_id)

    def holder(self, lease: str) -> Lease | None:
        return None

    def workers(self, run_id: str) -> list[Lease]:
        return []


class NoStreams:
    """A `StreamReader` that knows no stream."""

    def stream(self, name: str) -> LiveStream | None:
        return None

    def batches(self, name: str, limit: int) -> list[LiveBatch]:
        return []

    def steps(self, name: str) -> list[LiveStep]:
        return []

    def asked(self, name: str) -> Stop | None:
        return None


def _unknown(run_id: str) -> NoReturn:
    hint = "make the first plan with `backcast plan PIPELINE --from DAY --to DAY`"
    raise UnknownName(f"no run is called {run_id!r}: nothing was planned here yet", hint=hint, run=run_id)
