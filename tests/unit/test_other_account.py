"""A second person is a second OS account: told by the uid of a real process, whatever its variables say."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from backcast.model.policy import need_under, reach_of
from backcast.model.states import RunState
from backcast.project.account import os_user
from backcast.project.api import open_project
from backcast.testing.samples import sample_manifest
from tests.unit.projects import GOOD, project, write

OTHER = "nobody"
pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A project that both accounts can write to."""
    folder = Path(tempfile.mkdtemp(prefix="backcast-shared-"))
    project(folder, f"{GOOD}policy: policy.yaml\n")
    roles = f"{{manager: ['{os_user()}', {OTHER}], data-lead: ['{os_user()}', {OTHER}]}}"
    write(folder, {"policy.yaml": f"roles: {roles}\nmatrix: [{{needs: [manager, data-lead]}}]\n"})
    yield folder
    shutil.rmtree(folder)


def open_to_all(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)


AS_SOMEBODY = """
import codecs, os, sys
from backcast.cli.dispatch import dispatch
os.umask(0)
uid, login, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
# All that the command loads, loaded while the files of this Python can be read.
dispatch(["status", arguments[1], *arguments[-2:]])
import backcast.cli.commands.approve, backcast.cli.render.status, backcast.cli.render.error
codecs.lookup("utf-16be")
open("/proc/self/loginuid", "w").write(login)
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
sys.exit(dispatch(arguments))
"""


def typed(account: str, login: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of that account, whose variables say that it is root, after a login as somebody."""
    uids = [str(pwd.getpwnam(name).pw_uid) for name in (account, login)]
    return subprocess.run(
        [sys.executable, "-P", "-c", AS_SOMEBODY, *uids, *arguments, "--project", str(folder)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "USER": "root", "LOGNAME": "root"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_two_accounts_are_two_people_and_one_is_not(shared: Path) -> None:
    control = open_project(shared)
    policy = control.world.policy()
    assert policy is not None
    manifest = sample_manifest(dataset="daily")
    need = need_under(policy, reach_of(manifest, None, whole_table=False), (os_user(),))
    run = control.world.store().runs.create(manifest.model_copy(update={"approval": need}))
    control.approve(run.run_id, role="manager")
    control.world.close()
    open_to_all(shared)

    again = typed(os_user(), os_user(), shared, "approve", run.run_id, "--as", "data-lead")
    assert again.returncode == 3, again
    assert "must be another person" in again.stderr
    by_sudo = typed(OTHER, os_user(), shared, "approve", run.run_id, "--as", "data-lead")
    assert by_sudo.returncode == 3, by_sudo
    assert f"from the OS account {os_user()} that {OTHER} uses too" in by_sudo.stderr
    other = typed(OTHER, OTHER, shared, "approve", run.run_id, "--as", "data-lead", "--comment", "me too")
    assert other.returncode == 0, other.stderr

    control = open_project(shared)
    status = control.status(run.run_id)
    control.world.close()
    assert status.run.state is RunState.APPROVED
    assert status.approvals is not None
    assert [(each.by, each.account, each.how) for each in status.approvals.given] == [
        (os_user(), os_user(), "os-user"),
        (OTHER, OTHER, "os-user"),
    ]
