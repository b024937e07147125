"""The demo tells the truth: it ends with 0 only when every claim it makes was proven."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backcast.demo.narrator import ClaimBroken, Narrator
from tests.cheap import cheap_java

CLAIMS = 21
"""11 about the table, 10 about the topic: a story that leaves some out is another one."""


def test_the_story_ends_well_and_leaves_only_its_own_folder(tmp_path: Path) -> None:
    command, environment = [sys.executable, "-m", "backcast.demo"], {**os.environ, **cheap_java()}
    told = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=580, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    tally = told.stdout.partition("The tally")[2]
    assert "rows lost:                        0\n" in tally
    assert "rows doubled:                     0\n" in tally
    assert "half-way states seen by a reader: 0 in " in tally
    assert ", every one accounted for\n" in tally
    assert f"claims proven:                    {CLAIMS} in " in tally
    assert told.stdout.count("  [proven] ") == CLAIMS
    assert "kill -9" in told.stdout
    assert [path.name for path in tmp_path.iterdir()] == [".demo"]


def test_a_claim_that_does_not_hold_is_not_made(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ClaimBroken, match="nothing was lost: 3 rows"):
        Narrator().prove("nothing was lost", False, "3 rows")
    assert capsys.readouterr().out == ""
