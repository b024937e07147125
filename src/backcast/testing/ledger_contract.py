"""What every store's chunk ledger must do. Part of `backcast.testing.store_contract`, which gives the fixtures."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import pytest

from backcast.errors import InvalidRequest, LeaseHeld, StateConflict, UnknownName
from backcast.model.digest import Digest
from backcast.model.run import Chunk, InputCount, Lease, StageRecord, lease_name, worker_lease_name
from backcast.model.states import ChunkState, EffectState, RunState
from backcast.model.throttle import Throttle
from backcast.testing import store_workers as workers
from backcast.testing.samples import sample_holder, sample_manifest

if TYPE_CHECKING:
    from backcast.store.sql import SqlStore


def running(store: SqlStore, days: int) -> tuple[str, Lease]:
    """A running run of that many chunks, and the lease on it."""
    run = store.runs.create(sample_manifest(days=days))
    lease = store.leases.acquire(lease_name(run.run_id), sample_holder(), 300)
    for state in (RunState.APPROVED, RunState.RUNNING):
        run = store.runs.transition(run, state, token=lease.token)
    return run.run_id, lease


def record_of(claimed: list[Chunk], version: str = "55") -> StageRecord:
    """The commit that a worker would report for its claim."""
    return StageRecord(
        run_id=claimed[0].run_id,
        token=claimed[0].token or 0,
        version=version,
        chunk_ids=tuple(chunk.chunk_id for chunk in claimed),
        digest=Digest(rows=10 * len(claimed), high="18446744073709551616", low="5"),
        seconds=0.25,
    )


class LedgerContract:
    """Claims and outcomes of chunks."""

    def test_a_claim_takes_neighbours_only(self, store: SqlStore) -> None:
        run_id, lease = running(store, 10)
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 3)] == [0, 1, 2]
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 2)] == [3, 4]
        store.chunks.reset(run_id, ["2025-01-02", "2025-01-03"], lease)
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 9)] == [1, 2]
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 9)] == [5, 6, 7, 8, 9]
        assert store.chunks.claim(run_id, lease, 9) == []

    def test_chunks_that_are_held_back_are_claimed_once_they_are_let_go(self, store: SqlStore) -> None:
        run_id, lease = running(store, 5)
        store.chunks.hold(run_id, ["2025-01-02", "2025-01-04"], lease)
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 9)] == [1]
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 9)] == [3]
        assert store.chunks.claim(run_id, lease, 9) == []
        assert store.runs.events(run_id)[-1].data == {"chunks": ["2025-01-02", "2025-01-04"]}
        assert store.chunks.release(run_id, lease) == 3
        assert [chunk.ordinal for chunk in store.chunks.claim(run_id, lease, 9)] == [0]

    def test_no_more_jobs_are_at_work_than_the_throttle_allows(self, store: SqlStore) -> None:
        run_id, lease = running(store, 6)
        one, two = Throttle(parallel_jobs=1), Throttle(parallel_jobs=2)
        first = store.chunks.claim(run_id, lease, 2, one)
        assert len(first) == 2, "chunks of one job count as one"
        assert store.chunks.claim(run_id, lease, 2, one) == []
        assert len(store.chunks.claim(run_id, lease, 2, two)) == 2
        assert store.chunks.claim(run_id, lease, 2, two) == []
        store.chunks.staged(record_of(first), {}, lease)
        assert len(store.chunks.claim(run_id, lease, 2, two)) == 2

    def test_jobs_at_work_and_those_of_the_last_hour_are_no_more_than_may_commit(self, store: SqlStore) -> None:
        """A commit counts also after its chunks were put back, or when its process died before it told the outcome."""
        run_id, lease = running(store, 6)
        most = Throttle(commits_per_hour=3)
        (landed,), (alone,) = store.chunks.claim(run_id, lease, 1, most), store.chunks.claim(run_id, lease, 1, most)
        store.chunks.staged(record_of([alone]), {}, lease)
        effect = store.effects.begin(run_id, "stage.write", str(landed.token))
        store.chunks.staged(record_of([landed]), {}, lease)
        store.effects.end(effect, EffectState.LANDED)
        store.chunks.reset(run_id, [landed.chunk_id], lease)
        failed = store.effects.begin(run_id, "stage.write", "4711")
        store.effects.end(failed, EffectState.NOT_LANDED)
        assert len(store.chunks.commits(run_id)) == 2
        assert store.chunks.commits(run_id) == sorted(store.chunks.commits(run_id), reverse=True)
        assert len(store.chunks.claim(run_id, lease, 1, most)) == 1
        assert store.chunks.claim(run_id, lease, 1, most) == [], "one is at work, and will commit"
        assert len(store.chunks.claim(run_id, lease, 1, Throttle(commits_per_hour=4))) == 1

    def test_a_claim_is_written_down_with_a_token_of_its_own(self, store: SqlStore) -> None:
        run_id, lease = running(store, 4)
        first, second = store.chunks.claim(run_id, lease, 2), store.chunks.claim(run_id, lease, 2)
        assert lease.token < (first[0].token or 0) < (second[0].token or 0)
        assert {chunk.token for chunk in first} == {first[0].token}
        assert all(chunk.state is ChunkState.RUNNING and chunk.attempts == 1 for chunk in first)
        assert all(chunk.started_at is not None for chunk in first)
        assert store.runs.chunks(run_id) == first + second

    def test_four_processes_claim_400_chunks_each_exactly_once(self, store: SqlStore, url: str) -> None:
        run_id, lease = running(store, 400)
        by_process = workers.race(workers.claim_all, url, run_id, lease, 2)
        assert sum(1 for claims in by_process if claims) > 1
        claims = list(chain.from_iterable(by_process))
        claimed = list(chain.from_iterable(chunk_ids for _, chunk_ids in claims))
        assert sorted(claimed) == [chunk.chunk_id for chunk in store.runs.chunks(run_id)]
        tokens = [token for token, _ in claims]
        assert len(tokens) == len(set(tokens))
        assert {chunk.attempts for chunk in store.runs.chunks(run_id)} == {1}

    def test_an_outcome_is_recorded_for_all_chunks_of_a_commit_at_once(self, store: SqlStore) -> None:
        run_id, lease = running(store, 3)
        claimed = store.chunks.claim(run_id, lease, 2)
        record = record_of(claimed)
        read = (InputCount(input="events", rows=2**50, exact=False), InputCount(input="days", rows=0))
        store.chunks.staged(record, {"2025-01-01": 20}, lease, {"2025-01-01": read})
        first, second, third = store.runs.chunks(run_id)
        assert (first.state, first.output_rows, first.version) == (ChunkState.STAGED, 20, "55")
        assert (second.state, second.output_rows) == (ChunkState.STAGED, 0)
        assert (first.inputs, second.inputs, third.inputs) == (read, (), ())
        assert first.finished_at is not None
        assert third.state is ChunkState.PENDING
        assert store.runs.stage_records(run_id) == [record]
        with pytest.raises(StateConflict):
            store.chunks.staged(record, {}, lease)
        store.chunks.reset(run_id, [first.chunk_id], lease)
        assert store.runs.chunks(run_id)[0].inputs == ()

    def test_a_worker_whose_lease_was_taken_over_records_nothing(self, store: SqlStore) -> None:
        run_id, stale = running(store, 2)
        claimed = store.chunks.claim(run_id, stale, 2)
        store.leases.take_over(stale, sample_holder("second"), 60)
        with pytest.raises(StateConflict, match="lease"):
            store.chunks.staged(record_of(claimed), {}, stale)
        with pytest.raises(StateConflict, match="lease"):
            store.chunks.failed(run_id, ["2025-01-01"], "boom", stale)
        with pytest.raises(StateConflict, match="lease"):
            store.chunks.claim(run_id, stale, 1)
        assert store.runs.chunks(run_id) == claimed
        assert store.runs.stage_records(run_id) == []

    def test_an_ended_lease_gives_no_right_even_when_nobody_took_it(self, store: SqlStore) -> None:
        run_id, lease = running(store, 2)
        store.leases.renew(lease, 0)
        with pytest.raises(StateConflict, match="lease"):
            store.chunks.claim(run_id, lease, 1)

    def test_another_runs_lease_gives_no_right(self, store: SqlStore) -> None:
        run_id, _ = running(store, 2)
        other = store.leases.acquire("run:another", sample_holder(), 60)
        with pytest.raises(StateConflict):
            store.chunks.claim(run_id, other, 1)

    def test_workers_claim_beside_the_driver_until_their_leases_end(self, store: SqlStore) -> None:
        run_id, lease = running(store, 6)
        one, two = (
            store.leases.acquire(worker_lease_name(run_id, each), sample_holder(), 60) for each in ("one", "two")
        )
        assert [each.name for each in store.runs.workers(run_id)] == [one.name, two.name]
        claims = [store.chunks.claim(run_id, each, 2) for each in (lease, one, two)]
        assert len({chunk.chunk_id for claimed in claims for chunk in claimed}) == 6
        store.chunks.staged(record_of(claims[1]), {}, one)
        store.leases.release(two)
        assert store.chunks.release_lost(run_id) == 4, "two that the driver works on, two that are pending again"
        states = [chunk.state for chunk in store.runs.chunks(run_id)]
        assert states == [ChunkState.RUNNING] * 2 + [ChunkState.STAGED] * 2 + [ChunkState.PENDING] * 2
        with pytest.raises(StateConflict, match="lease"):
            store.chunks.staged(record_of(claims[2]), {}, two)
        assert [each.name for each in store.runs.workers(run_id)] == [one.name]

    def test_a_worker_that_stood_still_does_not_come_back_behind_whoever_counted_it_out(self, store: SqlStore) -> None:
        """Nobody takes a worker's lease: its name is its own. Who goes by its end ends it for good."""
        run_id, _ = running(store, 4)
        late, later = (
            store.leases.acquire(worker_lease_name(run_id, each), sample_holder(), 60) for each in ("late", "later")
        )
        store.chunks.claim(run_id, late, 2)
        ended = store.leases.renew(late, 0)
        again = store.leases.renew(ended, 0)
        assert again.token == late.token, "while nobody has looked it is had again"
        assert store.chunks.release_lost(run_id) == 4
        with pytest.raises(LeaseHeld):
            store.leases.renew(again, 60)
        ended = store.leases.renew(later, 0)
        assert store.leases.workers(run_id) == []
        with pytest.raises(LeaseHeld):
            store.leases.renew(ended, 60)

    def test_a_drivers_claims_do_not_outlive_its_lease(self, store: SqlStore) -> None:
        run_id, lease = running(store, 3)
        store.chunks.claim(run_id, lease, 2)
        store.leases.take_over(lease, sample_holder(), 60)
        assert store.chunks.release_lost(run_id) == 3
        assert {chunk.state for chunk in store.runs.chunks(run_id)} == {ChunkState.PENDING}

    def test_who_lost_its_lease_sets_nothing_back(self, store: SqlStore) -> None:
        """It stood still, and what it gives up has been staged by another since."""
        run_id, lease = running(store, 2)
        store.chunks.claim(run_id, lease, 2)
        successor = store.leases.take_over(lease, sample_holder(), 60)
        store.chunks.release_lost(run_id)
        claimed = store.chunks.claim(run_id, successor, 2)
        store.chunks.staged(record_of(claimed), {}, successor)
        with pytest.raises(StateConflict, match="lease"):
            store.chunks.reset(run_id, [chunk.chunk_id for chunk in claimed], lease)
        assert {chunk.state for chunk in store.runs.chunks(run_id)} == {ChunkState.STAGED}

    def test_a_claim_that_was_given_to_another_is_not_recorded(self, store: SqlStore) -> None:
        """The late commit of an earlier attempt: the lease is right, the claim's token is not."""
        run_id, lease = running(store, 3)
        late = store.chunks.claim(run_id, lease, 2)
        store.chunks.reset(run_id, [chunk.chunk_id for chunk in late], lease)
        assert {chunk.state for chunk in store.runs.chunks(run_id)} == {ChunkState.PENDING}
        fresh = store.chunks.claim(run_id, lease, 3)
        with pytest.raises(StateConflict):
            store.chunks.staged(record_of(late, "54"), {}, lease)
        store.chunks.staged(record_of(fresh, "55"), {}, lease)
        assert [chunk.attempts for chunk in fresh] == [2, 2, 1]
        assert {chunk.version for chunk in store.runs.chunks(run_id)} == {"55"}

    def test_one_lost_chunk_spoils_the_record_of_the_whole_commit(self, store: SqlStore) -> None:
        run_id, lease = running(store, 3)
        claimed = store.chunks.claim(run_id, lease, 3)
        store.chunks.reset(run_id, ["2025-01-02"], lease)
        with pytest.raises(StateConflict):
            store.chunks.staged(record_of(claimed), {}, lease)
        states = [chunk.state for chunk in store.runs.chunks(run_id)]
        assert states == [ChunkState.RUNNING, ChunkState.PENDING, ChunkState.RUNNING]

    def test_failed_chunks_keep_their_error_until_they_are_reset(self, store: SqlStore) -> None:
        run_id, lease = running(store, 2)
        store.chunks.claim(run_id, lease, 1)
        store.chunks.failed(run_id, ["2025-01-01"], "division by zero", lease)
        failed, _ = store.runs.chunks(run_id)
        assert (failed.state, failed.error) == (ChunkState.FAILED, "division by zero")
        with pytest.raises(StateConflict):
            store.chunks.failed(run_id, ["2025-01-01"], "again", lease)
        assert store.chunks.release_lost(run_id) == 1
        assert store.runs.chunks(run_id)[0].state is ChunkState.FAILED
        store.chunks.reset(run_id, ["2025-01-01"], lease)
        clean = store.runs.chunks(run_id)[0]
        assert (clean.state, clean.error, clean.attempts) == (ChunkState.PENDING, "", 1)
        with pytest.raises(UnknownName):
            store.chunks.reset(run_id, ["1999-01-01"], lease)

    def test_a_run_that_is_being_cancelled_gives_out_no_chunks(self, store: SqlStore) -> None:
        run_id, lease = running(store, 2)
        store.runs.transition(store.runs.run(run_id), RunState.CANCELLING)
        with pytest.raises(StateConflict, match="cancelling"):
            store.chunks.claim(run_id, lease, 1)

    def test_a_plan_that_names_a_chunk_twice_is_refused_whole(self, store: SqlStore) -> None:
        manifest = sample_manifest()
        twice = manifest.model_copy(update={"chunks": (*manifest.chunks, manifest.chunks[0])})
        with pytest.raises(InvalidRequest, match="2025-01-01"):
            store.runs.create(twice)
        assert store.runs.runs() == []
