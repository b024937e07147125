"""Reviews on a real store, and people who decide at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from backcast.errors import InvalidRequest, NotApproved, StateConflict
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.model.verdict import Check, Consequence, Verdict
from backcast.testing.samples import sample_verdict
from tests.unit.office import TWO, Office, open_office
from tests.unit.projects import GOOD


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return open_office(tmp_path, monkeypatch)


def reviewed(office: Office, *, block: bool = False, staged: str = "77") -> Run:
    """A run whose verdict asks a person to look."""
    run = office.moved(office.planned(), RunState.APPROVED, RunState.RUNNING, RunState.STAGED)
    checks = [Check(name="moved", passed=False, detail="breaches fall by 80 %", consequence=Consequence.REVIEW)]
    if block:
        checks.append(Check(name="rows", passed=False, detail="none"))
    verdict = sample_verdict(run.run_id, accepted=False, staged=staged)
    with office.door() as control:
        control.world.store().runs.save_verdict(verdict.model_copy(update={"checks": tuple(checks)}))
    return office.moved(run, RunState.REVIEW)


def newest(office: Office, run: Run) -> Verdict:
    with office.door() as control:
        verdict = control.world.reader().verdict(run.run_id)
    assert verdict is not None
    return verdict


def test_a_review_is_accepted_with_a_comment_by_somebody_who_may(office: Office) -> None:
    office.policy(f"{TWO}review: director\n")
    run = reviewed(office)
    with pytest.raises(InvalidRequest, match="what did you look at"):
        office.approve("dan", run)
    with pytest.raises(NotApproved, match=r"bob .* holds no role"):
        office.approve("bob", run, comment="fine")
    assert not newest(office, run).accepted
    after = office.approve("dan", run, comment="the fix explains it")
    assert after.state is RunState.ACCEPTED
    verdict = newest(office, run)
    assert verdict.accepted
    assert verdict.review is not None
    assert (verdict.review.by, verdict.review.role, verdict.review.how) == ("dan", "director", "os-user")
    assert isinstance(office.refused(after, "publish"), NotApproved)


def test_without_a_policy_anybody_may_accept_a_review(office: Office) -> None:
    (office.root / "backcast.yaml").write_text(GOOD)
    run = reviewed(office)
    assert office.approve("mallory", run, comment="looked at the diff").state is RunState.ACCEPTED
    assert newest(office, run).accepted


def test_a_review_that_is_rejected_cannot_be_published(office: Office) -> None:
    run = reviewed(office)
    with office.door("cat") as control:
        assert control.reject(run.run_id, comment="no").state is RunState.REJECTED
    assert not newest(office, run).accepted
    refused = office.refused(run, "publish")
    assert refused.hint


def test_who_is_rejected_by_a_person_is_not_judged_again(office: Office) -> None:
    """Another verdict would bring the run back under review, where the next person may accept it."""
    run = reviewed(office)
    with office.door("cat") as control:
        control.reject(run.run_id, comment="no")
        with pytest.raises(NotApproved, match="rejected by cat as data-lead: no"):
            control.validate(run.run_id)
        with pytest.raises(StateConflict):
            control.approve(run.run_id, comment="yes")


@pytest.mark.parametrize(("block", "staged"), [(True, "77"), (False, "78")])
def test_nobody_can_accept_a_failed_check_or_a_stage_that_moved(office: Office, block: bool, staged: str) -> None:
    run = reviewed(office, block=block, staged=staged)
    with pytest.raises(StateConflict):
        office.approve("cat", run, comment="let it pass")
    assert not newest(office, run).accepted


def test_two_who_approve_at_once_make_one_approved_run(office: Office) -> None:
    office.policy("matrix: [{needs: [manager]}]\n")
    for days in range(3, 11):
        run = office.planned(days=days)
        with office.door("bob") as one, office.door("bob") as other, ThreadPoolExecutor(2) as pool:
            calls = [pool.submit(each.approve, run.run_id) for each in (one, other)]
            assert {call.result().state for call in calls} == {RunState.APPROVED}


def test_of_a_yes_and_a_no_at_once_the_no_stays(office: Office) -> None:
    office.policy("matrix: [{needs: [manager]}]\n")
    for days in range(3, 11):
        run = office.planned(days=days)
        with office.door("bob") as one, office.door("bob") as other, ThreadPoolExecutor(2) as pool:
            yes = pool.submit(one.approve, run.run_id)
            no = pool.submit(other.reject, run.run_id, role="manager", comment="no")
            said = [call.exception() for call in (yes, no)]
        with office.door() as control:
            after = control.status(run.run_id).run
        assert all(error is None or isinstance(error, StateConflict) for error in said)
        # A no that met the very moment of the yes says so, and can be repeated.
        assert (after.state is RunState.CANCELLED) is (said[1] is None)
        if said[1] is not None:
            assert after.state is RunState.APPROVED
