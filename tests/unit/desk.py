"""A person who types stream commands at a terminal: on a real store, with a Spark child that has its answers ready."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from backcast.cli.dispatch import dispatch
from backcast.control import ControlPlane
from backcast.model.live import StreamStatus
from backcast.model.manifest import Manifest
from backcast.model.report import Plan
from backcast.model.run import Run
from backcast.model.states import RunState
from backcast.project.config import load_project
from backcast.project.wiring import Wiring
from backcast.testing.samples import sample_manifest
from tests.unit.test_config_streams import _GOOD, _STREAM

Answer = Callable[..., Any]
_UP_TO = (RunState.APPROVED, RunState.RUNNING, RunState.STAGED, RunState.ACCEPTED, RunState.PUBLISHING)


class Terminal(io.StringIO):
    """What is typed in answer to questions; behind the last one the terminal is closed."""

    def isatty(self) -> bool:
        return True


@dataclass
class Desk:
    """Of a project with a stream `live`. `asked` are the verbs that the child was asked for, in order."""

    control: ControlPlane
    root: Path
    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]
    answers: dict[str, Answer] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    starts: int = 0

    def type(self, *words: str, says: str = "") -> tuple[int, str]:
        """Exit code and all that is told. Each character of `says` is the answer to a question."""
        self.asked.clear()
        self.monkeypatch.setattr("sys.stdin", Terminal("".join(f"{each}\n" for each in says)))
        code = dispatch(["stream", *words, "--project", str(self.root)])
        told = self.capsys.readouterr()
        return code, told.err + told.out

    def start(self, *_: Any, **__: Any) -> StreamStatus:
        """In place of a process that runs the stream."""
        self.starts += 1
        return self.control.stream_status("live")

    def run(self, state: RunState = RunState.PLANNED, reason: str = "wrong") -> Run:
        """One on record in that state."""
        runs = self.control.world.store().runs
        run = runs.create(sample_manifest(reason=reason))
        way = [RunState.CANCELLING, RunState.CANCELLED]
        if state is not RunState.CANCELLED:
            way = [*_UP_TO, RunState.PUBLISHED, RunState.UNDOING, RunState.UNDONE]
        for each in way[: way.index(state) + 1] if state is not RunState.PLANNED else ():
            run = runs.transition(run, each)
        return run

    def planned(self, **changes: Any) -> Plan:
        """As a plan that was recorded answers."""
        manifest: Manifest = sample_manifest().model_copy(update=changes)
        run = self.control.world.store().runs.create(manifest)
        return Plan(manifest=manifest, sha256=run.manifest_sha256, run_id=run.run_id, recorded=True, refused=False)


class _Child:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.on_stopping = lambda: None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is no process."""

    def call(self, verb: str, arguments: dict[str, Any], _: object) -> Any:
        self._desk.asked.append(verb)
        assert verb in self._desk.answers, f"nobody should ask for {verb} now"
        return self._desk.answers[verb](**arguments).as_json()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    control = ControlPlane(Wiring(load_project(tmp_path, environ={})))
    with closing(control.world):
        made = Desk(control, tmp_path, monkeypatch, capsys)
        monkeypatch.setattr("backcast.cli.working.SparkChild", lambda *_, **__: _Child(made))
        monkeypatch.setattr("backcast.cli.stream_steps.started_in_background", made.start)
        yield made
