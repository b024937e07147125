"""Verbs behind `stream recover`: what the table, the checkpoint and the log say, and a checkpoint made of that."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from uuid import uuid4

from backcast.appending import added_runs
from backcast.beside import newest_commit, proven
from backcast.errors import Refused
from backcast.model.live import stream_lease
from backcast.model.log import OffsetRange
from backcast.model.pieces import layers, pieces
from backcast.model.recovery import NO_BATCH, RECOVERED, Recovery, Way, cut_off, refuse_losing_state, way_back
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.model.under_way import refuse_replayed
from backcast.run.lease import acquire
from backcast.spark.gateway import jvm_errors
from backcast.streams.checkpoint.damage import verify
from backcast.streams.checkpoint.exchange import Exchange
from backcast.streams.checkpoint.folder import Checkpoint, local_folder
from backcast.streams.checkpoint.fork import write_fresh
from backcast.streams.checkpoint.look import position_of
from backcast.verbs.checkpoints import operators_on_record
from backcast.verbs.foreign_proof import Proof, Standing, foreign_standing, starts_beside
from backcast.verbs.restoring import is_restored, lost_windows, restates
from backcast.verbs.standing import refuse_unless_stopped
from backcast.verbs.streaming import StreamingVerbs

if TYPE_CHECKING:
    from backcast.model.log import Ranges
    from backcast.model.restoring import LostWindows
    from backcast.model.stream import StreamSpec


class StreamRecoveryVerbs(StreamingVerbs):
    @jvm_errors("looking at the stream")
    def stream_recovery(self, name: str) -> Recovery:
        """What became of the stream, and the way back. Changes nothing."""
        spec = self.world.stream(name)
        if not spec.external:
            refuse_replayed(name, self.world.stream_reader().steps(name))
            self.refuse_beside(name)
        return self._looked_at(spec)

    def _looked_at(self, spec: StreamSpec) -> Recovery:
        Exchange(local_folder(spec.checkpoint)).finish_interrupted()
        checkpoint = Checkpoint(local_folder(spec.checkpoint))
        at = foreign_standing(self.world, spec, checkpoint) if spec.external else self._ours(spec, checkpoint)
        found, stands, query_id = at.found, at.proof.ends, at.query_id
        exists = bool(checkpoint.offsets or checkpoint.commits or checkpoint.readable_id())
        position = at.position if exists else None
        starts = {each.partition: each.log_start for each in at.topic.partitions}
        gone = cut_off(stands, starts)
        way, why = way_back(sound=found.sound and exists, position=position, proven=stands, gone=gone)
        by_window = restates(spec, stateful=at.stateful, known=self.world.stream_reader().stream(spec.name) is not None)
        return Recovery(
            stream=spec.name,
            pipeline=spec.pipeline.name,
            dataset=spec.dataset.name,
            table=spec.dataset.table,
            checkpoint=spec.checkpoint,
            query_id=query_id,
            damages=tuple(f"{each.file}: {each.what}" for each in found.damages) if exists else ("it is not there",),
            recoverable=found.recoverable if exists else None,
            stateful=at.stateful,
            position=position,
            proven=stands,
            batch=at.proof.batch,
            version=at.proof.version,
            external=spec.external,
            by=at.proof.by,
            gone=gone,
            lacking=self._lacking(spec, query_id, at.topic.topic_id, gone, by_window=by_window),
            by_offset=spec.pipeline.settings.publish_mode is not PublishMode.REPLACE,
            by_window=by_window,
            archived=spec.source.archive is not None,
            way=way,
            why=why,
        )

    def _ours(self, spec: StreamSpec, checkpoint: Checkpoint) -> Standing:
        query_id = self._query_id(spec, checkpoint)
        query = self.world.live_query(spec)
        told = operators_on_record(self.world, checkpoint) if query.stateful() else 0
        checkpoint = Checkpoint(checkpoint.root, told)
        commit = newest_commit(self.world, spec, query, query_id)
        if commit is None:
            table, hint = spec.dataset.table, f"backcast stream start {spec.name} --accept-checkpoint begins anew"
            raise Refused(f"{table} has no batch of stream {spec.name}: nothing proves an offset", hint=hint)
        stands = proven(self.world, spec, query, query_id, commit)
        return Standing(
            query_id=query_id,
            proof=Proof(stands, commit.batch, "", commit.version),
            position=position_of(checkpoint, spec.source.topic),
            topic=query.topic(),
            found=verify(checkpoint),
            stateful=bool(checkpoint.operators) or query.stateful(),
        )

    @jvm_errors("recovering the stream")
    def stream_recover(
        self, name: str, found: Recovery, *, without_state: bool = False, stopped: bool = False
    ) -> Recovery:
        """Put a fresh checkpoint at the proven offsets in the place of the old one, which is kept aside. `stopped`:
        somebody's word for a stream that others run.

        Raises Refused for state that would be lost, and when something moved since it was looked at: a person may have
        thought about it for an hour, and somebody else has recovered the stream, which has read on since.
        """
        if found.way is Way.START:
            return found
        refuse_losing_state(found, without_state=without_state)
        world, spec = self.world, self.world.stream(name)
        store = world.store().streams
        with acquire(world.store().leases, stream_lease(name), world.holder(), world.clock, world.ended) as lease:
            refuse_replayed(name, store.steps(name))
            if spec.external:
                refuse_unless_stopped(spec, world.clock, stopped=stopped)
            if moved := found.moved(self._looked_at(spec)):
                hint = f"look again: backcast stream recover {name}"
                raise Refused(f"stream {name} moved since it was looked at: {moved}", hint=hint)
            live = store.stream(name)
            query_id, exchange = str(uuid4()), Exchange(local_folder(spec.checkpoint))
            offsets = {spec.source.topic: {str(key): value for key, value in sorted(found.starting.items())}}
            starts = {"0": json.dumps(offsets, separators=(",", ":"))}
            if spec.external and found.batch > NO_BATCH:
                starts = starts_beside(Checkpoint(local_folder(spec.checkpoint)), found.batch, offsets)
            with exchange.building() as building:
                write_fresh(building, query_id, starts)
            lease.check()
            # Before the exchange: of a stream of others nothing else says whose the new checkpoint is.
            gone = [each.as_json() for each in found.lacking]
            store.step(name, RECOVERED, query_id=query_id, offsets=offsets, gone=gone)
            exchange.exchange("recover", world.clock.now())
            if live is not None:
                # What is on record belongs to the new query from now on, or its start would be refused as a stranger's.
                store.save(live.model_copy(update={"query_id": query_id, "detail": "", "hint": ""}), lease.check())
        return found

    @jvm_errors("looking for the lost records")
    def stream_lost_windows(self, name: str, lacking: Ranges) -> LostWindows:
        """What is still to be restated before the stream starts. That nothing is, is on record from then on."""
        return lost_windows(self.world, self.world.stream(name), lacking)

    def _query_id(self, spec: StreamSpec, checkpoint: Checkpoint) -> str:
        """Of the query whose batches the table has: on record, or in the checkpoint."""
        live = self.world.store().streams.stream(spec.name)
        query_id = (live.query_id if live is not None else None) or checkpoint.readable_id()
        if query_id is None:
            hint = f"backcast stream start {spec.name}: nothing of it is in the table yet, as far as anybody knows"
            raise Refused(f"neither the store nor a checkpoint knows a query of stream {spec.name}", hint=hint)
        return query_id

    def _lacking(self, spec: StreamSpec, query_id: str, topic_id: str, gone: Ranges, *, by_window: bool) -> Ranges:
        """What is gone, and what the recovery that made this query went past and may have died before it added it.

        Raises Refused while nobody knows whether a run that adds it has landed.
        """
        steps = self.world.store().streams.steps(spec.name)
        passed = {each.data["query_id"]: each.data.get("gone", ()) for each in steps if each.name == RECOVERED}
        owed = tuple(OffsetRange.model_validate(each) for each in passed.get(query_id, ()))
        if spec.pipeline.settings.publish_mode is PublishMode.REPLACE:
            # Where its windows are restated by plans of their own, that it was told of is all that a recovery owes.
            return pieces(layers(((owed if by_window and not is_restored(steps, query_id) else ()), gone)))
        if not owed and not gone:
            return ()
        added: list[Ranges] = []
        for run, manifest in added_runs(self.world.reader(), spec.dataset.table):
            logs = [pin.log for pin in manifest.inputs if pin.log is not None]
            mine = [log for log in logs if log.topic_id == topic_id and not log.by_time]
            took = [each.only or each.owned for log in mine for each in log.slices.values()]
            lacking = pieces(layers((owed, gone), without=added))
            if run.state is RunState.PUBLISHING and lacking != pieces(layers((owed, gone), without=[*added, *took])):
                hint = f"backcast publish {run.run_id}, then the same command"
                raise Refused(f"run {run.run_id} adds some of these offsets, and its publish is not over", hint=hint)
            added += took
        return pieces(layers((owed, gone), without=added))
