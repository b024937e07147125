"""Verbs about checkpoints: look at them, keep copies of them, go back.

A checkpoint is named by its folder or by the declared stream that it belongs to. Looking needs neither Spark nor a
project.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.errors import ConfigError, InvalidRequest, UnknownName
from backcast.run.lease import acquire
from backcast.sources.kafka.spelling import parse_position
from backcast.spark.gateway import jvm_errors
from backcast.streams.checkpoint import backup as backing_up
from backcast.streams.checkpoint.change import Checks, Skipped, nothing_skipped
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.difference import difference
from backcast.streams.checkpoint.folder import Checkpoint, is_local, is_same_folder, local_folder
from backcast.streams.checkpoint.fork import fork_at_batch, fork_at_offsets, refuse_inexact, starts_after
from backcast.streams.checkpoint.history import history
from backcast.streams.checkpoint.life import refuse_running
from backcast.streams.checkpoint.look import inspect
from backcast.streams.checkpoint.lost_state import refuse_lost
from backcast.streams.checkpoint.point import Point, find_batch
from backcast.streams.checkpoint.proof import prove_state
from backcast.streams.checkpoint.restore import restore
from backcast.streams.checkpoint.rewind import rewind
from backcast.streams.checkpoint.sink import as_its_stream_sees_it, predict, refuse_skip, remembered
from backcast.verbs.themed import Verbs

if TYPE_CHECKING:
    from backcast.model.checkpoint import (
        Backup,
        Change,
        CheckpointDifference,
        History,
        Inspection,
        SinkPrediction,
        Verification,
    )
    from backcast.model.stream import StreamSpec
    from backcast.ports import Clock
    from backcast.world import World

_BATCHES_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Where:
    """Where a stream is to go on. `before`, `offset` and `delay` are as people write them."""

    batch: int | None = None
    before: str | None = None
    offset: str | None = None
    delay: str | None = None
    """How far the query's watermark stays behind the newest row; None: as the stream declares it."""


@dataclass(frozen=True, slots=True)
class SinkChoice:
    """Which table the stream writes to. None: that of the declared stream."""

    dataset: str | None = None
    unchecked: bool = False
    """Somebody knows what the sink does with batches that come again."""


DECLARED = SinkChoice()


class CheckpointReading(ABC):
    """What can be told about any folder of this machine."""

    @abstractmethod
    def _checkpoint_named(self, name: str) -> tuple[Path, StreamSpec | None]: ...

    @abstractmethod
    def _checkpoint_now(self) -> datetime: ...

    @abstractmethod
    def _checkpoint_operators(self, checkpoint: Checkpoint) -> int | None:
        """How many operators of the query keep state, if that is on record."""

    def _checkpoint_at(self, name: str, *, stateless: bool = False) -> tuple[Checkpoint, StreamSpec | None]:
        """The checkpoint of that name, or the one within the backup of that name."""
        folder, stream = self._checkpoint_named(name)
        copied = (folder / backing_up.MANIFEST).is_file()
        found = Checkpoint.at(folder / backing_up.COPY if copied else folder)
        return Checkpoint(found.root, 0 if stateless else self._checkpoint_operators(found)), stream

    def checkpoint_inspect(self, name: str) -> Inspection:
        """Query id, batches, positions, watermark, state. Never fails on damage."""
        checkpoint, stream = self._checkpoint_at(name)
        return inspect(checkpoint, None if stream is None else stream.name)

    def checkpoint_history(self, name: str, *, last: int | None = None) -> History:
        """Batch by batch, oldest first; the newest so many when that is given."""
        return history(self._checkpoint_at(name)[0], last)

    def checkpoint_verify(self, name: str, *, stateless: bool = False) -> Verification:
        """Every damage that the files show, and what Spark would make of it.

        `stateless`: somebody knows that the query keeps no state.
        """
        return verify(self._checkpoint_at(name, stateless=stateless)[0])

    def checkpoint_diff(self, left: str, right: str) -> CheckpointDifference:
        """Two checkpoints; or a checkpoint and a backup."""
        return difference(self._checkpoint_at(left)[0], self._checkpoint_at(right)[0])

    def checkpoint_backup(self, name: str, *, to: str | None = None) -> Backup:
        """A consistent copy with its own hashes, also while the stream runs."""
        root = Checkpoint.at(self._checkpoint_named(name)[0]).root
        return backing_up.backup(root, None if to is None else local_folder(to), self._checkpoint_now())


