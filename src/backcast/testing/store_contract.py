"""What every store must do. Subclass `StoreContract` for each database and give it the fixtures `url` and `raw`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from backcast.errors import LeaseHeld, StateConflict, UnknownName
from backcast.model.document import sha256
from backcast.model.run import Lease, Run, lease_name
from backcast.model.states import TRANSITIONS, EffectState, RunState
from backcast.store import open_store
from backcast.testing import store_workers as workers
from backcast.testing.ledger_contract import LedgerContract
from backcast.testing.samples import sample_holder, sample_manifest, sample_publication, sample_verdict
from backcast.testing.store_history_contract import HistoryContract
from backcast.testing.store_opening_contract import OpeningContract, SharingContract
from backcast.testing.store_stream_contract import StreamContract

if TYPE_CHECKING:
    from backcast.store.sql import SqlStore


def path_to(state: RunState) -> list[RunState]:
    """A shortest way from `planned` to the state, through the table of states."""
    paths = {RunState.PLANNED: [RunState.PLANNED]}
    waiting = [RunState.PLANNED]
    while state not in paths:
        here = waiting.pop(0)
        for following in sorted(TRANSITIONS[here] - paths.keys()):
            paths[following] = [*paths[here], following]
            waiting.append(following)
    return paths[state]


def walk(store: SqlStore, state: RunState) -> Run:
    """A new run in that state."""
    run = store.runs.create(sample_manifest(reason=f"walk to {state}"))
    for following in path_to(state)[1:]:
        run = store.runs.transition(run, following)
    return run


class RunContract:
    """Runs, their states and their history."""

    def test_a_recorded_plan_comes_back_byte_for_byte(self, store: SqlStore) -> None:
        manifest = sample_manifest(days=40)
        run = store.runs.create(manifest)
        assert store.runs.manifest(run.run_id) == manifest
        assert store.runs.manifest(run.run_id).sha256() == run.manifest_sha256
        assert [chunk.chunk_id for chunk in store.runs.chunks(run.run_id)] == [chunk.id for chunk in manifest.chunks]
        assert (run.state, run.revision, run.table) == (RunState.PLANNED, 1, "lake.db.orders")

    def test_recording_the_same_plan_twice_returns_the_run_that_is_there(self, store: SqlStore) -> None:
        first = store.runs.create(sample_manifest())
        moved = store.runs.transition(first, RunState.APPROVED)
        assert store.runs.create(sample_manifest()) == moved
        assert len(store.runs.runs()) == 1

    def test_a_run_is_found_by_a_unique_prefix_only(self, store: SqlStore) -> None:
        first = store.runs.create(sample_manifest(pipeline="orders"))
        second = store.runs.create(sample_manifest(pipeline="orders_daily"))
        assert store.runs.run(first.run_id) == first
        assert store.runs.run("orders_") == second
        assert store.runs.chunks("orders_")[0].run_id == second.run_id
        with pytest.raises(UnknownName) as ambiguous:
            store.runs.run("orders")
        assert first.run_id in ambiguous.value.hint
        assert second.run_id in ambiguous.value.hint
        with pytest.raises(UnknownName) as misspelt:
            store.runs.run("orders-dayly-20260301")
        assert second.run_id in misspelt.value.hint
        for wild in ("", "%", "orders%", "_"):
            with pytest.raises(UnknownName):
                store.runs.run(wild)

    def test_runs_are_listed_newest_first_and_by_dataset_and_openness(self, store: SqlStore) -> None:
        runs = [store.runs.create(sample_manifest(pipeline=f"p{n}", dataset=f"d{n % 2}")) for n in range(6)]
        closed = store.runs.transition(store.runs.transition(runs[0], RunState.CANCELLING), RunState.CANCELLED)
        newest_first = [run.run_id for run in reversed(runs)]
        assert [run.run_id for run in store.runs.runs()] == newest_first
        assert [run.run_id for run in store.runs.runs(limit=2)] == newest_first[:2]
        assert {run.dataset for run in store.runs.runs(dataset="d1")} == {"d1"}
        assert closed.run_id not in {run.run_id for run in store.runs.runs(open_only=True)}
        assert len(store.runs.runs(open_only=True, dataset="d0")) == 2

    @pytest.mark.parametrize("state", list(RunState))
    def test_only_the_table_of_states_says_what_may_follow(self, store: SqlStore, state: RunState) -> None:
        """Every forbidden successor is refused and leaves no trace; every allowed one was walked to get here."""
        run = walk(store, state)
        history = store.runs.events(run.run_id)
        for forbidden in set(RunState) - TRANSITIONS[state]:
            with pytest.raises(StateConflict) as refused:
                store.runs.transition(run, forbidden)
            assert refused.value.hint
        assert store.runs.run(run.run_id) == run
        assert store.runs.events(run.run_id) == history
        steps = [RunState.PLANNED, *(to for _, to in pairwise(path_to(state)))]
        assert [event.name for event in history] == [f"state.{step.value}" for step in steps]

    def test_a_run_that_someone_else_moved_is_not_moved_again(self, store: SqlStore) -> None:
        seen = store.runs.create(sample_manifest())
        store.runs.transition(seen, RunState.APPROVED)
        with pytest.raises(StateConflict, match="approved now"):
            store.runs.transition(seen, RunState.CANCELLING)

    def test_the_same_state_in_a_later_revision_is_not_mistaken_for_the_earlier_one(self, store: SqlStore) -> None:
        failed = walk(store, RunState.FAILED)
        again = store.runs.transition(store.runs.transition(failed, RunState.RUNNING), RunState.FAILED)
        assert again.state is failed.state
        with pytest.raises(StateConflict):
            store.runs.transition(failed, RunState.RUNNING)

    def test_a_transition_under_a_stale_token_is_refused(self, store: SqlStore) -> None:
        run = walk(store, RunState.APPROVED)
        name = lease_name(run.run_id)
        stale = store.leases.acquire(name, sample_holder("first"), 60)
        fresh = store.leases.take_over(stale, sample_holder("second"), 60)
        with pytest.raises(StateConflict, match="lease"):
            store.runs.transition(run, RunState.RUNNING, token=stale.token)
        run = store.runs.transition(run, RunState.RUNNING, token=fresh.token)
        store.leases.renew(fresh, 0)
        with pytest.raises(StateConflict, match="lease"):
            store.runs.transition(run, RunState.STAGED, token=fresh.token)
        assert store.runs.run(run.run_id) == run

    def test_four_processes_move_a_run_once(self, store: SqlStore, url: str) -> None:
        run = store.runs.create(sample_manifest())
        outcomes = workers.race(workers.try_transition, url, run, RunState.APPROVED)
        assert sorted(outcomes) == [False, False, False, True]
        assert store.runs.run(run.run_id).revision == run.revision + 1
        assert store.verify_events(run.run_id) is None

    def test_events_are_numbered_chained_and_complete(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        store.runs.record(run.run_id, "note", big=2**63, ratio=float("nan"), text="ä", nested={"ids": (1, 2)})
        store.runs.transition(run, RunState.APPROVED, detail="no approval needed", by="ann")
        planned, note, approved = store.runs.events(run.run_id)
        assert [planned.number, note.number, approved.number] == [1, 2, 3]
        assert (note.previous, approved.previous) == (planned.sha256, note.sha256)
        assert note.data == {"big": str(2**63), "ratio": "nan", "text": "ä", "nested": {"ids": [1, 2]}}
        assert approved.data == {"from": "planned", "to": "approved", "detail": "no approval needed", "by": "ann"}
        assert store.runs.events(run.run_id, after=2) == [approved]
        assert store.verify_events(run.run_id) is None
        with pytest.raises(UnknownName):
            store.runs.record("no-such-run", "note")

    def test_the_newest_verdict_counts(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        assert store.runs.verdict(run.run_id) is None
        store.runs.save_verdict(sample_verdict(run.run_id, staged="76", accepted=False))
        newest = sample_verdict(run.run_id, staged="77")
        store.runs.save_verdict(newest)
        assert store.runs.verdict(run.run_id) == newest

    def test_the_history_binds_verdicts_and_publications_by_hash(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        verdicts = [sample_verdict(run.run_id, staged=staged) for staged in ("76", "77")]
        for verdict in verdicts:
            store.runs.save_verdict(verdict)
        publication = sample_publication(run.run_id)
        store.runs.save_publication(publication)
        _, first, second, made = store.runs.events(run.run_id)
        assert store.runs.verdicts(run.run_id) == verdicts
        assert [first.data["document"], second.data["document"]] == [sha256(each.canonical()) for each in verdicts]
        assert (made.name, made.data["document"]) == ("publish.recorded", sha256(publication.canonical()))
        assert (made.data["files_added"], made.data["files_removed"], second.data["rows"]) == (1, 1, 900)

    def test_every_event_names_the_account_that_wrote_it(self, store: SqlStore, url: str) -> None:
        run = store.runs.create(sample_manifest())
        with open_store(url, account="ana@host-1") as hers:
            hers.runs.transition(run, RunState.APPROVED)
            hers.runs.record(run.run_id, "note", text="seen")
        assert [event.account for event in store.runs.events(run.run_id)] == ["", "ana@host-1", "ana@host-1"]
        assert store.verify_events(run.run_id) is None

    def test_a_publication_is_replaced_within_its_generation(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        first, second = (sample_publication(run.run_id, generation=number) for number in (1, 2))
        undone = first.model_copy(update={"undo_version": "99", "undone_at": first.undo_until})
        for publication in (first, second, undone):
            store.runs.save_publication(publication)
        assert store.runs.publications(run.run_id) == [undone, second]

    def test_a_publication_of_a_stale_lease_is_refused(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        stale = store.leases.acquire(lease_name(run.run_id), sample_holder("first"), 60)
        fresh = store.leases.take_over(stale, sample_holder("second"), 60)
        undone = sample_publication(run.run_id).model_copy(update={"undo_version": "99"})
        store.runs.save_publication(undone, token=fresh.token)
        with pytest.raises(StateConflict, match="lease"):
            store.runs.save_publication(sample_publication(run.run_id), token=stale.token)
        assert store.runs.publications(run.run_id) == [undone]

    def test_supersession_is_recorded_and_taken_back(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        store.runs.mark_superseded(run.run_id, "later-run")
        assert store.runs.run(run.run_id).superseded_by == "later-run"
        store.runs.mark_superseded(run.run_id, None)
        assert store.runs.run(run.run_id).superseded_by is None
        assert store.runs.run(run.run_id).revision == run.revision

    def test_an_effect_stays_open_until_its_outcome_is_known(self, store: SqlStore) -> None:
        run = store.runs.create(sample_manifest())
        first = store.effects.begin(run.run_id, "stage.open", "branch", base="1")
        second = store.effects.begin(run.run_id, "publish", "fence")
        assert store.effects.open(run.run_id) == [first, second]
        store.effects.end(first, EffectState.LANDED, version="2")
        store.effects.end(first, EffectState.LANDED)
        assert store.effects.open(run.run_id) == [second]
        with pytest.raises(StateConflict):
            store.effects.end(first, EffectState.NOT_LANDED)
        with pytest.raises(StateConflict):
            store.effects.end(second, EffectState.INTENDED)


class LeaseContract:
    """Leases by the store's clock."""

    def test_a_lease_keeps_others_out_until_it_ends(self, store: SqlStore) -> None:
        held = store.leases.acquire("table:orders", sample_holder("first"), 60)
        with pytest.raises(LeaseHeld) as refused:
            store.leases.acquire("table:orders", sample_holder("second"), 60)
        assert refused.value.attributes["lease"] == held
        assert "first" in refused.value.message
        assert store.runs.holder("table:orders") == held
        ended = store.leases.renew(held, 0)
        assert store.runs.holder("table:orders") is None
        assert store.leases.acquire("table:orders", sample_holder("second"), 60).token > ended.token

    def test_a_lost_lease_can_neither_be_renewed_nor_given_back(self, store: SqlStore) -> None:
        lost = store.leases.acquire("table:orders", sample_holder("first"), 0)
        held = store.leases.acquire("table:orders", sample_holder("second"), 60)
        with pytest.raises(LeaseHeld):
            store.leases.renew(lost, 60)
        store.leases.release(lost)
        assert store.runs.holder("table:orders") == held
        store.leases.release(held)
        with pytest.raises(LeaseHeld):
            store.leases.renew(lost, 60)

    def test_a_lease_that_ended_is_had_again_while_nobody_took_it(self, store: SqlStore) -> None:
        ended = store.leases.acquire("table:orders", sample_holder("first"), 0)
        assert store.runs.holder("table:orders") is None
        again = store.leases.renew(ended, 60)
        assert (store.runs.holder("table:orders"), again.token) == (again, ended.token)

    def test_renewing_writes_down_what_the_holder_has_learned(self, store: SqlStore) -> None:
        lease = store.leases.acquire("table:orders", sample_holder(), 60)
        told = lease.model_copy(update={"holder": lease.holder.model_copy(update={"jvm_pid": 7, "jvm_started": "2"})})
        renewed = store.leases.renew(told, 120)
        assert renewed.expires_at > lease.expires_at
        assert store.runs.holder("table:orders") == renewed

    def test_a_dead_holders_lease_is_taken_over_once(self, store: SqlStore) -> None:
        lost = store.leases.acquire("table:orders", sample_holder("dead"), 60)
        taken = store.leases.take_over(lost, sample_holder("second"), 60)
        with pytest.raises(LeaseHeld) as refused:
            store.leases.take_over(lost, sample_holder("third"), 60)
        assert refused.value.attributes["lease"] == taken
        store.leases.release(taken)
        with pytest.raises(LeaseHeld):
            store.leases.take_over(taken, sample_holder("third"), 60)

    def test_a_token_never_repeats(self, store: SqlStore) -> None:
        granted: list[Lease] = []
        for _ in range(5):
            granted.append(store.leases.acquire("table:orders", sample_holder(), 60))
            store.leases.release(granted[-1])
        tokens = [lease.token for lease in granted]
        assert tokens == sorted(set(tokens))

    def test_four_processes_get_one_lease(self, store: SqlStore, url: str) -> None:
        tokens = [token for token in workers.race(workers.try_acquire, url, "table:orders") if token is not None]
        held = store.runs.holder("table:orders")
        assert held is not None
        assert tokens == [held.token]


class StoreContract(
    RunContract, LeaseContract, LedgerContract, HistoryContract, OpeningContract, SharingContract, StreamContract
):
    """All of it."""

    @pytest.fixture
    def url(self) -> str:
        """The address of a store that is not there yet. Subclasses override it."""
        raise NotImplementedError

    @pytest.fixture
    def raw(self) -> Callable[[str], None]:
        """Runs one statement in that database, past the store. Subclasses override it."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, url: str) -> Iterator[SqlStore]:
        with open_store(url) as store:
            yield store
