"""What the flow asks of the store: runs, chunks, effects, leases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from backcast.model.manifest import Manifest
    from backcast.model.run import Chunk, Effect, Event, Holder, InputCount, Lease, Publication, Run, StageRecord
    from backcast.model.states import EffectState, RunState
    from backcast.model.throttle import Throttle
    from backcast.model.verdict import Verdict
    from backcast.ports.streams import StreamStore


class RunReader(Protocol):
    """Reads the store. Works without Spark and without user code."""

    def run(self, run_id: str) -> Run:
        """Raises UnknownName; a unique prefix of a run id is enough."""

    def runs(self, *, dataset: str | None = None, open_only: bool = False, limit: int = 50) -> list[Run]:
        """Newest first."""

    def manifest(self, run_id: str) -> Manifest: ...

    def manifest_text(self, run_id: str) -> str:
        """As it was recorded, byte for byte, whatever release did it."""

    def chunks(self, run_id: str) -> list[Chunk]: ...

    def events(self, run_id: str, after: int = 0) -> list[Event]: ...

    def verify_events(self, run_id: str) -> int | None:
        """The number of the first event that does not fit the chain, or that is missing; None when all are there."""

    def verdict(self, run_id: str) -> Verdict | None:
        """The newest verdict of the run."""

    def verdicts(self, run_id: str) -> list[Verdict]:
        """Every verdict of the run, oldest first."""

    def publications(self, run_id: str) -> list[Publication]: ...

    def stage_records(self, run_id: str) -> list[StageRecord]: ...

    def holder(self, lease: str) -> Lease | None:
        """Who holds the lease now; None when nobody does."""

    def workers(self, run_id: str) -> list[Lease]:
        """Leases of the workers that take part in the run now."""


class RunStore(RunReader, Protocol):
    """Writes runs.

    Every change of state is a compare-and-set on state and revision, with its event, in one transaction.
    """

    def create(self, manifest: Manifest) -> Run:
        """Record a planned run with its chunks. The same manifest again returns the run that is there."""

    def transition(self, run: Run, to: RunState, *, detail: str = "", token: int | None = None, **data: Any) -> Run:
        """Raises StateConflict when the table of states forbids it, someone was faster, or the lease token is stale."""

    def record(self, run_id: str, name: str, **data: Any) -> None:
        """Append an event that changes no state."""

    def save_verdict(self, verdict: Verdict) -> None:
        """With an event that holds its hash."""

    def save_publication(self, publication: Publication, *, token: int | None = None) -> None:
        """Insert, or replace the one with the same run and generation; with an event that holds its hash.

        Raises StateConflict when the lease token is stale: a process that slept may not overwrite what others did.
        """

    def mark_superseded(self, run_id: str, by: str | None) -> None:
        """Record which run took this one's place, or None when that was undone."""


class ChunkLedger(Protocol):
    """Claims and outcomes of chunks."""

    def claim(self, run_id: str, lease: Lease, limit: int, throttle: Throttle | None = None) -> list[Chunk]:
        """Up to `limit` neighbouring pending chunks, set running under a fresh fencing token.

        Empty when none is pending, or when the run has as many jobs as the throttle allows.
        """

    def commits(self, run_id: str) -> list[datetime]:
        """When jobs of the run committed to its stage in the last hour, newest first."""

    def release_lost(self, run_id: str) -> int:
        """Put chunks whose claimant's lease has ended back to pending; how many are pending or running after that.

        A worker whose lease has ended cannot renew it from then on.
        """

    def staged(
        self,
        record: StageRecord,
        rows: dict[str, int],
        lease: Lease,
        inputs: Mapping[str, tuple[InputCount, ...]] | None = None,
    ) -> None:
        """Record the outcome of one commit, all its chunks at once, and what each had read.

        Raises StateConflict when the token is stale.
        """

    def failed(self, run_id: str, chunk_ids: Sequence[str], error: str, lease: Lease) -> None: ...

    def hold(self, run_id: str, canary: Sequence[str], lease: Lease) -> None:
        """Hold every pending chunk back but these; the run's history names them."""

    def release(self, run_id: str, lease: Lease) -> int:
        """Put chunks that were held back to pending; how many."""

    def reset(self, run_id: str, chunk_ids: Sequence[str], lease: Lease) -> None:
        """Back to pending: after a retry was asked for, or when the stage does not hold what the ledger says."""


class EffectLog(Protocol):
    """Intent before each side effect, outcome after."""

    def begin(self, run_id: str, name: str, key: str, **data: Any) -> Effect: ...

    def end(self, effect: Effect, state: EffectState, **data: Any) -> None: ...

    def open(self, run_id: str) -> list[Effect]:
        """Effects whose outcome was never recorded, oldest first."""


class Leases(Protocol):
    """Leases by the store's clock."""

    def acquire(self, name: str, holder: Holder, seconds: float) -> Lease:
        """Raises LeaseHeld (attribute `lease`) while someone else's has not ended."""

    def renew(self, lease: Lease, seconds: float) -> Lease:
        """Also one that has ended, while nobody took it. Raises LeaseHeld when it was lost."""

    def release(self, lease: Lease) -> None: ...

    def take_over(self, lost: Lease, holder: Holder, seconds: float) -> Lease:
        """Take a lease whose holder is known to be dead, if it is still that same lease."""

    def workers(self, run_id: str) -> list[Lease]:
        """Of the run's workers, those that live; the others can no longer be renewed."""


class Store(Protocol):
    """The parts of one database."""

    runs: RunStore
    chunks: ChunkLedger
    effects: EffectLog
    leases: Leases
    streams: StreamStore