class CheckpointVerbs(Verbs, CheckpointReading):
    def checkpoint_prove(self, name: str, *, stateless: bool = False) -> Verification:
        """Verify, and have Spark load the state that a restart would need."""
        checkpoint, _ = self._checkpoint_at(name, stateless=stateless)
        found = verify(checkpoint)
        batch = checkpoint.next_batch - 1
        if batch < 0:
            return found
        with jvm_errors("loading the state"):
            return found.model_copy(update={"loaded": prove_state(self.world.spark(), checkpoint, batch)})

    def checkpoint_needs_spark(self, name: str, sink: SinkChoice) -> bool:
        """Whether a fork, a rewind or a restore of it has state to load or a table to ask."""
        folder, stream = self._checkpoint_named(name)
        known = sink.dataset is not None or stream is not None
        stateful = any(Checkpoint(each).operators for each in (folder, folder / backing_up.COPY))
        return (known and not sink.unchecked) or stateful

    def checkpoint_restore(
        self, name: str, backup: str, *, sink: SinkChoice = DECLARED, stopped: bool = False
    ) -> Change:
        """Put a backup in the place of a checkpoint, whose files are kept aside."""
        root, stream = self._checkpoint_named(name)
        folder = local_folder(backup)
        backing_up.read_manifest(folder)
        checks = self._checkpoint_checks(root, stream, sink, new_id=False)
        with self._checkpoint_at_rest(root, stream, stopped=stopped):
            changed = restore(root, folder, checks, self._checkpoint_now())
        return _of(changed, stream)

    def checkpoint_rewind(
        self,
        name: str,
        where: Where,
        *,
        sink: SinkChoice = DECLARED,
        stopped: bool = False,
        stateless: bool = False,
    ) -> Change:
        """Let the stream go on after an earlier batch; its files are kept aside."""
        root, stream = self._checkpoint_named(name)
        checks = self._checkpoint_checks(root, stream, sink, new_id=False)
        checks = replace(checks, told=0) if stateless else checks
        with self._checkpoint_at_rest(root, stream, stopped=stopped):
            chosen = partial(self._checkpoint_batch, where=where, stream=stream)
            changed = rewind(root, chosen, checks, self._checkpoint_now())
        return _of(changed, stream)

    def checkpoint_fork(
        self,
        name: str,
        to: str,
        where: Where,
        *,
        sink: SinkChoice = DECLARED,
        fresh_state: bool = False,
        stateless: bool = False,
    ) -> Change:
        """A new checkpoint with a new query id. The other one, or the backup, is only read, and may be in use."""
        source, stream = self._checkpoint_at(name, stateless=stateless)
        target = local_folder(to)
        checks = replace(self._checkpoint_checks(source.root, stream, sink, new_id=True), told=source.told)
        if where.offset is not None and not fresh_state:
            refuse_lost(source)
        if where.offset is not None and (fresh_state or not source.operators):
            return fork_at_offsets(source, target, _starts(source, where.offset), checks)
        batch = self._checkpoint_batch(source, where, stream)
        if where.offset is not None:
            refuse_inexact(source, batch, _starts(source, where.offset))
        if fresh_state:
            return fork_at_offsets(source, target, starts_after(source, batch), checks)
        return fork_at_batch(source, target, batch, checks)

    def _checkpoint_named(self, name: str) -> tuple[Path, StreamSpec | None]:
        """A declared stream, by its name or by the folder of its checkpoint, or any folder."""
        streams = {each: self.world.stream(each) for each in self.world.streams()}
        if name in streams:
            return local_folder(streams[name].checkpoint), streams[name]
        folder = local_folder(name)
        for each in streams.values():
            if is_local(each.checkpoint) and is_same_folder(local_folder(each.checkpoint), folder):
                return local_folder(each.checkpoint), each
        if not folder.exists() and "/" not in name:
            known = ", ".join(streams) or "none"
            raise UnknownName(f"{name!r} is neither a folder nor a declared stream", hint=f"streams are: {known}")
        return folder, None

    def _checkpoint_now(self) -> datetime:
        return self.world.clock.now()

    def _checkpoint_operators(self, checkpoint: Checkpoint) -> int | None:
        return operators_on_record(self.world, checkpoint)

    @contextmanager
    def _checkpoint_at_rest(self, root: Path, stream: StreamSpec | None, *, stopped: bool) -> Iterator[None]:
        """Nobody writes to it meanwhile: by the lease of a stream of ours, else by its files and somebody's word."""
        if stream is not None and not stream.external:
            world = self.world
            with acquire(world.store().leases, f"stream/{stream.name}", world.holder(), world.clock, world.ended):
                yield
            return
        if root.exists():
            refuse_running(Checkpoint(root), self.world.clock, stopped=stopped)
        yield

    def _checkpoint_batch(self, checkpoint: Checkpoint, where: Where, stream: StreamSpec | None) -> int:
        from backcast.model.time import parse_instant

        offsets = None
        if where.offset is not None:
            found = parse_position(where.offset, _topics(checkpoint))
            offsets = {partition: offset for each in found.values() for partition, offset in each.items()}
        before = None if where.before is None else parse_instant(where.before, "UTC")
        declared = None if stream is None or stream.watermark is None else stream.watermark.delay
        delay = declared if where.delay is None else _duration(where.delay)
        if before is not None and delay is None:
            raise InvalidRequest(
                "nobody says how far the watermark of the query stays behind its newest row: what is later than that"
                " moment may have been read before the watermark came there",
                hint="add --delay, as `withWatermark` of the query has it, or declare the stream with its `watermark`",
            )
        return find_batch(checkpoint, Point(where.batch, before, delay or timedelta(), offsets))

    def _checkpoint_checks(self, root: Path, stream: StreamSpec | None, sink: SinkChoice, *, new_id: bool) -> Checks:
        dataset = sink.dataset or (None if stream is None else stream.dataset.name)
        if dataset is None and not sink.unchecked and not new_id:
            raise InvalidRequest(
                "which table does the stream write to? Iceberg and Delta skip batches that they know, without a word",
                hint="add --sink DATASET, or --unchecked-sink if you know what the sink does",
            )
        relation = None if dataset is None or sink.unchecked else self.world.relation(dataset)
        known_id = Checkpoint(root).readable_id()

        def asked(
            query_id: str, next_batch: int, again: int, skipped: Skipped = nothing_skipped, /
        ) -> SinkPrediction | None:
            if relation is None:
                return None
            about = known_id or query_id if new_id else query_id
            spark, names = self.world.spark(), self.world.streams()
            memory = remembered(spark, relation.table, relation.format, about, names, next_batch - 1)
            if stream is not None and not stream.external and stream.dataset.table == relation.table:
                newest = self.world.live_target(stream).newest(stream.name, about, None)
                memory = as_its_stream_sees_it(memory, stream.name, newest)
            return refuse_skip(predict(memory, next_batch, again, new_id=new_id, skipped=skipped(memory.last)))

        def proven(candidate: Checkpoint, batch: int) -> tuple[str, ...]:
            if not candidate.operators:
                return ()
            with jvm_errors("loading the state"):
                return prove_state(self.world.spark(), candidate, batch)

        return Checks(proven, asked, self._checkpoint_operators(Checkpoint(root)))


