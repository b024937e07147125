"""A commit is named only when git can say what differs from it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from backcast.model.document import canonical
from backcast.project.identity import git_state


def test_a_tree_that_git_cannot_compare_has_no_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    (tmp_path / "a.py").write_text("x = 1\n")
    git("add", ".")
    git("commit", "-m", "first")
    (tmp_path / "a.py").write_text("x = 2\n")
    commit, dirty = git_state(tmp_path)
    assert commit is not None
    assert dirty == ("a.py",)
    (tmp_path / ".git" / "index").write_bytes(b"damaged")
    assert git_state(tmp_path) == (None, ())


def test_a_file_whose_name_is_no_text_can_be_named_in_a_plan(tmp_path: Path) -> None:
    subprocess.run(["git", "init"], cwd=tmp_path, check=True, capture_output=True)
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    command = ["git", *identity, "commit", "--allow-empty", "-m", "first"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).touch()
    _, dirty = git_state(tmp_path)
    assert canonical(list(dirty)) == '["\ufffd.txt"]'.encode()
