"""Approvals on a real store, without Spark: who may say what to which run, and what nobody can get around."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from backcast.approving import need_of, require_approval
from backcast.cli.dispatch import dispatch
from backcast.errors import InvalidRequest, NotApproved, Refused, StateConflict
from backcast.model.archiving import REFERENCE
from backcast.model.manifest import LivePolicy, Manifest
from backcast.model.states import RunState
from backcast.project.tokens import token_hash
from backcast.run.spending import FAILED_CHUNKS
from backcast.testing.samples import sample_manifest, sample_verdict
from tests.unit.office import TWO, Office, open_office
from tests.unit.projects import GOOD


@pytest.fixture
def office(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return open_office(tmp_path, monkeypatch)


def test_a_run_waits_until_everybody_agreed(office: Office) -> None:
    run = office.planned()
    error = office.refused(run)
    assert isinstance(error, NotApproved)
    assert error.exit_code == 3
    assert f"backcast approve {run.run_id} --as manager" in error.hint
    assert office.approve("bob", run, "manager").state is RunState.PLANNED
    assert "data-lead must agree" in office.refused(run).message
    after = office.approve("cat", run, comment="looked at the plan")
    assert (after.state, after.detail) == (RunState.APPROVED, "approved by bob as manager, cat as data-lead")


def test_what_was_said_stands_in_the_history_of_the_run(office: Office) -> None:
    run = office.planned()
    office.approve("bob", run, "manager", comment="fine")
    with office.door() as control:
        event = control.logs(run.run_id)[-1]
        policy = control.world.policy()
    assert policy is not None
    assert event.name == "approval.given"
    told = {key: event.data[key] for key in ("role", "by", "how", "account", "comment", "manifest", "policy")}
    assert told == {
        "role": "manager",
        "by": "bob",
        "how": "os-user",
        "account": "bob",
        "comment": "fine",
        "manifest": run.manifest_sha256,
        "policy": policy.sha256(),
    }


def test_one_picks_only_among_the_roles_that_one_holds(office: Office) -> None:
    run = office.planned()
    with pytest.raises(NotApproved, match=r"ann .* does not hold the role 'manager'"):
        office.approve("ann", run, "manager")
    with pytest.raises(NotApproved, match=r"mallory .* holds no role"):
        office.approve("mallory", run)
    with pytest.raises(NotApproved, match="nobody is asked to agree as team-lead"):
        office.approve("ann", run, "team-lead")
    with pytest.raises(InvalidRequest, match="several roles that are asked for: data-lead, manager"):
        office.approve("bob", run)
    assert office.approve("ann", run).state is RunState.PLANNED


def test_one_person_cannot_be_two(office: Office) -> None:
    run = office.planned()
    office.approve("bob", run, "manager")
    with pytest.raises(NotApproved, match="bob has approved it as manager: data-lead must be another person"):
        office.approve("bob", run, "data-lead")
    assert office.approve("bob", run, "manager").state is RunState.PLANNED


def test_one_account_cannot_be_two_people_with_two_tokens(office: Office) -> None:
    people = "".join(f"  {name}: {{token: '{token_hash(name * 9)}'}}\n" for name in ("bob", "cat"))
    office.policy(f"{TWO}people:\n{people}")
    run = office.planned()
    office.monkeypatch.setenv("BACKCAST_TOKEN", "bob" * 9)
    office.approve("shared", run, "manager")
    office.monkeypatch.setenv("BACKCAST_TOKEN", "cat" * 9)
    with pytest.raises(NotApproved, match="from the OS account shared that cat uses too"):
        office.approve("shared", run)
    assert office.approve("hers", run).state is RunState.APPROVED


def test_two_people_of_one_role_must_both_agree_where_the_policy_names_it_twice(office: Office) -> None:
    office.policy("matrix: [{needs: [data-lead, data-lead]}, {needs: [data-lead]}]\n")
    run = office.planned()
    office.approve("ann", run, "data-lead")
    assert office.approve("ann", run, "data-lead").state is RunState.PLANNED
    assert "not approved: data-lead must agree" in office.refused(run).message
    assert office.approve("cat", run).state is RunState.APPROVED
    office.policy("matrix: [{needs: [data-lead]}]\n")
    assert office.refused(office.planned()).hint.count("data-lead") == 1
    weak = office.planned()
    office.policy("matrix: [{needs: [data-lead, data-lead]}]\n")
    office.approve("ann", weak, "data-lead")
    assert office.refused(weak).message.endswith("data-lead must agree")


def test_own_runs_are_approved_by_others_where_the_policy_says_so(office: Office) -> None:
    own = office.planned(by="bob")
    office.policy(f"{TWO}own_runs: false\n")
    with pytest.raises(NotApproved, match="bob planned"):
        office.approve("bob", own, "manager")
    office.policy(TWO)
    assert office.approve("bob", own, "manager").state is RunState.PLANNED


def test_an_approval_that_expired_starts_and_publishes_nothing(office: Office) -> None:
    office.policy("matrix: [{needs: [manager]}]\nexpires: 2h\n")
    run = office.approve("bob", office.planned())
    assert run.state is RunState.APPROVED
    assert "bob's approval has expired" in office.refused(run, hours=3).message
    run = office.moved(run, RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED)
    assert isinstance(office.refused(run, "publish", hours=3), NotApproved)
    with office.door(later=timedelta(hours=1)) as control:
        assert not control.must_confirm(run.run_id)
    assert office.approve("bob", run, hours=3).state is RunState.ACCEPTED
    with office.door(later=timedelta(hours=4)) as control:
        assert control.approvals(run.run_id).missing == ("manager",)
        assert control.approvals(run.run_id).expired[0].by == "bob"


def test_a_policy_that_became_stricter_counts_and_one_that_became_weaker_does_not(office: Office) -> None:
    office.policy("matrix: [{needs: [manager]}]\n")
    run = office.approve("bob", office.planned())
    assert run.state is RunState.APPROVED
    office.policy("matrix: [{needs: [manager, director]}]\n")
    assert "director must agree" in office.refused(run).message
    assert office.approve("dan", run).state is RunState.APPROVED
    other = office.planned(days=4)
    office.policy("matrix: []\n")
    assert "manager and director must agree" in office.refused(other).message
    assert office.approve("bob", other, "manager").state is RunState.PLANNED
    (office.root / "backcast.yaml").write_text(GOOD)
    assert "director must agree" in office.refused(other).message
    with pytest.raises(NotApproved, match="the project has no policy any more"):
        office.approve("dan", other)


def test_who_no_longer_holds_the_role_does_not_count_any_more(office: Office) -> None:
    """Also not who held it only for a moment, in a policy file that was put back afterwards."""
    office.policy("matrix: [{needs: [manager]}]\n", roles="{manager: [bob, mallory]}")
    run = office.approve("mallory", office.planned())
    assert run.state is RunState.APPROVED
    office.policy("matrix: [{needs: [manager]}]\n", roles="{manager: [bob]}")
    assert "mallory no longer holds that role" in office.refused(run).message
    with office.door() as control:
        status = control.status(run.run_id)
    assert status.because == "approved, but approvals no longer count; manager must agree first"
    run = office.moved(office.approve("bob", run), RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED)
    office.policy("matrix: [{needs: [manager]}]\n", roles="{manager: [cat]}")
    assert "bob no longer holds that role" in office.refused(run, "publish").message
    office.moved(run, RunState.PUBLISHING, RunState.PUBLISHED)
    with office.door() as control:
        found = control.status(run.run_id).approvals
    assert found is not None
    assert (found.missing, found.lapsed) == ((), ()), "they held it when it was published"


def test_more_rows_than_were_expected_need_who_would_have_been_needed(office: Office) -> None:
    """What was approved is a run of that size: live rows, or a wrong estimate, do not make it another one."""
    office.policy("matrix: [{needs: [manager]}, {when: {rows: '> 5000'}, needs: [director]}]\n")
    run = office.approve("bob", office.planned())
    assert run.state is RunState.APPROVED
    run = office.moved(run, RunState.RUNNING, RunState.STAGED)
    with office.door() as control:
        control.world.store().runs.save_verdict(sample_verdict(run.run_id).model_copy(update={"rows": 5001}))
    run = office.moved(run, RunState.ACCEPTED)
    assert "director must agree" in office.refused(run, "publish").message
    assert office.approve("dan", run).state is RunState.ACCEPTED
    with office.door() as control:
        assert control.approvals(run.run_id).complete


def test_more_time_than_was_expected_needs_who_would_have_been_needed_for_its_cost(office: Office) -> None:
    """However it was spent: on live rows that made chunks be computed again, or on jobs that failed."""
    office.policy(
        "matrix: [{needs: [manager]}, {when: {cost: '> 100'}, needs: [director]}]\n"
        "prices: {per_executor_hour: 3600, currency: EUR}\n"
    )
    run = office.approve("bob", office.planned(cost=10.0))
    assert run.state is RunState.APPROVED
    run = office.moved(run, RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED)
    for seconds, complete in ((99.0, True), (2.0, False)):
        with office.door() as control:
            control.world.store().runs.record(run.run_id, FAILED_CHUNKS, seconds=seconds)
            assert control.approvals(run.run_id).complete is complete
    assert "director must agree" in office.refused(run, "publish").message
    assert office.approve("dan", run).state is RunState.ACCEPTED
    with office.door() as control:
        assert control.approvals(run.run_id).complete


def test_the_tier_of_a_dataset_decides_who_is_asked_also_when_it_was_raised_after_the_plan(office: Office) -> None:
    office.policy("matrix: [{when: {tier: gold}, needs: [director]}]\n")
    run = office.planned()
    with office.door() as control:
        assert control.approvals(run.run_id).complete
    yaml = office.root / "backcast.yaml"
    yaml.write_text(yaml.read_text().replace("    key: [day, shop]\n", "    key: [day, shop]\n    tier: gold\n"))
    assert "director must agree" in office.refused(run).message
    yaml.write_text(yaml.read_text().replace("tier: gold", "tier: silver"))
    with office.door() as control:
        assert control.approvals(run.run_id).complete


def test_a_plan_from_before_the_policy_is_held_to_it(office: Office) -> None:
    run = office.planned(with_policy=False)
    assert "manager and data-lead must agree" in office.refused(run).message
    office.policy("")
    assert "team-lead and director must agree" in office.refused(run).message, "it may be the whole table"


def test_a_state_that_somebody_wrote_into_the_store_is_not_an_approval(office: Office) -> None:
    run = office.planned()
    engine = create_engine(f"sqlite:///{office.root}/.backcast/store.db")
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET state = 'accepted'"))
    engine.dispose()
    assert isinstance(office.refused(run, "publish"), NotApproved)
    engine = create_engine(f"sqlite:///{office.root}/.backcast/store.db")
    with engine.begin() as connection:
        connection.execute(text("UPDATE runs SET state = 'approved'"))
    engine.dispose()
    assert isinstance(office.refused(run), NotApproved)


def test_a_publish_that_was_interrupted_may_be_finished_but_not_made_up(office: Office) -> None:
    office.policy("matrix: [{needs: [manager]}]\n")
    until = (RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED, RunState.PUBLISHING)
    agreed = office.moved(office.approve("bob", office.planned()), *until)
    made_up = office.moved(office.planned(days=4), RunState.APPROVED, *until)
    office.policy("matrix: [{needs: [manager, director]}]\n")
    with office.door(later=timedelta(days=30)) as control:
        assert require_approval(control.world, agreed).complete
        with pytest.raises(NotApproved):
            require_approval(control.world, made_up)


def test_where_the_policy_wants_it_a_run_is_confirmed(office: Office) -> None:
    office.policy("matrix: [{confirm: true}]\n")
    run = office.planned()
    error = office.refused(run)
    assert isinstance(error, InvalidRequest)
    assert error.hint == "add --yes"
    with office.door() as control:
        assert control.must_confirm(run.run_id)
    accepted = office.moved(run, RunState.APPROVED, RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED)
    assert isinstance(office.refused(accepted, "publish"), InvalidRequest)


class Terminal(io.StringIO):
    """A person at the keyboard who types this."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", ["run", "publish"])
