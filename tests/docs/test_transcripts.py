"""What the pages show is what comes out: their console blocks are typed, in order, into a project that `init` made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backcast.testing.kafka_records import Record
from tests.cheap import cheap
from tests.docs import replay_shop, stream_shop
from tests.docs.pages import ROOT, typed_on
from tests.docs.replay import Shell, first_missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.spark.settings import SessionSettings
    from backcast.testing.kafka import KafkaBroker

FIRST = ("init", "doctor", "plan", "status", "run", "validate", "diff", "publish", "watch", "check", "gaps", "compare")
THEN = ("list", "keys", "note", "evidence", "verify", "explain", "report", "undo", "logs")
LAST = ("gc", "throttle", "cancel", "backfill")
TOURS = {
    "README": [ROOT / "README.md"],
    "commands": [ROOT / "docs" / "commands" / f"{name}.md" for name in (*FIRST, *THEN, *LAST)],
}

APPROVAL = [ROOT / "docs" / "commands" / f"{name}.md" for name in ("estimate", "approve", "reject", "request")]


@pytest.fixture
def shell(
    tmp_path: Path,
    spark: SparkSession,
    spark_settings: SessionSettings,
    lake_root: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shell]:
    """An empty folder. The project's catalog is that of the shared session, so that no second Spark has to start."""
    monkeypatch.setenv("BACKCAST__CATALOGS__LAKE__URI", f"jdbc:sqlite:{lake_root}/catalog.db")
    monkeypatch.setenv("BACKCAST__CATALOGS__LAKE__WAREHOUSE", spark_settings.catalogs["lake"]["warehouse"])
    monkeypatch.setenv("LOGNAME", "ana")
    monkeypatch.setenv("COLUMNS", "80")
    for table in ("daily", "events", "shops"):
        spark.sql(f"DROP TABLE IF EXISTS lake.shop.{table} PURGE")
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.mark.parametrize("tour", TOURS)
def test_every_console_block_shows_what_comes_out(shell: Shell, tour: str) -> None:
    follow(shell, TOURS[tour])


def test_so_does_the_tour_on_delta(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URI", "WAREHOUSE"):
        monkeypatch.delenv(f"BACKCAST__CATALOGS__LAKE__{name}")
    follow(shell, [ROOT / "docs" / "delta.md"])


def test_so_do_those_of_a_project_with_the_policy_of_the_guide(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """The policy and the request are those that `docs/approval.md` shows."""
    monkeypatch.setattr("backcast.project.people.os_user", lambda: "ana")
    monkeypatch.setattr("backcast.project.people.login_user", lambda: "ana")
    follow(shell, [ROOT / "docs" / "commands" / "init.md"])
    guide = (ROOT / "docs" / "approval.md").read_text()
    files = dict(re.findall(r"```yaml\n# (\S+)\n(.*?)```", guide, re.DOTALL)[::-1])
    (shell.folder / "requests").mkdir()
    (shell.folder / "requests/2026-january.yaml").write_text(files["requests/2026-january.yaml"])
    config = shell.folder / "backcast.yaml"
    config.write_text(config.read_text() + files["backcast.yaml"])
    (shell.folder / "policy.yaml").write_text(files["policy.yaml"])
    follow(shell, APPROVAL)


def test_so_do_those_about_the_checkpoint_of_a_stream(
    shell: Shell, spark: SparkSession, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream and the project are those that the page shows; it is a minute of orders every twelve records."""
    page = ROOT / "docs" / "commands" / "checkpoint.md"
    for name, body in re.findall(r"```\w+\n# (\S+\.\w+)\n(.*?)```", page.read_text(), re.DOTALL):
        (shell.folder / name).write_text(body)
    (shell.folder / "models").mkdir()
    (shell.folder / "models/minutes.sql").write_text("SELECT 1\n")
    monkeypatch.setenv("KAFKA", broker.servers)
    broker.create_topic("orders", 2)
    records = (Record(b"{}", str(number), 1_767_225_600_000 + 5000 * number, number % 2) for number in range(120))
    broker.produce("orders", records)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    spark.sql("CREATE OR REPLACE TABLE lake.shop.minutes (minute TIMESTAMP, orders BIGINT) USING iceberg")
    follow(shell, [page, ROOT / "docs" / "runbooks" / "checkpoint-corruption.md"])


def test_so_do_the_runbooks_about_streams(
    shell: Shell, spark: SparkSession, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream of somebody else's has dropped two orders, and a nightly job has missed two nights; a new table is
    filled by wrong code, which is mended; and retention overtakes a stream of ours.
    """
    monkeypatch.setenv("COLUMNS", "110")
    for table in stream_shop.TABLES:
        spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
    stream_shop.build(shell.folder, spark, broker)
    follow(shell, runbooks("late-data", "daily-catch-up", "month-migration"))
    stream_shop.mend(shell.folder)
    shell.look_again()
    follow(shell, runbooks("wrong-transform"))
    # One step starts a process, which brings a Spark of its own.
    for name, value in cheap().items():
        monkeypatch.setenv(name, value)
    control = shell.look_again()
    stream_shop.overtake(control, broker)
    try:
        follow(shell, runbooks("retention-exceeded"))
    finally:
        stream_shop.end(shell.folder, control)


def runbooks(*names: str) -> list[Path]:
    return [ROOT / "docs" / "runbooks" / f"{name}.md" for name in names]


def test_so_does_the_runbook_about_a_full_replay(
    shell: Shell, spark: SparkSession, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The correction is the one that the page shows. What it leaves is the stream on the page of `stream`."""
    monkeypatch.setenv("COLUMNS", "110")
    spark.sql(f"DROP TABLE IF EXISTS {replay_shop.TABLE} PURGE")
    page = ROOT / "docs" / "runbooks" / "full-replay.md"
    ((name, corrected),) = re.findall(r"```sql\n *# (\S+)\n(.*?)```", page.read_text(), re.DOTALL)
    assert name == "by_hour.sql"
    replay_shop.build(shell.folder, spark, broker, corrected)
    follow(shell, [page, ROOT / "docs" / "commands" / "stream.md"])


def follow(shell: Shell, pages: list[Path]) -> None:
    for page in pages:
        examples = typed_on(page, "console")
        assert examples, page
        for position, typed in enumerate(examples):
            shell.follow(typed)
            says_why = [each.command for each in examples[position + 1 : position + 2]] == ["echo $?"]
            assert shell.code == 0 or says_why or typed.command == "echo $?", f"{typed} ends with {shell.code}"


def test_a_line_that_does_not_come_out_would_be_found() -> None:
    shown = "daily-20261116-413652  ACCEPTED  now, 2026-11-16 01:51 UTC\n...\n  chunks      all 7 chunks staged"
    out = "daily-20301231-0a1b2c  ACCEPTED  3 s ago, 2030-12-31 23:59 UTC\n  validated\n chunks all 7\n chunks staged"
    assert first_missing(shown, out) == ""
    assert first_missing(shown, out.replace("7", "6")) != ""
    assert first_missing(shown, out.replace("ACCEPTED", "REJECTED")) != ""
