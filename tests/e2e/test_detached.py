"""`run --detach` and `worker` as people type them: real processes, one store on PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from backcast.model.pipeline import TableFormat
from backcast.model.states import RunState
from backcast.testing.kafka_topics import wait_until
from backcast.testing.postgres import PostgresServer
from backcast.testing.shop import DAYS, Shop
from tests.cheap import cheap

PASSWORD = "BACKCAST_TEST_DETACHED_PASSWORD"  # noqa: S105 - the name of a variable


def backcast(shop: Shop, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "backcast", *arguments, "--project", str(shop.root), "--json"]
    environment = {**os.environ, **cheap()}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def answered(process: subprocess.Popen[str]) -> dict[str, object]:
    told, said = process.communicate(timeout=300)
    assert process.returncode == 0, told + said
    document: dict[str, object] = json.loads(told)
    return document


@pytest.mark.parametrize("shop", list(TableFormat), indirect=True)
def test_a_detached_run_and_a_worker_share_its_chunks_on_a_postgresql_store(
    shop: Shop, lake_root: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each does one and rests, for an hour if nobody changed that."""
    monkeypatch.setenv(PASSWORD, postgres.password)
    shop.configure(lake_root, chunks_per_job=1)
    place = f"{postgres.host}:{postgres.port}/{postgres.database()}"
    file = shop.root / "backcast.yaml"
    store = f"store: postgresql://{postgres.user}:${{{PASSWORD}}}@{place}"
    file.write_text(file.read_text().replace("store: .backcast/store.db", store))
    window = ("2026-01-01", f"2026-01-{DAYS + 1:02d}")
    wanted = shop.expected(*window)
    control = shop.open()
    with closing(control.world):
        run_id = control.plan(shop.request(*window)).run_id
        control.throttle(run_id, pause_seconds=3600)

        assert answered(backcast(shop, "run", run_id, "--detach"))["run_id"] == run_id
        worker = backcast(shop, "worker", run_id)
        wait_until(lambda: control.status(run_id).counts.staged == 2, "both have done one chunk", 240)
        answered(backcast(shop, "throttle", run_id, "--pause", "none"))
        waited = answered(backcast(shop, "wait", run_id))
        assert answered(worker)["state"] == waited["state"] == RunState.ACCEPTED
        chunks = control.world.reader().chunks(run_id)
        assert [chunk.attempts for chunk in chunks] == [1] * DAYS
        control.publish(run_id)
        assert shop.rows() == wanted
