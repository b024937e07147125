"""A commit is named only when git can say what differs from it."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
