"""Verbs about declared streams: run one, stop it, say where it stands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from backcast.errors import BackcastError, Failed, InvalidRequest, LeaseHeld
from backcast.held import quiet
from backcast.model.full_replay import refuse_mixed
from backcast.model.live import (
    LiveState,
    LiveStream,
    Stop,
    StreamStatus,
    UnderWay,
    freeze_lease,
    stream_lease,
)
from backcast.model.report import Progress
from backcast.model.under_way import refuse_between, under_way
from backcast.ports.streams import LiveHost, Position
from backcast.run.lease import acquire
from backcast.spark.gateway import jvm_errors
from backcast.verbs.beginning import (
    behind_bootstrap,
    refuse_forgotten,
    refuse_stranger,
    starting_at,
    told_offsets,
)
from backcast.verbs.standing import standing
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.report import OnProgress
    from backcast.model.run import Lease
    from backcast.model.stream import StreamSpec
    from backcast.model.topic_report import HandOver
    from backcast.ports.streams import LiveQuery, StreamStore
    from backcast.run.lease import HeldLease

STOP_SECONDS = 300.0
_POLL_SECONDS = 0.3
_ASK_SECONDS = 0.5
"""How often the process that runs a stream asks the store whether it should stop."""
_SHOWN = 5

Asked = Callable[[], Stop | None]


def never() -> Stop | None:
    """Nobody asks from within the process."""
    return None


class StreamingVerbs(Verbs):
    def stream_start(
        self,
        name: str,
        *,
        once: bool = False,
        accept_checkpoint: bool = False,
        asked: Asked = never,
        on_progress: OnProgress = quiet,
    ) -> StreamStatus:
        """Run the stream until it is asked to stop; with `once`, until it has read what the log has now.

        Continues behind the last committed batch. Raises what stopped it, which is on record too.
        """
        self.refuse_start(name)
        world, spec = self.world, self.world.stream(name)
        with jvm_errors(f"starting stream {name}"):
            world.spark()
        asked()
        lease = acquire(world.store().leases, stream_lease(name), world.holder(), world.clock, world.ended)
        with lease:
            # Again: a full replay may have stopped the stream while Spark started.
            refuse_between(name, world.stream_reader().steps(name))
            self._run(spec, lease, once=once, accept=accept_checkpoint, asked=asked, on_progress=on_progress)
        return self.stream_status(name)

    def _run(
        self,
        spec: StreamSpec,
        lease: HeldLease,
        *,
        once: bool,
        accept: bool,
        asked: Asked,
        on_progress: OnProgress,
    ) -> None:
        """Whatever ends it is recorded, with the next command."""
        store, clock = self.world.store().streams, self.world.clock
        before = store.stream(spec.name)
        record = _Record(store, lease)
        try:
            with jvm_errors(f"starting stream {spec.name}"):
                query, ends = self.world.live_query(spec), self._ends(spec.name)
                where, topic = query.position(), query.topic()
                behind = None if accept else behind_bootstrap(self.world, spec, where, ends, topic)
                if behind is not None:
                    on_progress(_begins(behind))
                    query = self.world.live_query(replace(spec, starting=starting_at(behind)))
                begun = self._record(spec, query, where, lease.check())
                # What was refused must not be on record as the stream's own: the next start would take it for that.
                if behind is None:
                    refuse_stranger(before, begun, where, ends, accept=accept, spec=spec)
                hint = f"backcast stream recover {spec.name} takes them from the archive, and goes on behind them"
                refuse_forgotten(spec.name, where.ends, topic, hint)
                if before is not None and not accept:
                    refuse_mixed(store.steps(spec.name), begun.pipeline, (before.version, before.code), begun.code)
            record.save(begun)
            host = LiveHost(
                store=store,
                lease=lease.check,
                asked=_now_and_then(lambda: asked() or store.asked(spec.name), clock.monotonic),
                frozen=lambda: self._frozen(spec.dataset.table),
                started=lambda query_id: record.change(query_id=query_id),
                running=lambda: record.change(state=LiveState.RUNNING),
                clock=clock,
                on_progress=on_progress,
            )
            with jvm_errors(f"running stream {spec.name}"):
                query.run(host, once=once)
        except Exception as error:
            self._save_end(record.now or before, query_id=None, state=LiveState.FAILED, error=error, lease=lease)
            raise
        self._save_end(record.now, query_id=query.position().query_id, state=LiveState.STOPPED, error=None, lease=lease)

    def _record(self, spec: StreamSpec, query: LiveQuery, where: Position, lease: Lease) -> LiveStream:
        now = self.world.clock.now()
        return LiveStream(
            name=spec.name,
            state=LiveState.STARTING,
            token=lease.token,
            query_id=where.query_id,
            pipeline=spec.pipeline.name,
            version=spec.pipeline.version,
            code=query.code(),
            topic=spec.source.topic,
            topic_id=query.topic().topic_id,
            dataset=spec.dataset.name,
            table=spec.dataset.table,
            checkpoint=spec.checkpoint,
            started_at=now,
            changed_at=now,
        )

    def _save_end(
        self,
        record: LiveStream | None,
        *,
        query_id: str | None,
        state: LiveState,
        error: Exception | None,
        lease: HeldLease,
    ) -> None:
        if record is None:
            return
        store = self.world.store().streams
        newest = store.batches(record.name, 1)
        told = {
            "state": state,
            "query_id": query_id or record.query_id or (newest[0].query_id if newest else None),
            "changed_at": self.world.clock.now(),
            "detail": "" if error is None else str(error),
            "hint": error.hint if isinstance(error, BackcastError) else "",
        }
        try:
            store.save(record.model_copy(update=told), lease.check())
        except BackcastError:
            # The store is away, or another process has taken over: what ended this one is told by its own answer.
            if error is None:
                raise

    def _ends(self, name: str) -> dict[int, int]:
        """The next offset of each partition behind the newest batch that landed."""
        landed = next((each for each in self.world.store().streams.batches(name, 20) if each.landed), None)
        return {} if landed is None else {each.partition: each.end for each in landed.offsets}

    def _frozen(self, table: str) -> str | None:
        held = self.world.reader().holder(freeze_lease(table))
        if held is None or not self.world.alive(held.holder):
            return None
        return f"{held.holder.owner} ({held.holder.process}) publishes to {table}"

    def refuse_start(self, name: str) -> None:
        """Raises InvalidRequest for a stream that is not ours, LeaseHeld for one that runs.

        At once: Spark takes seconds to start, and would be started in vain.
        """
        if self.world.stream(name).external:
            hint = f"take `external: true` from streams.{name} once nobody else runs it"
            raise InvalidRequest(f"stream {name} is run by somebody else", hint=hint)
        refuse_between(name, self.world.stream_reader().steps(name))
        self.refuse_beside(name)

    def refuse_beside(self, name: str) -> None:
        """Raises LeaseHeld while the stream runs here."""
        held = self.world.reader().holder(stream_lease(name))
        if held is not None and self.world.alive(held.holder):
            who = f"{held.holder.owner} ({held.holder.process})"
            hint = f"backcast stream status {name}, or backcast stream stop {name}"
            raise LeaseHeld(f"{who} runs stream {name} right now", hint=hint, lease=held)

    def stream_stop(self, name: str, *, force: bool = False, timeout: float = STOP_SECONDS) -> StreamStatus:
        """Ask the process that runs the stream to stop, and wait until it has. Nothing to do when nobody runs it.

        Raises InvalidRequest for one that others run: to be told that it has stopped would be wrong.
        """
        status, clock = self.stream_status(name), self.world.clock
        if not status.alive and status.external:
            raise InvalidRequest(f"stream {name} is run by somebody else", hint="stop it where it runs")
        if not status.alive:
            return status
        self.world.store().streams.ask(name, Stop.NOW if force else Stop.BOUNDARY)
        deadline = clock.monotonic() + timeout
        while (status := self.stream_status(name)).alive:
            if clock.monotonic() >= deadline:
                raise Failed(
                    f"stream {name} was asked to stop, and its batch is not over after {timeout:.0f} s",
                    hint=f"backcast stream stop {name} waits on; --force interrupts the batch, which is repeated later",
                )
            clock.sleep(_POLL_SECONDS)
        return status

    def stream_status(self, name: str, *, batches: int = _SHOWN) -> StreamStatus:
        """Where the stream stands, from the store alone; of one that others run, from its checkpoint."""
        spec, reader = self.world.stream(name), self.world.stream_reader()
        lease = self.world.reader().holder(stream_lease(name))
        position, unknown = standing(spec) if spec.external else (None, "")
        found = StreamStatus(
            name=name,
            pipeline=spec.pipeline.name,
            topic=spec.source.topic,
            dataset=spec.dataset.name,
            table=spec.dataset.table,
            checkpoint=spec.checkpoint,
            external=spec.external,
            live=reader.stream(name),
            lease=lease,
            alive=lease is not None and self.world.alive(lease.holder),
            asked=reader.asked(name),
            batches=tuple(reader.batches(name, batches)),
            position=position,
            unknown=unknown,
            under_way=self._begun_on(name),
        )
        return found.model_copy(update={"next": _next(found)})

    def _begun_on(self, name: str) -> UnderWay | None:
        found = under_way(self.world.stream_reader().steps(name))
        held = None if found is None else self.world.reader().holder(found.lease)
        alive = held is not None and self.world.alive(held.holder)
        return None if found is None else found.model_copy(update={"alive": alive})

    def stream_list(self) -> list[StreamStatus]:
        """Every declared stream."""
        return [self.stream_status(name, batches=1) for name in self.world.streams()]


class _Record:
    """What the process that runs a stream keeps in the store about it."""

    def __init__(self, store: StreamStore, lease: HeldLease) -> None:
        self._store, self._lease = store, lease
        self.now: LiveStream | None = None

    def save(self, record: LiveStream) -> None:
        self._store.save(record, self._lease.check())
        self.now = record

    def change(self, **changed: object) -> None:
        if self.now is not None:
            self.save(self.now.model_copy(update=changed))


def _begins(behind: HandOver) -> Progress:
    return Progress(step="stream", message=f"begins where run {behind.run_id} ended: {told_offsets(behind.offsets)}")


def _next(status: StreamStatus) -> str:
    """What to type next; empty when there is nothing to do."""
    doing = status.under_way
    if doing is not None and doing.stands:
        return "" if doing.alive else doing.again
    match status.state:
        case "external":
            return "" if status.position is None else f"backcast stream lag {status.name}"
        case "starting" | "stopping":
            return ""
        case "running":
            return f"backcast stream stop {status.name}"
        case "failed" if status.live is not None and status.live.hint:
            return status.live.hint
        case _:
            return f"backcast stream start {status.name}"


def _now_and_then(ask: Asked, monotonic: Callable[[], float]) -> Asked:
    """The store is not asked more often than it matters; what was heard once stays true."""
    heard: Stop | None = None
    asked_at = float("-inf")

    def asked() -> Stop | None:
        nonlocal heard, asked_at
        if heard is not Stop.NOW and monotonic() - asked_at >= _ASK_SECONDS:
            asked_at = monotonic()
            heard = ask() or heard
        return heard

    return asked