def test_at_a_terminal_it_asks_and_elsewhere_it_wants_yes(
    office: Office, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """No Spark is started in any of these."""
    office.policy("matrix: [{confirm: true}]\n")
    run = office.planned()
    if command == "publish":
        run = office.moved(run, RunState.APPROVED, RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED)
    typed = [command, run.run_id, "--project", str(office.root)]
    office.monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert dispatch(typed) == InvalidRequest.exit_code
    assert "add --yes" in capsys.readouterr().err
    office.monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert dispatch(typed) == 0
    assert "nothing was changed" in capsys.readouterr().err


def test_nobody_approves_what_needs_nobody(office: Office) -> None:
    office.policy("matrix: [{when: {days: '> 100'}, needs: [manager]}]\n")
    with pytest.raises(Refused, match="needs nobody's approval"):
        office.approve("bob", office.planned())


def test_a_rejected_run_is_given_up_and_stays_so(office: Office) -> None:
    run = office.approve("bob", office.planned(), "manager")
    with office.door("cat") as control:
        with pytest.raises(InvalidRequest, match="why"):
            control.reject(run.run_id, comment=" ")
        ended = control.reject(run.run_id, comment="April is closed")
        assert (ended.state, ended.detail) == (RunState.CANCELLED, "rejected by cat as data-lead: April is closed")
        assert control.reject(run.run_id, comment="April is closed") == ended
        assert "approval.refused" in [event.name for event in control.logs(run.run_id)]
    with pytest.raises(StateConflict, match="cancelled"):
        office.approve("cat", run)
    other = office.planned(days=4)
    with office.door("mallory") as control, pytest.raises(NotApproved):
        control.reject(other.run_id, comment="no")


def test_a_run_that_has_started_is_cancelled_and_not_rejected(office: Office) -> None:
    run = office.moved(office.planned(), RunState.APPROVED, RunState.RUNNING)
    with office.door("bob") as control, pytest.raises(StateConflict, match="it has started"):
        control.reject(run.run_id, role="manager", comment="no")


def test_status_says_who_agreed_and_what_to_type(office: Office) -> None:
    run = office.approve("bob", office.planned(), "manager")
    with office.door() as control:
        status = control.status(run.run_id)
    assert status.approvals is not None
    assert status.next_command == f"backcast approve {run.run_id} --as data-lead"
    assert status.because == "planned; data-lead must agree first"
    assert [each.by for each in status.approvals.given] == ["bob"]


def test_an_amendment_is_part_of_what_was_approved(office: Office) -> None:
    """It stages chunks again under the same manifest; another live policy would be another manifest."""
    run = office.approve("cat", office.approve("bob", office.planned(), "manager"))
    manifest: Manifest = sample_manifest(dataset="daily")
    settings = manifest.settings.model_copy(update={"live_policy": LivePolicy.RESTAGE})
    looser = manifest.model_copy(update={"settings": settings})
    assert looser.sha256() != manifest.sha256()
    run = office.moved(run, RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED, RunState.RUNNING, RunState.STAGED)
    run = office.moved(run, RunState.ACCEPTED)
    with office.door() as control:
        assert control.approvals(run.run_id).complete


def test_a_copy_of_a_topic_into_its_archive_asks_nobody(office: Office) -> None:
    manifest = sample_manifest(dataset="daily")
    copying = manifest.model_copy(update={"code": manifest.code.model_copy(update={"transform": REFERENCE})})
    with office.door() as control:
        assert need_of(control.world, manifest) is not None
        assert need_of(control.world, copying) is None
