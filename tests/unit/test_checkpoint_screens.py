"""What people see of a checkpoint, outside of any project: 80 columns, no Spark, exit codes that scripts can use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from tests.unit.checkpoints import QUERY, new_checkpoint


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    new_checkpoint(tmp_path / "checkpoint", planned=1)
    new_checkpoint(tmp_path / "marked", planned=1, watermark=True)
    return tmp_path


def test_a_checkpoint_at_a_glance_says_what_a_restart_does(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["checkpoint", "inspect", "checkpoint"]) == 0
    lines = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    told = {line[0]: line[1] for line in lines if len(line) == 2}
    assert told["query"] == QUERY
    assert told["batches"] == "planned 5, committed 4"
    assert told["a"] == "restart runs batch 5 again, with the same offsets"
    assert told["position"] == "orders  0=50, 1=50"
    assert (told["watermark"], told["state"]) == ("none", "none")
    assert dispatch(["checkpoint", "inspect", "marked"]) == 0
    assert "watermark   2026-01-01 00:00:50Z" in capsys.readouterr().out

    assert dispatch(["checkpoint", "inspect", str(here / "checkpoint"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sources"] == [{"source": "0", "topics": {"orders": {"0": 50, "1": 50}}, "text": ""}]
    assert (document["next_batch"], document["repeats"], document["formats"]) == (
        5,
        True,
        {"offsets": "v1", "commits": "v1"},
    )


def test_history_tells_each_batch_and_its_records(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["checkpoint", "history", "checkpoint", "--last", "2"]) == 0
    out = capsys.readouterr().out
    rows = [line.split() for line in out.splitlines() if line.strip()[:1].isdigit()]
    assert [(row[0], row[3], row[4], row[-1]) for row in rows[:2]] == [
        ("4", "committed", "20", "0=50,1=50"),
        ("5", "planned", "20", "0=60,1=60"),
    ]
    assert "2 batches, 1 not committed" in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_verify_ends_with_3_when_damaged_and_names_the_way_out(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["checkpoint", "verify", "checkpoint"]) == 0
    assert "sound: the stream can go on" in capsys.readouterr().out
    (here / "checkpoint/offsets/5").write_text("")
    (here / "checkpoint/commits/4").write_text("v1\n{nope")
    assert dispatch(["checkpoint", "verify", "checkpoint"]) == 3
    out = capsys.readouterr().out
    assert "fails    commits/4" in out
    assert "Incomplete log file" in out
    assert "batch 3 is the newest that is whole" in out
    assert "backcast checkpoint rewind checkpoint --to-batch 3" in out


def test_a_watermark_without_state_is_no_sound_checkpoint_unless_somebody_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dispatch(["checkpoint", "verify", "marked"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "unknown state there is no state, though the query has a watermark" in out
    assert "if the query keeps no state, say so: --stateless; else restore a backup" in out
    assert dispatch(["checkpoint", "verify", "marked", "--stateless"]) == 0


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("v3\n{}\n{}", "offsets/4: offsets v3 is newer than v1, v2, which this version reads"),
        ("v1\n{nope", "offsets/4: it is not JSON"),
    ],
)
def test_a_position_that_cannot_be_read_is_not_called_the_start(
    here: Path, capsys: pytest.CaptureFixture[str], content: str, why: str
) -> None:
    (here / "marked/offsets/4").write_text(content)
    assert dispatch(["checkpoint", "inspect", "marked"]) == 3
    out = " ".join(capsys.readouterr().out.split())
    assert "position not known" in out
    assert f"unreadable {why}" in out
    assert dispatch(["checkpoint", "inspect", "marked", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["unreadable"] == [why]


def test_a_backup_is_compared_with_its_checkpoint_by_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["checkpoint", "backup", "checkpoint", "--to", "monday"]) == 0
    out = capsys.readouterr().out
    assert "at batch 4" in out
    assert "batch 5 is planned in it, and runs again" in out
    assert "backcast checkpoint restore checkpoint --from monday" in out
    assert dispatch(["checkpoint", "diff", "checkpoint", "monday"]) == 0
    assert "no difference" in capsys.readouterr().out
    assert dispatch(["checkpoint", "verify", "monday"]) == 0
    assert dispatch(["checkpoint", "backup", "checkpoint", "--to", "monday"]) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["inspect", "nowhere"], 2, "'nowhere' is no folder, and there is no project here"),
        (["inspect", "./nowhere"], 2, "nowhere does not exist"),
        (["inspect", "."], 2, "is no checkpoint"),
        (["inspect", "s3a://bucket/checkpoint"], 2, "only checkpoints on a disk of this machine"),
        (["rewind", "checkpoint", "--to-batch", "1"], 2, "there is no backcast.yaml"),
        (["verify"], 2, "requires an argument"),
    ],
)
def test_what_cannot_be_done_is_said(
    here: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert dispatch(["checkpoint", *arguments]) == code
    assert message in capsys.readouterr().err
