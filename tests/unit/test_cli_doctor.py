"""`doctor` is for broken machines, so it must work on one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backcast.cli import machine
from backcast.cli.dispatch import dispatch
from backcast.cli.locate import log_file
from tests.unit.projects import GOOD, write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('openjdk version "17.0.15" 2025-04-15\nOpenJDK Runtime', ("17.0.15", 17)),
        ('java version "1.8.0_401"', ("1.8.0_401", 8)),
        ('openjdk version "21" 2023-09-19', ("21", 21)),
        ("Segmentation fault", ("", None)),
    ],
)
def test_java_versions(text: str, expected: tuple[str, int | None]) -> None:
    assert machine.java_version(text) == expected


def fake_java(home: Path, line: str) -> Path:
    """A JAVA_HOME whose java prints the line, as a real one does on stderr."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{line}' >&2\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(("version", "ok"), [("17.0.1", True), ("21.0.2", True), ("11.0.2", False), ("23.0.1", False)])
def test_only_javas_that_run_spark_are_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, ok: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path, f'openjdk version "{version}"')))
    probe = machine.java()
    assert probe.ok is ok
    assert version in probe.detail
    assert bool(probe.remedy) is not ok


def test_no_java_and_no_project_are_told_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert dispatch(["doctor", "--json"]) == 5
    probes = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert probes["python"]["ok"] is True
    assert probes["java"]["ok"] is False
    assert "JAVA_HOME" in probes["java"]["remedy"]
    assert probes["project"]["ok"] is False
    assert "backcast init" in probes["project"]["remedy"]


def test_a_broken_project_file_is_one_probe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, {"backcast.yaml": GOOD.replace("output: daily", "output: nope")})
    monkeypatch.chdir(tmp_path)
    assert dispatch(["doctor", "--json"]) == 5
    probes = {each["name"]: each for each in json.loads(capsys.readouterr().out)}
    assert "nope" in probes["project"]["detail"]
    assert "spark" not in probes


def test_logs_go_elsewhere_when_the_project_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".backcast").write_text("a file where the folder should be")
    path = log_file(tmp_path, "plan")
    assert path.name.endswith("Z-plan.log")
    assert tmp_path not in path.parents


def test_old_logs_go(tmp_path: Path) -> None:
    folder = log_file(tmp_path, "plan").parent
    for number in range(250):
        (folder / f"2020{number:04d}-plan.log").touch()
    log_file(tmp_path, "plan")
    left = sorted(each.name for each in folder.glob("*.log"))
    assert len(left) == 200
    assert left[0] == "20200050-plan.log"
