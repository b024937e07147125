"""The durable life of one manifest, as the store keeps it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from backcast.model.digest import Digest
from backcast.model.document import Document, later
from backcast.model.states import ChunkState, EffectState, RunState


class Run(Document):
    """One row of the run list. `revision` grows with every change of state and guards against lost updates."""

    run_id: str
    manifest_sha256: str
    pipeline: str
    dataset: str
    table: str
    kind: str
    reason: str
    ticket: str
    requested_by: str
    state: RunState
    revision: int
    created_at: datetime
    updated_at: datetime
    detail: str = ""
    """Why it is in this state, when that needs words: the failure, the refusal."""
    superseded_by: str | None = None


class InputCount(Document):
    """How much of one input a chunk has read, warm-up included."""

    input: str
    rows: int
    """Of a topic its offsets."""
    exact: bool = True
    """False: at most so many, for some of the files also hold rows that it does not read."""


class Chunk(Document):
    """One row of the ledger."""

    run_id: str
    chunk_id: str
    ordinal: int
    state: ChunkState
    attempts: int = 0
    token: int | None = None
    """Fencing token of the claim that produced, or is producing, it."""
    lease: int | None = None
    """Token of the lease under which it was claimed; without that lease the claim is worth nothing."""
    version: str | None = None
    """Staged version of the commit that holds it."""
    output_rows: int | None = None
    inputs: Annotated[tuple[InputCount, ...], later(())] = ()
    """Of each input that is read by window, once the chunk is staged."""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    error: str = ""


class StageRecord(Document):
    """One recorded commit on the stage: the chunks that shared a job, and the digest of what they wrote."""

    run_id: str
    token: int
    version: str
    chunk_ids: tuple[str, ...]
    digest: Digest
    seconds: float


class Event(Document):
    """One line of a run's history; each carries the hash of the line before."""

    run_id: str
    number: int
    at: datetime
    name: str
    data: dict[str, Any]
    previous: str
    sha256: str
    account: Annotated[str, later("")] = ""
    """Account and host of the process that wrote it, as the operating system knows them."""


class Effect(Document):
    """A side effect: written down as intended before it is tried, with its outcome after."""

    effect_id: int
    run_id: str
    name: str
    """`stage.open`, `stage.write`, `stage.carry`, `publish`, `undo`, `forget`."""
    key: str
    """What to look for in the table to learn whether it landed."""
    state: EffectState
    data: dict[str, Any]
    at: datetime


class Publication(Document):
    """One publish of a run, or its undo. A run can be published again after an undo: the generation counts."""

    run_id: str
    generation: int
    fence: str
    base: str | None
    staged: str
    head: str | None
    version: str
    """The live version that made it visible."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    published_at: datetime
    undo_until: datetime
    amendment: int = 0
    """Which amendment of the run it published; 0 when live rows made none necessary."""
    undo_fence: str | None = None
    undo_version: str | None = None
    undone_at: datetime | None = None
    released_at: datetime | None = None
    """When gc let go of the refs that made an undo possible."""


class Holder(Document):
    """Who holds a lease: enough to tell whether that process, and its JVM, are still there."""

    owner: str
    host: str
    pid: int
    started: str
    jvm_pid: int | None = None
    jvm_started: str | None = None

    @property
    def process(self) -> str:
        """For people: behind the name of a host follow its boot and its pid namespace, which tell nobody anything."""
        return f"process {self.pid} on {self.host.partition('/')[0]}"


class Lease(Document):
    """Exclusive right on a name until a time by the store's clock. The token never repeats."""

    name: str
    token: int
    holder: Holder
    expires_at: datetime


def lease_name(run_id: str) -> str:
    """The lease of the run's driver: who holds it decides what happens to the run."""
    return f"run:{run_id}"


def worker_lease_name(run_id: str, worker: str) -> str:
    """The lease of one worker, which stages chunks of the run and decides nothing. A run has any number of them."""
    return f"{lease_name(run_id)}/worker/{worker}"


def turn_lease_name(run_id: str) -> str:
    """The lease of whoever commits to the run's stage right now."""
    return f"{lease_name(run_id)}/turn"
