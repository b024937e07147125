"""The wiring opens nothing before it is needed, and knows when another process is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from backcast.errors import UnknownName
from backcast.model.run import Holder
from backcast.project.host import host_identity
from backcast.project.wiring import Wiring
from backcast.spark import processes
from tests.unit.projects import project


@pytest.fixture
def wiring(tmp_path: Path) -> Wiring:
    return Wiring(project(tmp_path))


def sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])


def holder(process: subprocess.Popen[bytes], host: str | None = None) -> Holder:
    found = processes.identify(process.pid)
    assert found is not None
    return Holder(owner="x", host=host or host_identity(), pid=found.pid, started=found.started)


def test_looking_makes_no_store(wiring: Wiring) -> None:
    reader = wiring.reader()
    assert reader.runs() == []
    with pytest.raises(UnknownName, match="nothing was planned here yet"):
        reader.run("x")
    assert not wiring.project.store_path.parent.exists()


def test_the_reader_sees_the_store_once_it_is_there(wiring: Wiring) -> None:
    other = Wiring(wiring.project)
    other.store()
    assert wiring.reader().runs() == []
    with pytest.raises(UnknownName, match="x"):
        wiring.reader().run("x")
    other.close()
    wiring.close()


def test_the_holder_is_this_process(wiring: Wiring) -> None:
    me = wiring.holder()
    assert processes.is_alive(processes.ProcessIdentity(me.pid, me.started))
    assert me.host == host_identity()
    assert me.jvm_pid is None
    assert wiring.ended(me) is False


def test_a_process_that_lives_has_not_ended_and_a_killed_one_has(wiring: Wiring) -> None:
    process = sleeper()
    its = holder(process)
    assert wiring.ended(its) is False
    process.kill()
    process.wait()
    assert wiring.ended(its) is True


def test_the_jvm_that_outlived_its_python_is_ended_first(wiring: Wiring) -> None:
    python, jvm = sleeper(), sleeper()
    jvm_identity = processes.identify(jvm.pid)
    assert jvm_identity is not None
    its = holder(python).model_copy(update={"jvm_pid": jvm.pid, "jvm_started": jvm_identity.started})
    assert wiring.ended(its) is False
    assert processes.is_alive(jvm_identity), "the JVM of a living process is left alone"
    python.kill()
    python.wait()
    assert wiring.ended(its) is True
    assert not processes.is_alive(jvm_identity)
    jvm.wait()


def test_nobody_can_say_whether_a_process_elsewhere_has_ended(wiring: Wiring) -> None:
    process = sleeper()
    its = holder(process, host="another-machine/boot/pid:[1]")
    process.kill()
    process.wait()
    assert wiring.ended(its) is False


def test_a_restart_of_the_machine_ended_everything_on_it(wiring: Wiring) -> None:
    name, _, space = host_identity().split("/")
    gone = Holder(owner="x", host=f"{name}/an-earlier-boot/{space}", pid=1, started="x")
    assert wiring.ended(gone) is True
