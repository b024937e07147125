"""Who is told of an approved run, and by when: in the plan, in the status and on the page of the run."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from backcast.attest.step import attest
from backcast.cli.render.plan import render_plan
from backcast.cli.render.status import render_status
from backcast.model.approval import Approvals, Person, as_data
from backcast.model.need import ApprovalNeed, Reach
from backcast.model.request import Kind
from backcast.model.states import RunState
from backcast.model.table import PublishMode
from backcast.page.run import run_page
from backcast.page.run_checks import moment
from backcast.store import open_store
from backcast.testing.samples import sample_manifest
from tests.unit.cli_screens import NOW, sample_plan, sample_status, shown

REACH = Reach(days=3, rows=1, cost=None, mode=PublishMode.REPLACE, kind=Kind.RESTATEMENT, tier=None, whole_table=False)
NEED = ApprovalNeed(roles=("lead",), expires_seconds=86_400, reach=REACH, notify=("finance",), within_seconds=4 * 3600)


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_plan_says_within_which_time() -> None:
    assert "notify finance within 4 h of the approval" in flat(shown(render_plan(sample_plan(approval=NEED))))
    whenever = NEED.model_copy(update={"within_seconds": None})
    assert "notify finance before it is published" in flat(shown(render_plan(sample_plan(approval=whenever))))


def test_the_status_says_by_which_moment_also_after_the_publish() -> None:
    found = Approvals(needed=("lead",), notify=("finance",), notify_by=NOW + timedelta(hours=4))
    for state in (RunState.APPROVED, RunState.PUBLISHED):
        page = flat(shown(render_status(sample_status(state, "###", approvals=found), NOW)))
        assert f"notify finance by {NOW + timedelta(hours=4):%Y-%m-%d %H:%M} UTC" in page


def test_the_page_of_a_run_says_who_was_to_be_told_and_by_when(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/store.db") as store:
        run = store.runs.create(sample_manifest().model_copy(update={"approval": NEED}))
        assert "To be notified: finance, within 4 h of the approval." in run_page(attest(store.runs, run.run_id))
        ann = Person(name="ann", how="os-user", account="ann@host")
        data = as_data(ann, "lead", "fine", run.manifest_sha256, "0" * 64, run.created_at + timedelta(days=1))
        store.runs.record(run.run_id, "approval.given", **data)
        given = store.runs.events(run.run_id)[-1].at
        assert f"To be notified: finance, by {moment(given + timedelta(hours=4))}." in run_page(
            attest(store.runs, run.run_id)
        )
        nobody = store.runs.create(sample_manifest(reason="nobody is asked"))
        assert "To be notified" not in run_page(attest(store.runs, nobody.run_id))
