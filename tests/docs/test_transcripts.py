"""What the pages show is what comes out: their console blocks are typed, in order, into a project that `init` made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backcast.testing.kafka_records import Record
from tests.cheap import cheap
from tests.docs import files_shop, replay_shop, stream_shop, window_shop
from tests.docs.pages import ROOT, files_on, runbooks
from tests.docs.replay import Shell, first_missing, follow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backcast.testing.kafka import KafkaBroker
    from backcast.testing.postgres import PostgresServer

FIRST = ("init", "doctor", "plan", "status", "run", "validate", "diff", "publish", "watch", "check", "gaps", "compare")
THEN = ("list", "keys", "note", "evidence", "verify", "explain", "report", "undo", "logs")
LAST = ("gc", "throttle", "cancel", "backfill")
TOURS = {
    "README": [ROOT / "README.md"],
    "commands": [ROOT / "docs" / "commands" / f"{name}.md" for name in (*FIRST, *THEN, *LAST)],
}

APPROVAL = [ROOT / "docs" / "commands" / f"{name}.md" for name in ("estimate", "approve", "reject", "request")]


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
    files = files_on(ROOT / "docs" / "approval.md")
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
    shell.write_files(page)
    (shell.folder / "models").mkdir()
    (shell.folder / "models/minutes.sql").write_text("SELECT 1\n")
    monkeypatch.setenv("KAFKA", broker.servers)
    broker.create_topic("orders", 2)
    records = (Record(b"{}", str(number), 1_767_225_600_000 + 5000 * number, number % 2) for number in range(120))
    broker.produce("orders", records)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.shop")
    spark.sql("CREATE OR REPLACE TABLE lake.shop.minutes (minute TIMESTAMP, orders BIGINT) USING iceberg")
    follow(shell, [page, *runbooks("checkpoint-corruption")])


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


def test_so_does_the_runbook_about_a_full_replay(
    shell: Shell, spark: SparkSession, broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The correction is the one that the page shows. What it leaves is the stream on the page of `stream`."""
    monkeypatch.setenv("COLUMNS", "110")
    spark.sql(f"DROP TABLE IF EXISTS {replay_shop.TABLE} PURGE")
    (page,) = runbooks("full-replay")
    replay_shop.build(shell.folder, spark, broker, files_on(page)["by_hour.sql"])
    follow(shell, [page, ROOT / "docs" / "commands" / "stream.md"])


def test_so_do_the_runbooks_about_a_window(shell: Shell, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finds what it is about: a table that is compacted, a row that came in between, runs that died and failed."""
    monkeypatch.setenv("COLUMNS", "110")
    take_back, refused, dead = runbooks("take-it-back", "publish-refused", "a-run-died")
    follow(shell, [ROOT / "docs" / "commands" / "init.md", *runbooks("restate-a-window")])
    shell.write_files(take_back)
    follow(shell, [take_back])
    shell.names["daily-20261116-5cbf10"] = window_shop.overtaken(shell.look_again(), spark)
    follow(shell, [refused])
    window_shop.one_by_one(shell.folder)
    control = shell.look_again()
    shell.names["daily-20261116-a0c3b7"] = window_shop.died(shell.folder, control)
    shell.names["daily-20261116-d18453"] = window_shop.failed(shell.folder, control)
    follow(shell, [dead])


def test_so_does_the_runbook_about_files_and_a_database(
    shell: Shell, spark: SparkSession, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project and the script that loads are those that the page shows."""
    monkeypatch.setenv("COLUMNS", "110")
    (page,) = runbooks("files-or-a-database")
    shell.write_files(page)
    monkeypatch.setenv("FILES", str(shell.folder / "files"))
    monkeypatch.setenv("TILLS", files_shop.build(shell.folder, spark, postgres))
    follow(shell, [page])


def test_a_line_that_does_not_come_out_would_be_found() -> None:
    shown = "daily-20261116-413652  ACCEPTED  now, 2026-11-16 01:51 UTC\n...\n  chunks      all 7 chunks staged"
    out = "daily-20301231-0a1b2c  ACCEPTED  3 s ago, 2030-12-31 23:59 UTC\n  validated\n chunks all 7\n chunks staged"
    assert first_missing(shown, out) == ""
    assert first_missing(shown, out.replace("7", "6")) != ""
    assert first_missing(shown, out.replace("ACCEPTED", "REJECTED")) != ""
