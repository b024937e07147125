"""A project whose store is on PostgreSQL, through the doors that people use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from backcast.cli.dispatch import dispatch
from backcast.project.config import load_project
from backcast.project.doctor import _project_probes
from backcast.project.wiring import Wiring
from backcast.testing.postgres import PostgresServer
from backcast.testing.samples import sample_manifest
from tests.unit.projects import GOOD, project

PASSWORD = "BACKCAST_TEST_POSTGRES_PASSWORD"  # noqa: S105 - the name of a variable


@pytest.fixture
def wiring(tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wiring]:
    monkeypatch.setenv(PASSWORD, postgres.password)
    monkeypatch.chdir(tmp_path)
    place = f"{postgres.host}:{postgres.port}/{postgres.database()}"
    store = f"postgresql://{postgres.user}:${{{PASSWORD}}}@{place}"
    project(tmp_path, GOOD.replace("name: shop", f"name: shop\nstore: {store}"), environ={PASSWORD: "x"})
    wiring = Wiring(load_project(tmp_path))
    yield wiring
    wiring.close()


def store_probe(wiring: Wiring) -> tuple[bool, str]:
    probe = next(each for each in _project_probes(wiring) if each.name == "store")
    return probe.ok, probe.detail


def test_looking_makes_nothing_and_a_plan_makes_the_store(
    wiring: Wiring, postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    place = wiring.project.config.store.rpartition("@")[2]
    assert dispatch(["list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []
    assert store_probe(wiring) == (True, f"postgresql://{place} will be made by the first plan")
    run = wiring.store().runs.create(sample_manifest())
    assert store_probe(wiring) == (True, f"postgresql://{place}: 1 run")
    assert dispatch(["list"]) == 0
    assert run.run_id in capsys.readouterr().out


def test_a_wrong_password_is_told_and_not_repeated(
    wiring: Wiring, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PASSWORD, "wrong-secret")
    assert dispatch(["list", "--json"]) == 5
    said = capsys.readouterr()
    assert "refuses this user or its password" in said.out
    assert "wrong-secret" not in said.out + said.err
    ok, detail = store_probe(wiring)
    assert not ok
    assert "refuses this user or its password" in detail
