"""Who keeps a table frozen, without Spark."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backcast.errors import LeaseHeld
from backcast.freezing import Freezing
from backcast.model.live import stream_lease
from backcast.model.run import Holder
from backcast.project.config import load_project
from backcast.project.host import host_identity
from backcast.project.wiring import Wiring
from backcast.spark import processes
from backcast.spark.processes import ProcessIdentity
from backcast.testing.samples import sample_holder
from backcast.testing.store_stream_contract import sample_batch
from tests.unit.test_config_streams import _GOOD, _STREAM

_WAITS = [sys.executable, "-c", "import sys; sys.stdin.read()"]


@pytest.fixture
def orphan() -> Iterator[ProcessIdentity]:
    """In place of a JVM whose Python is gone."""
    with subprocess.Popen(_WAITS, stdin=subprocess.PIPE) as process:
        identity = processes.identify(process.pid)
        assert identity is not None
        yield identity
        process.kill()


def gone() -> ProcessIdentity:
    with subprocess.Popen(_WAITS, stdin=subprocess.PIPE) as process:
        identity = processes.identify(process.pid)
    assert identity is not None
    return identity


def test_the_jvm_of_a_stream_that_died_in_a_batch_is_ended_before_the_table_counts_as_frozen(
    tmp_path: Path, orphan: ProcessIdentity
) -> None:
    """It may be in the middle of the commit, and a run that has taken its base would find rows that came after it."""
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    dead = gone()
    holder = Holder(
        owner="ana",
        host=host_identity(),
        pid=dead.pid,
        started=dead.started,
        jvm_pid=orphan.pid,
        jvm_started=orphan.started,
    )
    with closing(Wiring(load_project(tmp_path, environ={}))) as world:
        store = world.store()
        lease = store.leases.acquire(stream_lease("live"), holder, 300)
        store.streams.record(sample_batch(0, landed=False), lease)
        Freezing(world)._see_batches_off(world.stream("live").dataset.table)
    assert not processes.is_alive(orphan)


def test_a_stream_that_stood_still_in_a_batch_cannot_finish_it_in_a_frozen_table(tmp_path: Path) -> None:
    (tmp_path / "backcast.yaml").write_text(_GOOD + _STREAM)
    with closing(Wiring(load_project(tmp_path, environ={}))) as world:
        store = world.store()
        lease = store.leases.acquire(stream_lease("live"), sample_holder("elsewhere"), 300)
        store.streams.record(sample_batch(0, landed=False), lease)
        assert Freezing(world)._busy(world.stream("live").dataset.table) == "live"
        ended = store.leases.renew(lease, 0)
        Freezing(world)._see_batches_off(world.stream("live").dataset.table)
        with pytest.raises(LeaseHeld):
            store.leases.renew(ended, 300)
