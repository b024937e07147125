"""What `doctor` says about connectors and memory is about this project in this container."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from backcast.cli.dispatch import dispatch
from backcast.project import doctor
from backcast.project.wiring import Wiring
from backcast.spark import settings
from tests.unit.projects import GOOD, project, write

if TYPE_CHECKING:
    import pytest

DELTA = GOOD.replace("table: lake.shop.shops", "path: shops").replace(
    "jdbc:sqlite:.lake/catalog.db", "jdbc:postgresql://db/lake"
)


def test_the_connectors_are_those_that_the_project_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"backcast.yaml": DELTA})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("BACKCAST_CACHE", str(tmp_path / "cache"))
    assert dispatch(["doctor", "--json"]) == 5
    probes = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    named = probes["connectors"]["detail"]
    assert all(word in named for word in ("iceberg-spark-runtime", "delta-spark", "postgresql"))
    assert "sqlite" not in named


def test_driver_memory_is_held_against_the_container_and_not_the_machine_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{1024**3}\n")
    monkeypatch.setattr(settings.machine_memory, "__defaults__", ((limit,),))
    probe = doctor._memory(Wiring(project(tmp_path, GOOD + "spark: {driver_memory: 2g}\n")))
    assert not probe.ok
    assert probe.detail == "driver memory 2g of 1 GiB"
