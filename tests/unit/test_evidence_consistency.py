"""What must hold between the documents of a run, each tried by a store in which it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from backcast.attest.bundle import bundle
from backcast.attest.step import attest
from backcast.attest.verify import verify
from backcast.attest.witness import confirmed
from backcast.errors import NotVerified
from backcast.model.approval import Person, as_data
from backcast.model.evidence import Verified, Witness, Witnesses
from backcast.model.lineage import commit_properties, witness_properties
from backcast.model.manifest import Manifest
from backcast.model.need import ApprovalNeed, Reach
from backcast.model.request import Kind
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.model.verdict import Check, Consequence, Review
from backcast.store import open_store
from backcast.store.sql import SqlStore
from backcast.testing.lives import accepted_run, published_run, staged_run, undone_run
from backcast.testing.samples import sample_manifest, sample_publication, sample_verdict


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        yield store


def checked(store: SqlStore, run: Run) -> Verified:
    return verify(bundle(attest(store.runs, run.run_id)))


def publish(store: SqlStore, run: Run, **changed: object) -> Run:
    """Published by somebody who does not look at verdicts."""
    run = store.runs.transition(run, RunState.PUBLISHING)
    publication = sample_publication(run.run_id).model_copy(update=changed)
    store.runs.save_publication(publication)
    return store.runs.transition(run, RunState.PUBLISHED, version=publication.version)


def test_a_publish_of_another_stage_than_the_accepted_one_is_found(store: SqlStore) -> None:
    with pytest.raises(NotVerified, match="without an accepted verdict"):
        checked(store, publish(store, accepted_run(store), staged="78"))


def test_a_publish_on_another_base_than_the_validated_one_is_found(store: SqlStore) -> None:
    with pytest.raises(NotVerified, match="without an accepted verdict"):
        checked(store, publish(store, accepted_run(store), base="1"))


@pytest.mark.parametrize("accepted", [True, False])
def test_a_publish_over_a_blocking_check_is_found_whatever_the_verdict_calls_itself(
    store: SqlStore, accepted: bool
) -> None:
    run = staged_run(store)
    bad = Check(name="unique", passed=False, detail="7 keys twice")
    store.runs.save_verdict(sample_verdict(run.run_id).model_copy(update={"checks": (bad,), "accepted": accepted}))
    with pytest.raises(NotVerified, match="without an accepted verdict"):
        checked(store, publish(store, store.runs.transition(run, RunState.ACCEPTED)))


def test_a_warning_does_not_stand_in_the_way(store: SqlStore) -> None:
    run = staged_run(store)
    warning = Check(name="drift", passed=False, detail="a little", consequence=Consequence.WARN)
    store.runs.save_verdict(sample_verdict(run.run_id).model_copy(update={"checks": (warning,)}))
    assert checked(store, publish(store, store.runs.transition(run, RunState.ACCEPTED))).published == ("81",)


GATE = Check(name="moved", passed=False, detail="breaches fall by 80 %", consequence=Consequence.REVIEW)


def reviewed(store: SqlStore, *, by: str | None, told: str | None = "cat") -> Run:
    """Accepted over a gate that asked for a look: by that person, as the verdict and as the history tell."""
    run = staged_run(store)
    verdict = sample_verdict(run.run_id).model_copy(update={"checks": (GATE,)})
    run = store.runs.transition(run, RunState.REVIEW)
    if by is not None:
        review = Review(by=by, how="os-user", role="director", comment="the fix", at=run.updated_at)
        verdict = verdict.model_copy(update={"review": review})
    store.runs.save_verdict(verdict)
    words = {} if told is None else {"by": told, "how": "os-user", "account": f"{told}@host", "role": "director"}
    return store.runs.transition(run, RunState.ACCEPTED, **words)


def test_a_publish_over_a_gate_that_a_person_accepted_is_verified(store: SqlStore) -> None:
    assert checked(store, publish(store, reviewed(store, by="cat"))).published == ("81",)


@pytest.mark.parametrize(
    ("by", "told"),
    [(None, "cat"), (None, None), ("cat", None), ("cat", "dan")],
    ids=["no review", "nobody", "nobody in the history", "another in the history"],
)
def test_a_publish_over_a_gate_that_nobody_accepted_is_found(store: SqlStore, by: str | None, told: str | None) -> None:
    with pytest.raises(NotVerified, match="without an accepted verdict"):
        checked(store, publish(store, reviewed(store, by=by, told=told)))


def test_a_run_that_was_published_twice_has_both_in_order(store: SqlStore) -> None:
    run = undone_run(store)
    run = store.runs.transition(run, RunState.PUBLISHING)
    again = sample_publication(run.run_id, generation=2).model_copy(update={"published_at": run.updated_at})
    store.runs.save_publication(again)
    run = store.runs.transition(run, RunState.PUBLISHED, version="82")
    assert checked(store, run).published == ("81", "819", "82")


def test_a_history_that_tells_of_other_versions_is_found(store: SqlStore) -> None:
    run = store.runs.transition(accepted_run(store), RunState.PUBLISHING)
    store.runs.save_publication(sample_publication(run.run_id))
    assert checked(store, run).state == "publishing", "its process may have died right here"
    with pytest.raises(NotVerified, match="of versions 99, not of 81"):
        checked(store, store.runs.transition(run, RunState.PUBLISHED, version="99"))


ANN, BOB = (Person(name=name, how="os-user", account=f"{name}@host") for name in ("ann", "bob"))


def asking(*roles: str, **changed: object) -> Manifest:
    reach = Reach(
        days=3, rows=1, cost=None, mode=PublishMode.REPLACE, kind=Kind.RESTATEMENT, tier=None, whole_table=False
    )
    need = ApprovalNeed(roles=roles, expires_seconds=86_400, reach=reach).model_copy(update=changed)
    return sample_manifest().model_copy(update={"approval": need})


def approve(
    store: SqlStore, run: Run, person: Person, role: str, manifest: str | None = None, hours: float = 24
) -> None:
    expires = run.created_at + timedelta(hours=hours)
    data = as_data(person, role, "fine", manifest or run.manifest_sha256, "0" * 64, expires)
    store.runs.record(run.run_id, "approval.given", **data)


def start(store: SqlStore, run: Run) -> Run:
    return store.runs.transition(store.runs.transition(run, RunState.APPROVED), RunState.RUNNING, base=None)


def test_a_run_that_started_with_every_role_it_asks_for_is_verified(store: SqlStore) -> None:
    run = store.runs.create(asking("lead", "owner"))
    approve(store, run, ANN, "lead")
    approve(store, run, BOB, "owner")
    assert "asked for: lead, owner" in " ".join(checked(store, start(store, run)).checks)
    twice = store.runs.create(asking("lead", "lead"))
    approve(store, twice, ANN, "lead")
    approve(store, twice, BOB, "lead")
    assert "asked for: lead, lead" in " ".join(checked(store, start(store, twice)).checks)


def test_a_run_that_started_without_a_role_or_with_one_account_in_two_is_found(store: SqlStore) -> None:
    alone = store.runs.create(asking("lead", "owner"))
    approve(store, alone, ANN, "lead")
    approve(store, alone, ANN, "owner")
    with pytest.raises(NotVerified, match="without the approval of lead"):
        checked(store, start(store, alone))
    four_eyes = store.runs.create(asking("lead", "lead"))
    approve(store, four_eyes, ANN, "lead")
    with pytest.raises(NotVerified, match="without the approval of lead"):
        checked(store, start(store, four_eyes))
    late = store.runs.create(asking("lead"))
    started = start(store, late)
    approve(store, late, ANN, "lead")
    with pytest.raises(NotVerified, match="without the approval of lead"):
        checked(store, started)


ANN_ELSEWHERE = Person(name="ann", how="token", account="ops@host")
ANN_BY_SUDO = Person(name="bob", how="os-user", account="bob@host", login="ann@host")


@pytest.mark.parametrize(
    ("second", "changed", "hours", "told"),
    [
        (ANN_ELSEWHERE, {}, 24, "without the approval of lead"),
        (ANN_BY_SUDO, {}, 24, "without the approval of lead"),
        (BOB, {"own_runs": False, "planned_by": ("bob",)}, 24, "without the approval of owner"),
        (BOB, {}, -2, "without the approval of owner"),
        (BOB, {"expires_seconds": -7200}, 24, "without the approval of lead, owner"),
    ],
    ids=["one person on two accounts", "one login on two accounts", "an own run", "expired", "expired by the plan"],
)
def test_an_approval_that_does_not_count_is_none_in_the_evidence_either(
    store: SqlStore, second: Person, changed: dict[str, object], hours: float, told: str
) -> None:
    run = store.runs.create(asking("lead", "owner", **changed))
    approve(store, run, ANN, "lead")
    approve(store, run, second, "owner", hours=hours)
    with pytest.raises(NotVerified, match=told):
        checked(store, start(store, run))


def test_an_approval_may_expire_between_the_question_and_the_record_of_the_start(store: SqlStore) -> None:
    run = store.runs.create(asking("lead"))
    approve(store, run, ANN, "lead", hours=-0.9)
    assert checked(store, start(store, run)).state == "running"


def test_a_publish_after_the_approval_expired_or_against_a_refusal_is_found(store: SqlStore) -> None:
    """By somebody who does not ask for approvals: the run began with them, and was published without."""
    run = store.runs.create(asking("lead"))
    approve(store, run, ANN, "lead")
    approved = accepted_run(store, asking("lead"))
    approve(store, run, ANN, "lead", hours=-2)
    assert checked(store, approved).state == "accepted", "one that expires meanwhile does not stop the run"
    with pytest.raises(NotVerified, match="was published without the approval of lead"):
        checked(store, publish(store, approved))
    refused = store.runs.create(asking("lead", "owner"))
    approve(store, refused, ANN, "lead")
    approve(store, refused, BOB, "owner")
    store.runs.record(refused.run_id, "approval.refused", **as_data(BOB, "owner", "no", refused.manifest_sha256, "0"))
    with pytest.raises(NotVerified, match="bob had rejected it"):
        checked(store, start(store, refused))


def test_an_approval_of_another_plan_is_found(store: SqlStore) -> None:
    run = store.runs.create(asking("lead"))
    approve(store, run, ANN, "lead", manifest="9" * 64)
    with pytest.raises(NotVerified, match="bound to another plan"):
        checked(store, run)


def test_the_table_confirms_a_history_and_finds_one_that_was_written_anew(store: SqlStore, tmp_path: Path) -> None:
    """Somebody who can change the store can chain a new history; the table's commit names the old one."""
    manifest = sample_manifest()
    run = published_run(store, manifest)
    events = store.runs.events(run.run_id)
    publishing = next(place for place, event in enumerate(events, 1) if event.name == "state.publishing")
    says = commit_properties(manifest, run.run_id, "publish") | witness_properties(events[:publishing])
    told = Witnesses(
        table="lake.db.orders", uuid="uuid-of-lake.db.orders", versions=(Witness(version="81", properties=says),)
    )
    archive = bundle(attest(store.runs, run.run_id))
    said, alone = confirmed(archive, verify(archive), told)
    assert f"event {publishing}" in said
    assert alone == "it knows of no other publish or undo of this run"
    with pytest.raises(NotVerified, match=r"made version 819 of .*, which the bundle does not tell"):
        confirmed(archive, verify(archive), told.model_copy(update={"others": ("819",)}))

    with open_store(f"sqlite:///{tmp_path}/rewritten.db", account="mallory@host-2") as other:
        forged = bundle(attest(other.runs, published_run(other, manifest).run_id))
    with pytest.raises(NotVerified, match="another history"):
        confirmed(forged, verify(forged), told)
    with pytest.raises(NotVerified, match="not the table"):
        confirmed(archive, verify(archive), told.model_copy(update={"uuid": "another"}))
    stranger = Witness(version="81", properties={**says, "backcast.run": "another"})
    with pytest.raises(NotVerified, match="not made by this run"):
        confirmed(archive, verify(archive), told.model_copy(update={"versions": (stranger,)}))
