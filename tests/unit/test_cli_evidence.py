"""The commands about evidence, typed: files, keys, exit codes, and what people see."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.cli.spark_child import child_environ
from backcast.store import open_store
from backcast.testing.lives import published_run
from backcast.testing.samples import sample_manifest
from tests.unit.projects import write

YAML = """\
name: shop
store: store.db
catalogs:
  lake: {type: jdbc, uri: "jdbc:sqlite:.lake/catalog.db", warehouse: .lake/warehouse}
datasets:
  orders: {table: lake.db.orders, time: {column: day, kind: date}}
"""


@pytest.fixture
def run_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A published run, in a project that is the folder one stands in."""
    write(tmp_path / "shop", {"backcast.yaml": YAML})
    monkeypatch.chdir(tmp_path / "shop")
    monkeypatch.delenv("BACKCAST_SIGNING_KEY", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    with open_store(f"sqlite:///{tmp_path}/shop/store.db", account="ana@host-1") as store:
        return published_run(store, sample_manifest()).run_id


def typed(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = dispatch(line.split())
    out, err = capsys.readouterr()
    return code, out, err


def test_a_bundle_is_signed_here_and_verified_elsewhere(
    run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("keys new --out keys", capsys)[0] == 0
    private = Path("keys/backcast-signing.key")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    code, out, _ = typed(f"evidence {run_id[:8]} --out run.zip --key {private}", capsys)
    assert (code, "NOT SIGNED" in out) == (0, False)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("run.zip", "keys/backcast-signing.pub"):
        (elsewhere / Path(name).name).write_bytes(Path(name).read_bytes())
    monkeypatch.chdir(elsewhere)
    code, out, _ = typed("verify run.zip --key backcast-signing.pub --json", capsys)
    found = json.loads(out)
    assert (code, found["run_id"], found["signature"]) == (0, run_id, "valid")
    changed = bytearray(Path("run.zip").read_bytes())
    changed[5000] ^= 1
    Path("run.zip").write_bytes(changed)
    code, out, err = typed("verify run.zip --key backcast-signing.pub", capsys)
    assert (code, out) == (3, "")
    assert "evidence.not-verified" in err


def test_what_is_not_signed_or_not_checked_is_said_loudly(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "NOT SIGNED" in typed(f"evidence {run_id} --out plain.zip", capsys)[1]
    code, out, _ = typed("verify plain.zip", capsys)
    assert code == 0
    assert "NOT SIGNED" in out
    assert "verified" not in out
    typed("keys new --out .", capsys)
    assert typed("verify plain.zip --key backcast-signing.pub", capsys)[0] == 3
    typed(f"evidence {run_id} --out signed.zip --key backcast-signing.key", capsys)
    code, out, _ = typed("verify signed.zip", capsys)
    assert code == 0
    assert "SIGNATURE NOT CHECKED" in out


def test_that_nobody_compared_rows_is_said_with_the_command_that_does(
    run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = typed(f"evidence {run_id} --out bundle.zip", capsys)
    told = " ".join(out.split())
    assert "changed nobody compared the rows of the whole run" in told
    assert f"counts only: backcast diff {run_id} tells columns and rows" in told


def test_a_bundle_of_another_key_names_the_key_it_was_signed_with(
    run_id: str, capsys: pytest.CaptureFixture[str]
) -> None:
    made = json.loads(typed("keys new --out mine --json", capsys)[1])
    typed("keys new --out theirs", capsys)
    typed(f"evidence {run_id} --out run.zip --key mine/backcast-signing.key", capsys)
    code, _, err = typed("verify run.zip --key theirs/backcast-signing.pub", capsys)
    assert code == 3
    assert made["key"][:16] in err


def test_the_key_may_come_from_the_environment_and_is_never_shown(
    run_id: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typed("keys new --out keys", capsys)
    pem = Path("keys/backcast-signing.key").read_text()
    monkeypatch.setenv("BACKCAST_SIGNING_KEY", pem)
    by_name = typed(f"evidence {run_id} --out environment.zip", capsys)
    monkeypatch.setenv("BACKCAST_SIGNING_KEY", pem.replace("M", "N", 1))
    broken = typed(f"evidence {run_id} --out broken.zip", capsys)
    assert (by_name[0], broken[0]) == (0, 2)
    assert not Path("broken.zip").exists()
    secret = pem.splitlines()[1][6:]
    assert secret not in "".join(map(str, (shown, by_name, broken)))
    typed(f"evidence {run_id} --out file.zip --key keys/backcast-signing.key", capsys)
    assert Path("file.zip").read_bytes() == Path("environment.zip").read_bytes()


def test_nothing_is_written_over(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed("keys new --out .", capsys)
    keys = [Path(f"backcast-signing.{end}").read_bytes() for end in ("key", "pub")]
    Path("there").write_text("mine")
    for line in ("keys new --out .", f"evidence {run_id} --out there", f"report {run_id} --out there"):
        assert typed(line, capsys)[0] == 2, line
    assert Path("there").read_text() == "mine"
    assert [Path(f"backcast-signing.{end}").read_bytes() for end in ("key", "pub")] == keys
    Path("backcast-signing.key").unlink()
    assert typed("keys new --out .", capsys)[0] == 2, "half of a pair"


def test_a_note_joins_the_history_with_the_account_of_the_process(
    run_id: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No variable makes it somebody else's."""
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert dispatch(["note", run_id, " the shops were told "]) == 0
    capsys.readouterr()
    *_, last = typed(f"logs {run_id} --json", capsys)[1].splitlines()
    event = json.loads(last)
    assert (event["name"], event["data"]) == ("note", {"text": "the shops were told"})
    assert event["account"]
    assert not event["account"].startswith("somebody-else")
    assert dispatch(["note", run_id, "  "]) == 2


def test_explain_answers_from_the_store(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = typed("explain orders --partition 2025-01", capsys)
    assert code == 0
    assert f"2025-01-01 to 2025-01-04  rows of {run_id}" in out
    assert "2025-01-04 to 2025-02-01  no run on record replaced it" in out
    assert "time zone bug" in out
    assert json.loads(typed("explain orders --at 2025-01-02T10:00Z --json", capsys)[1])["accepted"] == run_id
    assert "no run on record touched it" in typed("explain orders --partition 2024", capsys)[1]
    assert typed("explain orders", capsys)[0] == 2
    assert typed("explain orders --partition 2025 --at 2025-01-02", capsys)[0] == 2
    assert typed("explain nothing --partition 2025", capsys)[0] == 2


def test_a_report_is_one_page_that_needs_nothing_else(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(["note", run_id, "<script>alert(1)</script>"])
    assert typed(f"report {run_id} --out run.html", capsys)[0] == 0
    page = Path("run.html").read_text()
    assert page.count("<svg") >= 2
    for word in (run_id, "time zone bug", "lake.db.orders", "2025-01-02", "900 rows in 1 chunk", "ana@host-1"):
        assert word in page, word
    assert "<script" not in page
    for elsewhere in ("http://", "https://", "src=", "@import", "url("):
        assert elsewhere not in page, elsewhere


def test_user_code_never_sees_the_signing_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BACKCAST_SIGNING_KEY", "secret")
    monkeypatch.setenv("BACKCAST_PROFILE", "dev")
    assert "BACKCAST_SIGNING_KEY" not in child_environ()
    assert child_environ()["BACKCAST_PROFILE"] == "dev"


def test_verifying_needs_neither_spark_nor_a_store(run_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    """In a process of its own: neither is even loaded."""
    typed(f"evidence {run_id} --out run.zip", capsys)
    program = (
        "import sys\n"
        "from backcast.cli.dispatch import dispatch\n"
        "assert dispatch(['verify', 'run.zip', '--json']) == 0\n"
        "print(sorted({'pyspark', 'sqlalchemy', 'alembic'} & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stderr.strip() == "[]"
    assert json.loads(done.stdout)["run_id"] == run_id
