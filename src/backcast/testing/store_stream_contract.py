"""What every store must do about streams. Part of `backcast.testing.store_contract`, which gives the fixtures."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backcast.errors import LeaseHeld, StateConflict
from backcast.model.live import LiveBatch, LiveState, LiveStream, Stop, stream_lease
from backcast.model.log import OffsetRange
from backcast.store import streams
from backcast.testing.samples import FIRST_DAY, sample_holder

if TYPE_CHECKING:
    from backcast.model.run import Lease
    from backcast.store.sql import SqlStore


def sample_stream(state: LiveState = LiveState.RUNNING, detail: str = "") -> LiveStream:
    return LiveStream(
        name="live",
        state=state,
        query_id="q-1",
        pipeline="orders",
        version="1.0.0",
        code="abc",
        topic="orders",
        topic_id="t-1",
        dataset="orders_by_day",
        table="lake.db.orders",
        checkpoint="/checkpoints/live",
        started_at=FIRST_DAY,
        changed_at=FIRST_DAY,
        detail=detail,
    )


def sample_batch(number: int, **changed: object) -> LiveBatch:
    batch = LiveBatch(
        stream="live",
        query_id="q-1",
        batch=number,
        offsets=(OffsetRange(partition=0, start=10 * number, end=10 * number + 10),),
        base=str(number),
        at=FIRST_DAY + timedelta(seconds=number),
    )
    return batch.model_copy(update=changed)


def held(store: SqlStore) -> Lease:
    return store.leases.acquire(stream_lease("live"), sample_holder(), 300)


class StreamContract:
    """Streams, their batches, and what was asked of them."""

    def test_a_stream_and_its_newest_batches_come_back(self, store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(streams, "KEPT_BATCHES", 3)
        assert store.streams.stream("live") is None
        lease = held(store)
        store.streams.save(sample_stream(), lease)
        failed = sample_stream(LiveState.FAILED, "a record cannot be decoded")
        store.streams.save(failed, lease)
        assert store.streams.stream("live") == failed
        for number in range(5):
            store.streams.record(sample_batch(number), lease)
            store.streams.record(sample_batch(number, landed=True, version="7", log_end={0: 99}), lease)
        found = store.streams.batches("live", 10)
        assert [each.batch for each in found] == [4, 3, 2], "an older one was let go for each new one"
        assert found[0] == sample_batch(4, landed=True, version="7", log_end={0: 99})
        assert found[0].lag == 49
        assert [each.batch for each in store.streams.batches("live", 1)] == [4]

    def test_the_newest_batch_is_the_one_that_was_begun_last_whatever_a_host_takes_for_the_time(
        self, store: SqlStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A stream moves to a host whose clock is behind, and from there goes back by some batches."""
        monkeypatch.setattr(streams, "KEPT_BATCHES", 3)
        lease, behind = held(store), FIRST_DAY - timedelta(hours=1)
        for number in (4, 5):
            store.streams.record(sample_batch(number, landed=True), lease)
        for number in (6, 7):
            store.streams.record(sample_batch(number, at=behind + timedelta(seconds=number)), lease)
        assert [each.batch for each in store.streams.batches("live", 10)] == [7, 6, 5]
        store.streams.record(sample_batch(6, at=behind + timedelta(seconds=6), landed=True), lease)
        assert store.streams.batches("live", 1)[0].batch == 7, "more about a batch leaves it in its place"
        store.streams.record(sample_batch(5, at=behind), lease)
        assert [each.batch for each in store.streams.batches("live", 10)] == [5, 7, 6], "begun anew it is the newest"

    def test_who_takes_a_stream_has_been_asked_nothing_yet(self, store: SqlStore) -> None:
        """What is asked from then on is not lost."""
        store.streams.ask("live", Stop.BOUNDARY)
        store.streams.ask("other", Stop.BOUNDARY)
        lease = held(store)
        assert (store.streams.asked("live"), store.streams.asked("other")) == (None, Stop.BOUNDARY)
        store.streams.ask("live", Stop.NOW)
        with pytest.raises(LeaseHeld):
            held(store)
        store.leases.renew(lease, 300)
        assert store.streams.asked("live") is Stop.NOW
        store.leases.take_over(lease, sample_holder(), 300)
        assert store.streams.asked("live") is None

    def test_only_who_holds_the_lease_writes_for_a_stream(self, store: SqlStore) -> None:
        lease = held(store)
        other = store.leases.take_over(lease, sample_holder(), 300)
        lost = "the lease on stream live was lost"
        with pytest.raises(StateConflict, match=lost):
            store.streams.save(sample_stream(), lease)
        with pytest.raises(StateConflict, match=lost):
            store.streams.record(sample_batch(1), lease)
        store.streams.save(sample_stream(), other)
        assert store.streams.batches("live", 10) == []

    def test_anyone_can_ask_a_stream_to_stop(self, store: SqlStore) -> None:
        lease = held(store)
        assert store.streams.asked("live") is None
        store.streams.ask("live", Stop.BOUNDARY)
        assert (store.streams.asked("live"), store.streams.stream("live")) == (Stop.BOUNDARY, None)
        store.streams.save(sample_stream(), lease)
        assert store.streams.asked("live") is Stop.BOUNDARY

    def test_steps_of_a_command_are_kept_in_order(self, store: SqlStore) -> None:
        for name in ("begun", "stopped"):
            store.streams.step("live", name, run="r-1")
        store.streams.step("other", "begun")
        assert [(each.number, each.name, each.data) for each in store.streams.steps("live")] == [
            (1, "begun", {"run": "r-1"}),
            (2, "stopped", {"run": "r-1"}),
        ]