class FolderCheckpoints(CheckpointReading):
    """Checkpoints outside of any project."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def _checkpoint_now(self) -> datetime:
        return self._clock.now()

    def _checkpoint_operators(self, checkpoint: Checkpoint) -> int | None:
        return None

    def _checkpoint_named(self, name: str) -> tuple[Path, StreamSpec | None]:
        folder = local_folder(name)
        if not folder.exists() and "/" not in name:
            hint = "name its folder, or the project that declares it: --project DIR"
            raise ConfigError(f"{name!r} is no folder, and there is no project here that could declare it", hint=hint)
        return folder, None


def operators_on_record(world: World, checkpoint: Checkpoint) -> int | None:
    """How many operators of the query keep state, as Spark told when the stream ran here. None when it did not.

    By the id of the query, so of copies too; where that cannot be read any more, by the folder.
    """
    query_id, reader = checkpoint.readable_id(), world.stream_reader()
    for name in world.streams():
        spec = world.stream(name)
        own = query_id is None and is_local(spec.checkpoint) and local_folder(spec.checkpoint) == checkpoint.root
        for batch in reader.batches(name, _BATCHES_LOOKED_AT):
            if batch.operators is not None and (own or batch.query_id == query_id):
                return batch.operators
    return None


def _of(changed: Change, stream: StreamSpec | None) -> Change:
    return changed if stream is None else changed.model_copy(update={"stream": stream.name})


def _duration(text: str) -> timedelta:
    from backcast.model.time import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise InvalidRequest(f"--delay: {error}") from None


def _topics(checkpoint: Checkpoint) -> list[str]:
    plan = checkpoint.readable_plan(checkpoint.planned)
    return sorted({topic for each in (() if plan is None else plan.sources) for topic in each.kafka or {}})


def _starts(source: Checkpoint, text: str) -> dict[str, str]:
    """For each source of the query the offsets that were given. Every partition that it reads must be among them."""
    plan = source.readable_plan(source.planned)
    if plan is None:
        raise InvalidRequest(f"{source.root}: its offsets cannot be read", hint="backcast checkpoint verify DIR")
    wanted = parse_position(text, _topics(source))
    starts = {}
    for each in plan.sources:
        known = each.kafka
        if known is None:
            raise InvalidRequest(
                f"source {each.name} of the query is no topic", hint="fork it at a batch: --at-batch N"
            )
        for topic, offsets in known.items():
            missing = sorted(set(offsets) - set(wanted.get(topic, {})))
            if missing:
                raise InvalidRequest(
                    f"no offset is given for partition {missing[0]} of {topic}", hint="name every partition"
                )
        document = {topic: {str(number): wanted[topic][number] for number in wanted[topic]} for topic in known}
        starts[each.name] = json.dumps(document, separators=(",", ":"))
    return starts
