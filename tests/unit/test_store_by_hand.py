"""A store that somebody edits by hand: no evidence is made of it, and nothing starts or is published because of it."""

from __future__ import annotations

import sqlite3
from datetime import timedelta
from pathlib import Path

import pytest

from backcast.approving import require_approval
from backcast.attest.bundle import bundle
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.errors import NotApproved, NotVerified
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.store import open_store
from backcast.testing.lives import accepted_run, published_run, staged_run
from backcast.testing.samples import sample_verdict
from tests.unit.office import Office, open_office
from tests.unit.projects import GOOD


def by_hand(folder: Path, statement: str) -> None:
    with sqlite3.connect(folder / "store.db") as connection:
        assert connection.execute(statement).rowcount, "nothing was changed"
    connection.close()


def staged_as_recorded(folder: Path) -> Run:
    """Accepted, and the history tells how many rows its chunks hold, as `run` writes it."""
    with open_store(f"sqlite:///{folder}/store.db") as store:
        run = accepted_run(store)
        run = store.runs.transition(run, RunState.RUNNING)
        rows = sum(each.output_rows or 0 for each in store.runs.chunks(run.run_id))
        run = store.runs.transition(run, RunState.STAGED, staged="77", rows=rows)
        assert verify(bundle(attest(store.runs, run.run_id))).state == "staged"
        return run


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("update chunks set output_rows = 999 where ordinal = 0", "the chunks hold"),
        ("update chunks set state = 'pending' where ordinal = 0", "not staged"),
        ("delete from chunks where ordinal = 0", "chunks of the plan"),
        ("update runs set reason = 'all is well'", "another request"),
        ("update runs set ticket = 'DATA-0'", "another request"),
        ("update runs set requested_by = 'the ceo'", "another request"),
        ("update runs set detail = 'all is well'", "another state"),
        ("update runs set superseded_by = 'daily-1'", "another successor"),
    ],
)
def test_what_contradicts_the_plan_or_the_history_gives_no_evidence(tmp_path: Path, statement: str, told: str) -> None:
    run = staged_as_recorded(tmp_path)
    by_hand(tmp_path, statement)
    with open_store(f"sqlite:///{tmp_path}/store.db") as store, pytest.raises(NotVerified, match=told):
        bundle(attest(store.runs, run.run_id))


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return open_office(tmp_path, monkeypatch)


def store_of(office: Office) -> Path:
    (file,) = office.root.rglob("store.db")
    return file.parent


def test_last_events_that_were_taken_out_are_missed(office: Office) -> None:
    """The chain of what is left is sound; the store still knows how long it was."""
    with office.door() as control:
        run = published_run(control.world.store())
        control.note(run.run_id, "the shops complained")
        assert control.evidence(run.run_id).events[-1].name == "note"
    by_hand(store_of(office), "delete from events where name = 'note'")
    with office.door() as control, pytest.raises(NotVerified, match="removed"):
        control.evidence(run.run_id)


def test_an_approval_that_was_written_into_the_store_counts_for_nothing(office: Office) -> None:
    run = office.planned()
    office.approve("bob", run, "manager")
    forged = (
        "insert into events select run_id, number + 1, at, name, "
        "replace(replace(data, 'manager', 'data-lead'), 'bob', 'cat'), sha256, sha256, account "
        "from events where name = 'approval.given'"
    )
    by_hand(store_of(office), forged)
    with office.door() as control:
        assert control.approvals(run.run_id).complete, "it looks like one"
    refused = office.refused(run)
    assert isinstance(refused, NotApproved)
    assert "changed by another hand" in refused.message


def test_an_expired_approval_does_not_count_again_because_somebody_wrote_publishing(office: Office) -> None:
    """Only a publish that was under way may be finished late; the history tells whether it was."""
    office.policy("matrix: [{needs: [manager]}]\nexpires: 2h\n")
    until = (RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED)
    run = office.moved(office.approve("bob", office.planned()), *until)
    by_hand(store_of(office), "update runs set state = 'publishing'")
    with (
        office.door(later=timedelta(hours=3)) as control,
        pytest.raises(NotApproved, match="bob's approval has expired"),
    ):
        require_approval(control.world, control.status(run.run_id).run)


@pytest.mark.parametrize(
    ("accepted", "statement", "told"),
    [
        (False, "update runs set state = 'accepted'", "accepted in the store and rejected in its history"),
        (True, "update verdicts set document = replace(document, '900', '9')", "another verdict than its"),
        (True, "update events set data = replace(data, '77', '78')", "changed by another hand"),
    ],
)
def test_what_the_history_does_not_tell_is_not_published(
    office: Office, accepted: bool, statement: str, told: str
) -> None:
    """Without a policy, too: nobody has to agree, and what was judged is still what the history says."""
    (office.root / "backcast.yaml").write_text(GOOD)
    with office.door() as control:
        store = control.world.store()
        run = staged_run(store)
        store.runs.save_verdict(sample_verdict(run.run_id, accepted=accepted))
        store.runs.transition(run, RunState.ACCEPTED if accepted else RunState.REJECTED)
    by_hand(store_of(office), statement)
    refused = office.refused(run, "publish")
    assert isinstance(refused, NotVerified)
    assert told in refused.message
